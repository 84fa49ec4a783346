#include <algorithm>

#include "cql/define_parts.h"

namespace orrery::cql {
namespace {

const char* KindText(IndexTargetKind kind) {
  switch (kind) {
    case IndexTargetKind::kSimple: return "";
    case IndexTargetKind::kKeys: return "keys";
    case IndexTargetKind::kValues: return "values";
    case IndexTargetKind::kEntries: return "entries";
    case IndexTargetKind::kFull: return "full";
  }
  return "";
}

// The class that a name of an implementation means; nothing if there is none. Empty: the usual one.
std::optional<std::string> IndexClass(const std::string& name) {
  constexpr std::string_view kAttached = "org.apache.cassandra.index.sai.StorageAttachedIndex";
  constexpr std::string_view kSasi = "org.apache.cassandra.index.sasi.SASIIndex";
  if (EqualsIgnoringCase(name, "sai") || EqualsIgnoringCase(name, "storageattachedindex") ||
      name == kAttached) {
    return std::string(kAttached);
  }
  if (name == kSasi) {
    return std::string(kSasi);
  }
  if (name.empty() || EqualsIgnoringCase(name, "legacy_local_table")) {
    return "";
  }
  return std::nullopt;
}

Defined<StringMap> OptionsOf(const CreateIndex& create) {
  StringMap options;
  for (const Option& option : create.options) {
    if (option.name != "options") {
      return Misspelt("Unknown property '" + option.name + "'");
    }
    const auto* map = std::get_if<StringMap>(&option.value);
    if (map == nullptr) {
      return Misspelt("Invalid value for property 'options'. It should be a map.");
    }
    options = *map;
  }
  for (const char* taken : {"class_name", "target"}) {
    if (FindIn(options, taken) != nullptr) {
      return Invalid("Cannot specify " + std::string(taken) + " as a CUSTOM option");
    }
  }
  ORRERY_TRY_DEFINED(CheckNoNul(options));
  std::ranges::sort(options);
  return options;
}

// Without its name and column.
Defined<Index> IndexOf(const CreateIndex& create) {
  ORRERY_TRY(StringMap options, OptionsOf(create));
  if (create.custom && create.implementation.empty()) {
    return Invalid("CUSTOM index requires specifiying the index class");
  }
  auto implementation = IndexClass(create.implementation);
  if (!implementation) {
    return Misconfigured("Unable to find custom indexer class '" + create.implementation + "'");
  }
  if (implementation->empty() && !create.options.empty()) {
    return Invalid("Cannot specify options for a non-CUSTOM index");
  }
  return Index{.name = {},
               .column = {},
               .implementation = std::move(*implementation),
               .options = std::move(options)};
}

Defined<void> CheckDuration(const DataType& type) {
  if (!type.Contains(TypeId::kDuration)) {
    return {};
  }
  return Invalid(std::string("Secondary indexes are not supported on ") +
                 (type.is_collection()          ? "collections containing durations"
                  : type.id() == TypeId::kTuple ? "tuples containing durations"
                  : type.id() == TypeId::kUdt   ? "UDTs containing durations"
                                                : "duration columns"));
}

Defined<void> CheckTarget(const Table& table, const Column& column, IndexTargetKind kind) {
  const DataType& type = column.type;
  const std::string& name = column.name;
  ORRERY_TRY_DEFINED(CheckDuration(type));
  if (column.kind == ColumnKind::kPartitionKey && table.partition_columns == 1) {
    return Invalid("Cannot create secondary index on the only partition key column " + name);
  }
  bool frozen_collection = type.is_collection() && type.frozen();
  std::string call = KindText(kind) + std::string("()");
  if (frozen_collection && kind != IndexTargetKind::kFull) {
    return Invalid("Cannot create " + call + " index on frozen column " + name +
                   ". Frozen collections are immutable and must be fully indexed by using the "
                   "'full(" +
                   name + ")' modifier");
  }
  if (!frozen_collection && kind == IndexTargetKind::kFull) {
    return Invalid("full() indexes can only be created on frozen collections");
  }
  if (!type.is_collection() && kind != IndexTargetKind::kSimple) {
    return Invalid("Cannot create " + call + " index on " + name +
                   ". Non-collection columns only support simple indexes");
  }
  bool of_keys = kind == IndexTargetKind::kKeys || kind == IndexTargetKind::kEntries;
  if (of_keys && type.id() != TypeId::kMap) {
    return Invalid("Cannot create index on " + std::string(KindText(kind)) + " of column " + name +
                   " with non-map type");
  }
  if (type.id() == TypeId::kUdt && type.multi_cell()) {
    return Invalid("Cannot create index on non-frozen UDT column " + name);
  }
  return {};
}

// table_column_idx, and table_column_idx_1 and so on if there is one already.
std::string FreeName(const Keyspace& in, const std::string& table, const std::string& column) {
  std::string base = table + "_" + column + "_idx";
  std::erase_if(base, [](char c) { return !IsWord({&c, 1}); });
  std::string name = base;
  for (int i = 1; FindIndexedTable(in, name) != nullptr; ++i) {
    name = base + "_" + std::to_string(i);
  }
  return name;
}

}  // namespace

const Table* FindIndexedTable(const Keyspace& keyspace, std::string_view index) {
  for (const auto& [name, table] : keyspace.tables) {
    if (std::ranges::find(table.indexes, index, &Index::name) != table.indexes.end()) {
      return &table;
    }
  }
  return nullptr;
}

Defined<Table> DefineIndex(const CreateIndex& create, const Table& before, const Keyspace& in) {
  ORRERY_TRY(Index index, IndexOf(create));
  if (!create.index.empty() && FindIndexedTable(in, create.index) != nullptr) {
    if (create.if_not_exists) {
      return before;
    }
    return Invalid("Index '" + create.index + "' already exists");
  }
  if (before.view) {
    return Invalid("Secondary indexes on materialized views aren't supported");
  }
  if (before.counts()) {
    return Invalid("Secondary indexes on counter tables aren't supported");
  }
  if (create.targets.empty()) {
    return Invalid(index.implementation.empty()
                       ? "Only CUSTOM indexes can be created without specifying a target column"
                       : "An index of class " + index.implementation + " needs a target column");
  }
  if (create.targets.size() > 1) {
    return Invalid(index.implementation.empty() ? "Only CUSTOM indexes support multiple columns"
                                                : "An index of class " + index.implementation +
                                                      " supports one target column only");
  }
  const IndexTarget& target = create.targets.front();
  const Column* column = before.Find(target.column);
  if (column == nullptr) {
    return Invalid("Undefined column name " + QuotedName(target.column) + " in table " +
                   FullName(before));
  }
  // Of a collection the values are meant.
  bool values = target.kind == IndexTargetKind::kSimple && column->type.is_collection();
  index.kind = values ? IndexTargetKind::kValues : target.kind;
  index.column = target.column;
  ORRERY_TRY_DEFINED(CheckTarget(before, *column, index.kind));
  index.name = create.index.empty() ? FreeName(in, before.name, target.column) : create.index;
  if (!IsWord(index.name)) {
    return Misconfigured("Illegal index name " + index.name);
  }
  for (const Index& other : before.indexes) {
    Index same = index;
    same.name = other.name;
    same.state = other.state;
    same.container = other.container;
    if (other == same) {
      if (create.if_not_exists) {
        return before;
      }
      return Invalid("Index " + index.name + " is a duplicate of existing index " + other.name);
    }
  }
  Table after = before;
  if (column->kind != ColumnKind::kStatic) {
    index.state = IndexState::kBuilding;
    ++after.derived;
  }
  after.indexes.push_back(std::move(index));
  return after;
}

Defined<std::optional<Table>> WithoutIndex(const DropIndex& drop, const Keyspace& in) {
  const Table* table = FindIndexedTable(in, drop.index.name);
  if (table == nullptr) {
    if (drop.if_exists) {
      return std::nullopt;
    }
    return Invalid("Index '" + in.name + "." + drop.index.name + "' doesn't exist");
  }
  Table after = *table;
  std::erase_if(after.indexes, [&](const Index& each) { return each.name == drop.index.name; });
  ++after.derived;
  return after;
}

}  // namespace orrery::cql
