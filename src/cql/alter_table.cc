#include <algorithm>

#include "cql/define_parts.h"
#include "cql/number.h"
#include "cql/schema_document.h"

namespace orrery::cql {
namespace {

// Whether a column may take the place of a dropped one of this type: as if it had been so.
bool MayReplace(const DataType& type, const DataType& dropped) {
  if (type == dropped) {
    return true;
  }
  constexpr std::pair<TypeId, TypeId> kWider[] = {
      {TypeId::kText, TypeId::kAscii},       {TypeId::kUuid, TypeId::kTimeuuid},
      {TypeId::kBigint, TypeId::kTimestamp}, {TypeId::kTimestamp, TypeId::kBigint},
      {TypeId::kBlob, TypeId::kText},        {TypeId::kBlob, TypeId::kAscii},
  };
  return std::ranges::find(kWider, std::pair(type.id(), dropped.id())) != std::end(kWider);
}

Defined<void> CheckDropped(const ColumnDefinition& column, const DataType& type,
                           const Table& table) {
  auto dropped = std::ranges::find(table.dropped, column.name, &DroppedColumn::name);
  if (dropped == table.dropped.end()) {
    return {};
  }
  std::string what = "Cannot re-add previously dropped column '" + column.name + "' of ";
  if (!MayReplace(WithoutUserTypes(type), dropped->type)) {
    return Invalid(what + "type " + type.ToCql() + ", incompatible with previous type " +
                   dropped->type.ToCql());
  }
  if (dropped->is_static != column.is_static) {
    return Invalid(what + "kind " + (column.is_static ? "STATIC" : "REGULAR") +
                   ", incompatible with previous kind " +
                   (dropped->is_static ? "STATIC" : "REGULAR"));
  }
  if (type.id() == TypeId::kCounter) {
    return Invalid("Cannot re-add previously dropped counter column " + column.name);
  }
  return {};
}

struct Alteration {
  Table table;  // as it is before, and then after
  const Table& before;
  const Keyspace& in;
  int64_t now;

  Defined<void> operator()(const AddColumns& add) {
    ORRERY_TRY_DEFINED(CheckCount(add.columns.size()));
    for (const ColumnDefinition& column : add.columns) {
      ORRERY_TRY_DEFINED(Add(column, add.if_not_exists));
    }
    SortColumns(table);
    return {};
  }

  Defined<void> Add(const ColumnDefinition& column, bool if_not_exists) {
    if (table.columns.size() >= kColumnsMax) {
      return Invalid("Table '" + FullName(table) + "' has " + std::to_string(kColumnsMax) +
                     " columns and can have no more");
    }
    ORRERY_TRY(DataType type, Resolved(column.type, ScopeOf(in)));
    if (column.mask) {
      return Invalid(std::string(kNoMasks));
    }
    if (table.Find(column.name) != nullptr) {
      return if_not_exists ? Defined<void>()
                           : Invalid("Column with name '" + column.name + "' already exists");
    }
    if (column.is_static && table.clustering_columns == 0) {
      return Invalid(
          "Static columns are only useful (and thus allowed) if the table has at least one "
          "clustering column");
    }
    ORRERY_TRY_DEFINED(CheckDropped(column, type, table));
    bool counter = type.id() == TypeId::kCounter;
    if (!table.others().empty() && counter != table.counts()) {
      return Misconfigured(FullName(table) + ": Cannot have a " + (counter ? "" : "non ") +
                           "counter column (\"" + column.name + "\") in a " +
                           (counter ? "non counter column table" : "counter table"));
    }
    ColumnKind kind = column.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    table.columns.push_back({table.next_column++, column.name, type, kind});
    return {};
  }

  Defined<void> operator()(const DropColumns& drop) {
    ORRERY_TRY_DEFINED(CheckCount(drop.columns.size()));
    int64_t timestamp = now;
    if (drop.timestamp) {
      auto given = IntegerFromText<int64_t>(drop.timestamp->text);
      if (drop.timestamp->kind != ExpressionKind::kInteger || !given) {
        return Invalid("Invalid timestamp of dropped columns");
      }
      timestamp = *given;
    }
    for (const std::string& name : drop.columns) {
      ORRERY_TRY_DEFINED(Drop(name, drop.if_exists, timestamp));
    }
    return {};
  }

