// Values as JSON: INSERT JSON, SELECT JSON, toJson, fromJson. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/data_type.h"
#include "cql/json.h"

namespace orrery::cql {

// Appends the value as SELECT JSON shows it: [1, 2], {"a": 1}; null if there is none. Blobs are
// "0x..", NaN and the infinities null. REQUIRES: ValidateValue was fine.
void AppendValueJson(const DataType& type, std::optional<std::string_view> bytes, std::string& out);

// The value that JSON means in a type; empty: null. kInvalidArgument in Cassandra's words.
Result<std::optional<std::string>> ValueFromJson(const DataType& type, const Json& json);
Result<std::optional<std::string>> ValueFromJson(const DataType& type, std::string_view json);

// The columns of INSERT JSON: names in lower case unless they stand in quotes of their own.
Result<std::vector<Json::Member>> ParseJsonRow(std::string_view json);
// Appends the name of a column as SELECT JSON does, with quotes of its own if it has upper case.
void AppendJsonName(std::string_view name, std::string& out);

}  // namespace orrery::cql
