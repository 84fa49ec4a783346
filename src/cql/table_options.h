// The options of a table, with their types and Cassandra's defaults. Pure functions.
//
// Most say how Cassandra stores a table, which is not how Orrery does it: they are checked, kept
// and shown, and mean nothing. Of meaning are default_time_to_live, gc_grace_seconds and the
// cosmosdb_ ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cql/schema.h"

namespace orrery::cql {

enum class OptionKind : uint8_t { kText, kInt, kDouble, kBoolean, kMap };

struct TableOption {
  std::string_view name;
  OptionKind kind;
  std::string_view text;  // the default, but of a map
  bool cosmos = false;  // of Azure Cosmos DB; not of Cassandra's, and shown only where it is given
};

// By name, Cassandra's before the others.
std::span<const TableOption> TableOptionList();
// Null: there is none.
const TableOption* FindTableOption(std::string_view name);

inline constexpr std::string_view kDefaultTtlOption = "default_time_to_live";
inline constexpr std::string_view kThroughputOption = "cosmosdb_provisioned_throughput";
inline constexpr std::string_view kCellTimestampOption = "cosmosdb_cell_level_timestamp";
inline constexpr std::string_view kCellTombstonesOption =
    "cosmosdb_cell_level_timestamp_tombstones";
inline constexpr std::string_view kCellTtlOption = "cosmosdb_cell_level_timetolive";

// Null: it was not given. Of kDefaultTtlOption always: Table::default_ttl has it.
const Option* GivenOption(const Table& table, std::string_view name);
// What was given, or the default. REQUIRES: a known option; a map, or not one.
std::string OptionText(const Table& table, std::string_view name);
StringMap OptionMap(const Table& table, std::string_view name);

// The default of a map.
StringMap DefaultOptionMap(std::string_view name);

}  // namespace orrery::cql
