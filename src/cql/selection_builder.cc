#include "cql/selection_builder.h"

#include "cql/term.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}
Status InvalidStatus(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}

std::string_view TimesName(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::kWritetime: return "writetime";
    case ExpressionKind::kMaxWritetime: return "maxwritetime";
    default: return "ttl";
  }
}

std::string Names(const Expression& expression, std::string_view open, std::string_view close) {
  std::string names(open);
  for (size_t i = 0; i < expression.children.size(); ++i) {
    bool value = i % 2 == 1 && (expression.kind == ExpressionKind::kMap ||
                                expression.kind == ExpressionKind::kUser);
    names += i == 0 ? "" : value ? ": " : ", ";
    names += NameOf(expression.children[i]);
  }
  return names.append(close);
}

// All columns that are named anywhere in it.
void ColumnsIn(const Expression& expression, std::vector<const Expression*>& out) {
  if (expression.kind == ExpressionKind::kColumn) {
    out.push_back(&expression);
  }
  for (const Expression& child : expression.children) {
    ColumnsIn(child, out);
  }
}

}  // namespace

std::string NameOf(const Expression& expression) {
  const auto& children = expression.children;
  switch (expression.kind) {
    case ExpressionKind::kColumn: return expression.text;
    case ExpressionKind::kField: return NameOf(children[0]) + "." + expression.text;
    case ExpressionKind::kElement: return NameOf(children[0]) + "[" + NameOf(children[1]) + "]";
    case ExpressionKind::kSlice:
      return NameOf(children[0]) + "[" + NameOf(children[1]) + ".." + NameOf(children[2]) + "]";
    case ExpressionKind::kAbsent: return "";
    case ExpressionKind::kCall:
      return (expression.keyspace.empty() ? "system" : expression.keyspace) + "." +
             Names(expression, expression.text + "(", ")");
    case ExpressionKind::kCountRows: return "count";
    case ExpressionKind::kWritetime:
    case ExpressionKind::kMaxWritetime:
    case ExpressionKind::kTtl:
      return Names(expression, std::string(TimesName(expression.kind)) + "(", ")");
    case ExpressionKind::kCast:
      return "cast(" + NameOf(children[0]) + " as " + ToCql(*expression.type) + ")";
    case ExpressionKind::kHint: return "(" + ToCql(*expression.type) + ")" + NameOf(children[0]);
    case ExpressionKind::kNegate: return "-" + NameOf(children[0]);
    case ExpressionKind::kChain: {
      std::string name = NameOf(children[0]);
      for (size_t i = 1; i < children.size(); ++i) {
        name += std::string(" ") + SignOf(children[i].joint) + " " + NameOf(children[i]);
      }
      return name;
    }
    case ExpressionKind::kList: return Names(expression, "[", "]");
    case ExpressionKind::kSet:
    case ExpressionKind::kMap:
    case ExpressionKind::kUser: return Names(expression, "{", "}");
    case ExpressionKind::kTuple:
      return children.size() == 1 ? NameOf(children[0]) : Names(expression, "(", ")");
    default: return ToCql(expression);
  }
}

SelectionBuilder::SelectionBuilder(const Table& table, MarkerSpecs& markers, const TypeScope& scope)
    : table_(table), compiler_(scope, &table, markers, this) {
  selection_.needed_.resize(table.columns.size());
}

Result<Selection> SelectionBuilder::Build(const Select& select,
                                          const std::function<bool(const Column&)>& fixed) {
  selection_.json_ = select.json;
  if (select.selectors.empty()) {
    AddAll();
  }
  for (const Selector& selector : select.selectors) {
    ORRERY_TRY_STATUS(AddSelector(selector));
  }
  ORRERY_TRY_STATUS(AddGroupBy(select, fixed));
  Finish(select);
  return std::move(selection_);
}

Receiver SelectionBuilder::Place(std::string name, DataType type) const {
  return {table_.keyspace, table_.name, std::move(name), std::move(type)};
}

void SelectionBuilder::AddAll() {
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    const Column& column = table_.columns[i];
    selection_.parts_.push_back({column.name, ColumnNode(column.type, static_cast<uint16_t>(i))});
    selection_.needed_[i] = true;
  }
}

