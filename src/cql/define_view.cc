#include <algorithm>
#include <set>

#include "base/random.h"
#include "cql/define_parts.h"
#include "cql/schema_document.h"
#include "cql/term.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

// The definition of one view.
class Definer {
 public:
  Definer(const CreateView& create, const Table& base, const Keyspace& in)
      : create_(create), base_(base), in_(in) {}

  Defined<Table> Run(std::string id);

 private:
  Defined<void> CheckBase() const;
  // The names of the columns that are selected.
  Defined<std::set<std::string>> Selected() const;
  Defined<void> AddKey(const std::string& name, ColumnKind kind);
  Defined<void> AddKeys();
  Defined<void> ApplyOrder();
  Defined<void> AddOthers();
  Defined<void> AddWhere();
  Defined<void> AddFilter(const Relation& relation, const Column& column);

  const CreateView& create_;
  const Table& base_;
  const Keyspace& in_;
  Table view_;
  std::set<std::string> keys_;
};

Defined<void> Definer::CheckBase() const {
  if (base_.view) {
    return Invalid("Materialized views cannot be created against other materialized views");
  }
  if (base_.counts()) {
    return Invalid("Materialized views are not supported on counter tables");
  }
  if (create_.primary_keys.size() != 1) {
    return Invalid(std::string(create_.primary_keys.empty() ? "No" : "Multiple") +
                   " PRIMARY KEY specified for view '" + create_.view.name +
                   "' (exactly one required)");
  }
  if (create_.with.compact_storage) {
    return Invalid("COMPACT STORAGE tables are not supported");
  }
  if (!IsGoodName(create_.view.name)) {
    return Misconfigured(in_.name + "." + create_.view.name + ": " +
                         BadName("Table", "\"" + create_.view.name + "\""));
  }
  return {};
}

Defined<std::set<std::string>> Definer::Selected() const {
  std::set<std::string> names;
  for (const Selector& selector : create_.selectors) {
    if (selector.alias) {
      return Invalid("Cannot use aliases when defining a materialized view (got '" +
                     ToCql(selector.expression) + " AS " + *selector.alias + "')");
    }
    if (selector.expression.kind != ExpressionKind::kColumn) {
      return Invalid("Can only select columns by name when defining a materialized view (got " +
                     ToCql(selector.expression) + ")");
    }
    const std::string& name = selector.expression.text;
    if (base_.Find(name) == nullptr) {
      return Invalid("Undefined column name " + QuotedName(name) + " in table " + FullName(base_));
    }
    names.insert(name);
  }
  return names;
}

Defined<void> Definer::AddKey(const std::string& name, ColumnKind kind) {
  const Column* column = base_.Find(name);
  if (column == nullptr) {
    return Invalid("Unknown column '" + name +
                   "' referenced in PRIMARY KEY for materialized view '" + create_.view.name + "'");
  }
  if (!keys_.insert(name).second) {
    return Invalid("Duplicate column '" + name + "' in PRIMARY KEY clause for materialized view '" +
                   create_.view.name + "'");
  }
  if (column->type.multi_cell()) {
    return Invalid("Invalid non-frozen type '" + column->type.ToCql() +
                   "' for PRIMARY KEY column '" + name + "'");
  }
  if (column->type.Contains(TypeId::kDuration)) {
    return Invalid("duration type is not supported for PRIMARY KEY column '" + name + "'");
  }
  if (column->kind == ColumnKind::kStatic) {
    return Invalid("Static column '" + name + "' cannot be part of the PRIMARY KEY");
  }
  view_.columns.push_back({column->id, name, column->type, kind});
  return {};
}

Defined<void> Definer::AddKeys() {
  const PrimaryKey& key = create_.primary_keys.front();
  for (const std::string& name : key.partition) {
    ORRERY_TRY_DEFINED(AddKey(name, ColumnKind::kPartitionKey));
  }
  for (const std::string& name : key.clustering) {
    ORRERY_TRY_DEFINED(AddKey(name, ColumnKind::kClustering));
  }
  view_.partition_columns = key.partition.size();
  view_.clustering_columns = key.clustering.size();
  std::vector<std::string> missing;
  std::vector<std::string> added;
  for (const Column& column : base_.columns) {
    if (column.is_key() && !keys_.contains(column.name)) {
      missing.push_back(column.name);
    } else if (!column.is_key() && keys_.contains(column.name)) {
      added.push_back(column.name);
    }
  }
  if (!missing.empty()) {
    return Invalid("Cannot create Materialized View " + create_.view.name +
                   " without primary key columns from base " + base_.name + " (" + Listed(missing) +
                   ")");
  }
  if (added.size() > 1) {
    return Invalid(
        "Cannot include more than one non-primary key column in materialized view primary key "
        "(got " +
        Listed(added) + ")");
  }
  return ApplyOrder();
}

Defined<void> Definer::ApplyOrder() {
  const auto& order = create_.with.clustering_order;
  if (order.size() > view_.clustering_columns) {
    return Invalid("Only clustering columns can be defined in CLUSTERING ORDER directive");
  }
  for (size_t i = 0; i < order.size(); ++i) {
    Column& column = view_.columns[view_.partition_columns + i];
    if (order[i].column != column.name) {
      return Invalid("Missing CLUSTERING ORDER for column " + column.name);
    }
    column.descending = order[i].descending;
  }
  return {};
}