  Defined<void> Drop(const std::string& name, bool if_exists, int64_t timestamp) {
    auto at = std::ranges::find(table.columns, name, &Column::name);
    if (at == table.columns.end()) {
      return if_exists
                 ? Defined<void>()
                 : Invalid("Column " + name + " was not found in table '" + FullName(table) + "'");
    }
    if (at->is_key()) {
      return Invalid("Cannot drop PRIMARY KEY column " + name);
    }
    if (at->type.id() == TypeId::kUdt && at->type.multi_cell()) {
      return Invalid("Cannot drop non-frozen column " + name + " of user type " + at->type.ToCql());
    }
    ORRERY_TRY_DEFINED(CheckIndexes(name, "drop"));
    if (!ViewsOf(in, table.name).empty()) {
      return Invalid("Cannot drop column " + name + " on base table " + table.name +
                     " with materialized views");
    }
    std::erase_if(table.dropped, [&](const DroppedColumn& old) { return old.name == name; });
    table.dropped.push_back({.name = name,
                             .type = WithoutUserTypes(at->type),
                             .is_static = at->kind == ColumnKind::kStatic,
                             .timestamp = timestamp});
    table.columns.erase(at);
    return {};
  }

  Defined<void> CheckCount(size_t columns) {
    return columns <= kColumnsMax
               ? Defined<void>()
               : Invalid("a statement cannot name " + std::to_string(columns) + " columns");
  }

  Defined<void> CheckIndexes(const std::string& column, const std::string& what) {
    std::string names;
    for (const Index& index : table.indexes) {
      if (index.column == column) {
        names += (names.empty() ? "" : ", ") + index.name;
      }
    }
    return names.empty() ? Defined<void>()
                         : Invalid("Cannot " + what + " column " + column +
                                   " because it has dependent secondary indexes (" + names + ")");
  }

  Defined<void> operator()(const RenameColumns& rename) {
    ORRERY_TRY_DEFINED(CheckCount(rename.renames.size()));
    for (const auto& [from, to] : rename.renames) {
      ORRERY_TRY_DEFINED(RenameOne(from, to, rename.if_exists));
    }
    return {};
  }

  // Names are looked up as they were before the statement, and must not clash with those after it.
  Defined<void> RenameOne(const std::string& from, const std::string& to, bool if_exists) {
    const Column* old = before.Find(from);
    if (old == nullptr) {
      return if_exists ? Defined<void>()
                       : Invalid("Column " + from + " was not found in table " + FullName(table));
    }
    if (!old->is_key()) {
      return Invalid("Cannot rename non PRIMARY KEY column " + from);
    }
    if (before.Find(to) != nullptr || table.Find(to) != nullptr) {
      return Invalid("Cannot rename column " + from + " to " + to + " in table '" +
                     FullName(table) + "'; another column with that name already exists");
    }
    ORRERY_TRY_DEFINED(CheckIndexes(from, "rename"));
    if (!ViewsOf(in, table.name).empty()) {
      return Invalid("Cannot rename column " + from + " on base table " + table.name +
                     " with materialized views");
    }
    table.columns[static_cast<size_t>(old - before.columns.data())].name = to;
    return {};
  }

  Defined<void> operator()(const ChangeColumnType&) {
    return Invalid("Altering column types is no longer supported");
  }

  Defined<void> operator()(const MaskColumn& mask) {
    if (mask.mask) {
      return Invalid(std::string(kNoMasks));
    }
    bool there = table.Find(mask.column) != nullptr || mask.if_exists;
    return there ? Defined<void>()
                 : Invalid("Column with name '" + mask.column + "' doesn't exist on table '" +
                           table.name + "'");
  }

  Defined<void> operator()(const DropCompactStorage&) {
    return Invalid("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
  }

  Defined<void> operator()(const TableOptions& with) {
    if (std::ranges::find(with.options, "id", &Option::name) != with.options.end()) {
      return Misconfigured("Cannot alter table id.");
    }
    ORRERY_TRY_DEFINED(ApplyOptions(with.options, table));
    if (table.counts() && table.default_ttl > 0) {
      return Invalid("Cannot set default_time_to_live on a table with counters");
    }
    return {};
  }
};

}  // namespace

Defined<Table> AlteredTable(const AlterTable& alter, const Table& before, const Keyspace& in,
                            int64_t now) {
  if (before.view) {
    return Invalid(
        "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead");
  }
  Alteration alteration{.table = before, .before = before, .in = in, .now = now};
  ORRERY_TRY_DEFINED(std::visit(alteration, alter.change));
  return std::move(alteration.table);
}

}  // namespace orrery::cql