Status SelectionBuilder::AddSelector(const Selector& selector) {
  aggregated_ = false;
  std::string name = NameOf(selector.expression);
  auto node = compiler_.CompileAny(selector.expression, Place(name));
  if (!node) {
    return node.error();
  }
  selection_.parts_.push_back(
      {selector.alias.value_or(std::move(name)), *std::move(node), aggregated_});
  return Status::Ok();
}

Status SelectionBuilder::AddGroupBy(const Select& select,
                                    const std::function<bool(const Column&)>& fixed) {
  constexpr std::string_view kOrder =
      "Group by currently only support groups of columns following their declared order in the "
      "PRIMARY KEY";
  size_t keys = table_.partition_columns + table_.clustering_columns;
  size_t next = 0;
  for (const Expression& expression : select.group_by) {
    std::vector<const Expression*> columns;
    ColumnsIn(expression, columns);
    if (columns.size() != 1) {
      return InvalidStatus(
          "Group by is currently only supported on the columns of the PRIMARY KEY, got " +
          NameOf(expression));
    }
    auto column = FindColumn(columns.front()->text);
    if (!column) {
      return column.error();
    }
    if (!(*column)->is_key()) {
      return InvalidStatus(
          "Group by is currently only supported on the columns of the PRIMARY KEY, got " +
          (*column)->name);
    }
    size_t place = PlaceOf(**column);
    for (; next < place; ++next) {
      if (!fixed || !fixed(table_.columns[next])) {
        return InvalidStatus(std::string(kOrder));
      }
    }
    if (next != place || next == keys) {
      return InvalidStatus(std::string(kOrder));
    }
    ++next;
    auto node = compiler_.CompileAny(expression, Place(NameOf(expression)));
    if (!node) {
      return node.error();
    }
    selection_.group_by_.push_back(*std::move(node));
  }
  if (!select.group_by.empty() && next < table_.partition_columns) {
    return InvalidStatus("Group by is not supported on only a part of the partition key");
  }
  return Status::Ok();
}

void SelectionBuilder::Finish(const Select& select) {
  bool plain = !selection_.json_ && !selection_.grouped();
  std::vector<uint16_t> places;
  for (size_t i = 0; i < selection_.parts_.size() && plain; ++i) {
    const Expression* bare =
        select.selectors.empty() ? nullptr : &Bare(select.selectors[i].expression);
    plain = bare == nullptr || bare->kind == ExpressionKind::kColumn;
    places.push_back(bare == nullptr ? static_cast<uint16_t>(i)
                     : plain         ? PlaceOf(*table_.Find(bare->text))
                                     : 0);
  }
  if (plain) {
    selection_.plain_ = std::move(places);
  }
  if (selection_.json_) {
    selection_.columns_ = {Place("[json]", TypeId::kText)};
  } else {
    for (const auto& part : selection_.parts_) {
      selection_.columns_.push_back(Place(part.name, part.node->type()));
    }
  }
  selection_.only_partition_key_ = selection_.only_static_ = true;
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    if (selection_.needed_[i] && table_.columns[i].kind != ColumnKind::kPartitionKey) {
      selection_.only_partition_key_ = false;
      selection_.only_static_ &= table_.columns[i].kind == ColumnKind::kStatic;
    }
  }
}

Result<const Column*> SelectionBuilder::FindColumn(std::string_view name) const {
  const Column* column = table_.Find(name);
  if (column == nullptr) {
    return Invalid("Undefined column name " + ToCql(QualifiedName{{}, std::string(name)}) +
                   " in table " + ToCql(QualifiedName{table_.keyspace, table_.name}));
  }
  return column;
}

uint16_t SelectionBuilder::PlaceOf(const Column& column) const {
  return static_cast<uint16_t>(&column - table_.columns.data());
}

bool SelectionBuilder::Knows(const Expression& expression) const {
  switch (expression.kind) {
    case ExpressionKind::kColumn:
    case ExpressionKind::kElement:
    case ExpressionKind::kSlice:
    case ExpressionKind::kField:
    case ExpressionKind::kCountRows:
    case ExpressionKind::kWritetime:
    case ExpressionKind::kMaxWritetime:
    case ExpressionKind::kTtl: return true;
    case ExpressionKind::kCall: return IsAggregate(expression.keyspace, expression.text);
    default: return false;
  }
}