Defined<void> Definer::AddOthers() {
  ORRERY_TRY(std::set<std::string> selected, Selected());
  for (const Column& column : base_.others()) {
    if (keys_.contains(column.name) ||
        (!create_.selectors.empty() && !selected.contains(column.name))) {
      continue;
    }
    if (column.kind == ColumnKind::kStatic) {
      return Invalid("Unable to include static column '" + column.name +
                     "' which would be included by Materialized View SELECT * statement");
    }
    view_.columns.push_back({column.id, column.name, column.type, ColumnKind::kRegular});
  }
  view_.next_column = base_.next_column;
  SortColumns(view_);
  return {};
}

Defined<void> Definer::AddFilter(const Relation& relation, const Column& column) {
  if (relation.target != RelationTarget::kColumn ||
      relation.comparison > Comparison::kGreaterEqual || relation.values.size() != 1) {
    return Invalid(
        "The WHERE of a materialized view compares columns with =, !=, <, <=, >, >= (got " +
        column.name + ")");
  }
  const TypeScope scope = ScopeOf(in_);
  MarkerSpecs markers;
  auto term = PrepareTerm(relation.values[0], {in_.name, base_.name, column.name, column.type},
                          markers, TermScope(scope, &base_));
  if (!term) {
    return Invalid(term.error().message());
  }
  SeededRandom random(1);
  FunctionContext context{.now_micros = 0, .random = &random};
  auto bound = term->Bind({}, context);
  if (!bound || !bound->has_value()) {
    return Invalid(bound ? "Invalid null value in condition for column " + column.name
                         : bound.error().message());
  }
  view_.view->filters.push_back({column.id, relation.comparison, std::string(bound->bytes())});
  return {};
}

Defined<void> Definer::AddWhere() {
  std::set<std::string> restricted;
  if (!create_.where.index_relations.empty()) {
    return Invalid("Index expressions cannot be used in the WHERE of a materialized view");
  }
  for (const Relation& relation : create_.where.relations) {
    const Column* column = relation.columns.empty() ? nullptr : base_.Find(relation.columns[0]);
    if (column == nullptr) {
      return Invalid("Undefined column name " +
                     QuotedName(relation.columns.empty() ? "" : relation.columns[0]) +
                     " in table " + FullName(base_));
    }
    restricted.insert(column->name);
    const bool not_null = relation.comparison == Comparison::kIsNotNull;
    if (!not_null && !keys_.contains(column->name)) {
      return Invalid("Non-primary key columns can only be restricted with 'IS NOT NULL' (got: " +
                     column->name + " restricted illegally)");
    }
    if (!not_null) {
      ORRERY_TRY_DEFINED(AddFilter(relation, *column));
    }
  }
  for (const Column& column : view_.columns) {
    if (column.is_key() && !restricted.contains(column.name)) {
      return Invalid("Primary key column '" + column.name +
                     "' is required to be filtered by 'IS NOT NULL'");
    }
  }
  view_.view->where = ToCql(create_.where);
  return {};
}

Defined<Table> Definer::Run(std::string id) {
  ORRERY_TRY_DEFINED(CheckBase());
  view_.keyspace = in_.name;
  view_.name = create_.view.name;
  view_.id = std::move(id);
  view_.view = View{.base = base_.name, .where = {}, .all_columns = create_.selectors.empty()};
  ORRERY_TRY_DEFINED(ApplyOptions(create_.with.options, view_));
  if (view_.default_ttl != 0) {
    return Invalid(
        "Cannot set default_time_to_live for a materialized view. Data in a materialized "
        "view always expire at the same time than the corresponding data in the parent "
        "table.");
  }
  ORRERY_TRY_DEFINED(AddKeys());
  ORRERY_TRY_DEFINED(AddOthers());
  ORRERY_TRY_DEFINED(AddWhere());
  return std::move(view_);
}

}  // namespace

Defined<Table> DefineView(const CreateView& create, const Table& base, const Keyspace& in,
                          std::string id) {
  return Definer(create, base, in).Run(std::move(id));
}

Defined<Table> AlteredView(const AlterView& alter, const Table& before) {
  Table after = before;
  ORRERY_TRY_DEFINED(ApplyOptions(alter.with.options, after));
  if (after.default_ttl != 0) {
    return Invalid(
        "Cannot set or alter default_time_to_live for a materialized view. Data in a "
        "materialized view always expire at the same time than the corresponding data in "
        "the parent table.");
  }
  return after;
}

std::vector<const Table*> ViewsOf(const Keyspace& keyspace, std::string_view base) {
  std::vector<const Table*> views;
  for (const auto& [name, table] : keyspace.tables) {
    if (table.view && table.view->base == base) {
      views.push_back(&table);
    }
  }
  return views;
}

Table ViewAfter(const Table& view, const Table& base) {
  Table after = view;
  if (view.view->all_columns) {
    for (const Column& column : base.others()) {
      auto same = std::ranges::find(after.columns, column.id, &Column::id);
      if (same == after.columns.end() && column.kind == ColumnKind::kRegular) {
        after.columns.push_back({column.id, column.name, column.type, ColumnKind::kRegular});
      }
    }
    SortColumns(after);
  }
  after.next_column = base.next_column;
  return after;
}

}  // namespace orrery::cql
