// Lists of resources of the catalog: databases, containers, offers; whole, or those that a query
// wants.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/sql/call.h"

namespace orrery::api::sql {

// Answers with `{"_rid":..., "<envelope>":[...], "_count":n}` of the resources (each a JSON text),
// filtered by the body if the request is a query. A page holds all: catalogs are small.
void AnswerList(Call& call, std::string_view envelope, std::string_view owner_rid,
                const std::vector<std::string>& resources);

// Which of them the request wants: all, or if it is a query those that it matches.
Result<std::vector<size_t>> WantedOf(const Call& call, const std::vector<std::string>& resources);
// As AnswerList, without a filter.
void AnswerAll(Call& call, std::string_view envelope, std::string_view owner_rid,
               const std::vector<std::string>& resources);

bool IsQuery(const Call& call);

}  // namespace orrery::api::sql