std::optional<DataType> SelectionBuilder::TypeOf(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kColumn: {
      const Column* column = table_.Find(expression.text);
      return column != nullptr ? std::optional(column->type) : std::nullopt;
    }
    case ExpressionKind::kElement: {
      auto whole = compiler_.TypeOf(expression.children[0]);
      return whole && whole->is_collection() ? std::optional(whole->parameters().back())
                                             : std::nullopt;
    }
    case ExpressionKind::kSlice: return compiler_.TypeOf(expression.children[0]);
    case ExpressionKind::kField: {
      auto whole = compiler_.TypeOf(expression.children[0]);
      auto field =
          whole && whole->id() == TypeId::kUdt ? whole->FieldIndex(expression.text) : std::nullopt;
      return field ? std::optional(whole->parameters()[*field]) : std::nullopt;
    }
    case ExpressionKind::kCountRows: return TypeId::kBigint;
    case ExpressionKind::kWritetime:
    case ExpressionKind::kMaxWritetime:
    case ExpressionKind::kTtl: return TypeOfTimes(expression);
    default: {
      std::vector<Argument> arguments;
      for (const Expression& child : expression.children) {
        arguments.push_back(compiler_.ArgumentOf(child));
      }
      auto function =
          FindAggregate({.keyspace = expression.keyspace, .name = expression.text}, arguments);
      return function ? std::optional((*function)->result) : std::nullopt;
    }
  }
}

Result<NodePtr> SelectionBuilder::Compile(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kColumn: return CompileColumn(expression);
    case ExpressionKind::kElement:
    case ExpressionKind::kSlice: return CompileElement(expression);
    case ExpressionKind::kField: return CompileField(expression);
    case ExpressionKind::kWritetime:
    case ExpressionKind::kMaxWritetime:
    case ExpressionKind::kTtl: return CompileTimes(expression);
    default: return CompileAggregate(expression);
  }
}

Result<NodePtr> SelectionBuilder::CompileColumn(const Expression& expression) {
  ORRERY_TRY(const Column* column, FindColumn(expression.text));
  uint16_t place = PlaceOf(*column);
  selection_.needed_[place] = true;
  return ColumnNode(column->type, place);
}

Result<NodePtr> SelectionBuilder::CompileBound(const Expression& key, const NodePtr& whole,
                                               std::string name) {
  if (key.kind == ExpressionKind::kAbsent) {
    return NodePtr();
  }
  return compiler_.Compile(key, ElementReceiver(Place(std::move(name), whole->type()),
                                                /*key=*/true));
}

// m['k'], s[1..2]
Result<NodePtr> SelectionBuilder::CompileElement(const Expression& expression) {
  bool slice = expression.kind == ExpressionKind::kSlice;
  std::string name = NameOf(expression.children[0]);
  std::string what = slice ? "Slice" : "Element";
  ORRERY_TRY(NodePtr whole, compiler_.CompileAny(expression.children[0], Place(name)));
  if (!whole->type().is_collection()) {
    return Invalid("Invalid " + std::string(slice ? "slice" : "element") + " selection: " + name +
                   " is not a collection");
  }
  if (whole->type().id() == TypeId::kList) {
    return Invalid(what + " selection is only allowed on sets and maps, but " + name +
                   " is a list");
  }
  ORRERY_TRY(NodePtr first, CompileBound(expression.children[1], whole, name));
  if (!slice) {
    return ElementNode(std::move(whole), std::move(first));
  }
  ORRERY_TRY(NodePtr last, CompileBound(expression.children[2], whole, name));
  return SliceNode(std::move(whole), std::move(first), std::move(last));
}

