// What statements that define something have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/cassandra/service.h"
#include "cql/define.h"
#include "model/catalog.h"

namespace orrery::cassandra {

inline constexpr int kTriesMax = 10;  // while others change the same thing

std::string NewUuid(Random& random);

// What is wrong with a definition, in the code that fits.
Response Refuse(const cql::DefineError& error, std::string_view keyspace, std::string_view name,
                int version);
Response NotModifiable(std::string_view keyspace, int version);
Response NoKeyspace(std::string_view keyspace, int version);

std::string EtagOf(const model::Database& database);
std::string EtagOf(const model::Container& container);

model::ThroughputRequest RequestOf(const std::optional<int32_t>& throughput);

// Where a statement about a table or type works: its keyspace as it is now.
struct Place {
  std::string keyspace;
  std::shared_ptr<const SchemaView> view;
  const cql::Keyspace* found = nullptr;
  std::optional<Response> refusal;
};
Place PlaceOf(const cql::QualifiedName& name, const Execution& execution,
              std::shared_ptr<const SchemaView> view);

}  // namespace orrery::cassandra
