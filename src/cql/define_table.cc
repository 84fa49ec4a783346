#include <algorithm>
#include <set>

#include "cql/define_parts.h"
#include "cql/schema_document.h"
#include "cql/table_options.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

Defined<DataType> KeyType(const CreateTable& create, const std::string& name,
                          std::set<std::string>& seen, const TypeScope& scope) {
  auto found = std::ranges::find(create.columns, name, &ColumnDefinition::name);
  if (found == create.columns.end()) {
    return Invalid("Unknown column '" + name + "' referenced in PRIMARY KEY for table '" +
                   create.table.name + "'");
  }
  if (!seen.insert(name).second) {
    return Invalid("Duplicate column '" + name + "' in PRIMARY KEY clause for table '" +
                   create.table.name + "'");
  }
  ORRERY_TRY(DataType type, Resolved(found->type, scope));
  if (type.multi_cell()) {
    return Invalid(std::string("Invalid non-frozen ") +
                   (type.is_collection() ? "collection" : "user-defined") + " type " +
                   type.ToCql() + " for PRIMARY KEY column '" + name + "'");
  }
  if (type.id() == TypeId::kCounter) {
    return Invalid("counter type is not supported for PRIMARY KEY column '" + name + "'");
  }
  if (type.Contains(TypeId::kDuration)) {
    return Invalid("duration type is not supported for PRIMARY KEY column '" + name + "'");
  }
  if (found->is_static) {
    return Invalid("Static column '" + name + "' cannot be part of the PRIMARY KEY");
  }
  return type;
}

Defined<void> ApplyClusteringOrder(const CreateTable& create, const PrimaryKey& key, Table& table) {
  const auto& order = create.with.clustering_order;
  std::set<std::string> named;
  for (const ClusteringOrder& each : order) {
    if (!named.insert(each.column).second) {
      return Invalid("Duplicate column '" + each.column +
                     "' in CLUSTERING ORDER BY clause for table '" + Spelt(create.table) + "'");
    }
  }
  if (order.size() > key.clustering.size()) {
    return Invalid("Only clustering columns can be defined in CLUSTERING ORDER directive");
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string& wanted = key.clustering[i];
    if (order[i].column != wanted) {
      return Invalid(named.contains(wanted)
                         ? "The order of columns in the CLUSTERING ORDER directive must match that "
                           "of the clustering columns (" +
                               wanted + " must appear before " + order[i].column + ")"
                         : "Missing CLUSTERING ORDER for column " + wanted);
    }
    table.columns[table.partition_columns + i].descending = order[i].descending;
  }
  return {};
}

Defined<void> AddKey(const CreateTable& create, const TypeScope& scope, Table& table) {
  const PrimaryKey& key = create.primary_keys.front();
  std::set<std::string> seen;
  for (const std::string& name : key.partition) {
    ORRERY_TRY(DataType type, KeyType(create, name, seen, scope));
    table.columns.push_back({table.next_column++, name, type, ColumnKind::kPartitionKey});
  }
  for (const std::string& name : key.clustering) {
    ORRERY_TRY(DataType type, KeyType(create, name, seen, scope));
    table.columns.push_back({table.next_column++, name, type, ColumnKind::kClustering});
  }
  table.partition_columns = key.partition.size();
  table.clustering_columns = key.clustering.size();
  return ApplyClusteringOrder(create, key, table);
}

Defined<void> AddOthers(const CreateTable& create, const TypeScope& scope, Table& table) {
  auto of_key = [keys = table.columns](const std::string& name) {
    return std::ranges::find(keys, name, &Column::name) != keys.end();
  };
  for (const ColumnDefinition& column : create.columns) {
    if (of_key(column.name)) {
      continue;
    }
    ORRERY_TRY(DataType type, Resolved(column.type, scope));
    if (column.is_static && table.clustering_columns == 0) {
      return Invalid(
          "Static columns are only useful (and thus allowed) if the table has at least one "
          "clustering column");
    }
    ColumnKind kind = column.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    table.columns.push_back({table.next_column++, column.name, type, kind});
  }
  size_t counters = 0;
  for (const Column& column : table.others()) {
    counters += column.type.id() == TypeId::kCounter ? 1 : 0;
  }
  if (counters > 0 && counters < table.others().size()) {
    return Invalid("Cannot mix counter and non counter columns in the same table");
  }
  return {};
}

// What the parser leaves to us.
Defined<void> CheckForm(const CreateTable& create) {
  std::string name = Spelt(create.table);
  if (create.columns.size() > kColumnsMax) {
    return Invalid("Table '" + name + "' has more than " + std::to_string(kColumnsMax) +
                   " columns");
  }
  std::set<std::string> seen;
  for (const ColumnDefinition& column : create.columns) {
    if (!seen.insert(column.name).second) {
      return Invalid("Duplicate column '" + column.name + "' declaration for table '" + name + "'");
    }
    if (column.mask) {
      return Invalid(std::string(kNoMasks));
    }
  }
  if (create.primary_keys.empty()) {
    return Invalid("No PRIMARY KEY specifed for table '" + name + "' (exactly one required)");
  }
  if (create.primary_keys.size() > 1) {
    return Invalid("Multiple PRIMARY KEY specified for table '" + name +
                   "' (exactly one required)");
  }
  if (create.with.compact_storage) {
    return Invalid("COMPACT STORAGE tables are not supported");
  }
  return {};
}

}  // namespace

Defined<Table> DefineTable(const CreateTable& create, const Keyspace& in, std::string table_id) {
  ORRERY_TRY_DEFINED(CheckForm(create));
  const std::string& name = create.table.name;
  if (in.tables.contains(name)) {
    return std::unexpected(DefineError{
        DefineError::Kind::kExists,
        "Cannot add already existing table \"" + name + "\" to keyspace \"" + in.name + "\""});
  }
  Table table{.keyspace = in.name, .name = name, .id = std::move(table_id)};
  Options options = create.with.options;
  if (auto id = std::ranges::find(options, "id", &Option::name); id != options.end()) {
    const auto* text = std::get_if<std::string>(&id->value);
    if (text == nullptr || !UuidFromText(*text, &table.id)) {
      return Misconfigured("Invalid table id");
    }
    options.erase(id);
  }
  ORRERY_TRY_DEFINED(ApplyOptions(options, table));
  TypeScope scope = ScopeOf(in);
  ORRERY_TRY_DEFINED(AddKey(create, scope, table));
  ORRERY_TRY_DEFINED(AddOthers(create, scope, table));
  SortColumns(table);
  if (table.counts() && table.default_ttl > 0) {
    return Invalid("Cannot set default_time_to_live on a table with counters");
  }
  if (!IsGoodName(name)) {
    return Misconfigured(in.name + "." + name + ": " + BadName("Table", "\"" + name + "\""));
  }
  return table;
}

void SortColumns(Table& table) {
  auto others =
      std::span(table.columns).subspan(table.partition_columns + table.clustering_columns);
  std::ranges::sort(others, [](const Column& a, const Column& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
}

}  // namespace orrery::cql