Result<NodePtr> SelectionBuilder::CompileField(const Expression& expression) {
  std::string name = NameOf(expression.children[0]);
  ORRERY_TRY(NodePtr whole, compiler_.CompileAny(expression.children[0], Place(name)));
  if (whole->type().id() != TypeId::kUdt) {
    return Invalid("Invalid field selection: " + name + " of type " + whole->type().ToCql() +
                   " is not a user type");
  }
  auto field = whole->type().FieldIndex(expression.text);
  if (!field) {
    return Invalid(name + " of type " + whole->type().ToCql() + " has no field " + expression.text);
  }
  return FieldNode(std::move(whole), *field);
}

std::optional<DataType> SelectionBuilder::TypeOfTimes(const Expression& expression) {
  const Expression& of = expression.children.front();
  std::vector<const Expression*> columns;
  ColumnsIn(of, columns);
  const Column* column = columns.empty() ? nullptr : table_.Find(columns.front()->text);
  if (column == nullptr) {
    return std::nullopt;
  }
  bool one = of.kind == ExpressionKind::kElement || of.kind == ExpressionKind::kField ||
             expression.kind == ExpressionKind::kMaxWritetime || !column->type.multi_cell();
  DataType type = expression.kind == ExpressionKind::kTtl ? TypeId::kInt : TypeId::kBigint;
  return one ? type : DataType::List(type);
}

Result<NodePtr> SelectionBuilder::CompileTimes(const Expression& expression) {
  const Expression& of = expression.children.front();
  std::string function(TimesName(expression.kind));
  const Expression& whole = of.kind == ExpressionKind::kColumn ? of : of.children.front();
  if (whole.kind != ExpressionKind::kColumn) {
    return Invalid("Cannot use selection function " + function + " on " + NameOf(of));
  }
  ORRERY_TRY(const Column* column, FindColumn(whole.text));
  if (column->is_key()) {
    return Invalid("Cannot use selection function " + function + " on PRIMARY KEY part " +
                   column->name);
  }
  TimesOf times{.kind = expression.kind == ExpressionKind::kWritetime ? TimesKind::kWritetime
                        : expression.kind == ExpressionKind::kTtl     ? TimesKind::kTtl
                                                                      : TimesKind::kMaxWritetime,
                .column = PlaceOf(*column),
                .type = column->type};
  selection_.needed_[times.column] = true;
  selection_.needs_times_ = true;
  NodePtr value = ColumnNode(column->type, times.column);
  if (of.kind == ExpressionKind::kElement || of.kind == ExpressionKind::kSlice) {
    ORRERY_TRY(NodePtr checked, CompileElement(of));  // says what is wrong
    times.slice = of.kind == ExpressionKind::kSlice;
    ORRERY_TRY(NodePtr first, CompileBound(of.children[1], value, column->name));
    if (times.slice) {
      times.lower = std::move(first);
      ORRERY_TRY(times.upper, CompileBound(of.children[2], value, column->name));
    } else {
      times.element = std::move(first);
    }
  } else if (of.kind == ExpressionKind::kField) {
    ORRERY_TRY(NodePtr checked, CompileField(of));
    times.field = column->type.FieldIndex(of.text);
  }
  return TimesNode(std::move(times));
}

Result<NodePtr> SelectionBuilder::CompileAggregate(const Expression& expression) {
  if (in_aggregate_) {
    return Invalid("aggregate functions cannot be used as arguments of aggregate functions");
  }
  aggregated_ = true;
  AggregatePtr function = CountRows();
  NodePtr argument;
  if (expression.kind == ExpressionKind::kCall) {
    std::vector<Argument> arguments;
    for (const Expression& child : expression.children) {
      arguments.push_back(compiler_.ArgumentOf(child));
    }
    ORRERY_TRY(function, FindAggregate({.keyspace = expression.keyspace, .name = expression.text},
                                       arguments));
    in_aggregate_ = true;
    auto node =
        compiler_.Compile(Bare(expression.children.front()),
                          Place("arg0(system." + function->name + ")", *function->argument));
    in_aggregate_ = false;
    if (!node) {
      return Error(node.error());
    }
    argument = *std::move(node);
  }
  DataType type = function->result;
  selection_.aggregates_.push_back({std::move(function), std::move(argument)});
  return AggregateNode(std::move(type), selection_.aggregates_.size() - 1);
}

}  // namespace orrery::cql
