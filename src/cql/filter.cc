#include "cql/filter.h"

#include <algorithm>

#include "cql/partition_token.h"
#include "cql/parts.h"
#include "cql/text.h"
#include "cql/value.h"

namespace orrery::cql {

std::string_view SignOf(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual: return "=";
    case Comparison::kNotEqual: return "!=";
    case Comparison::kLess: return "<";
    case Comparison::kLessEqual: return "<=";
    case Comparison::kGreater: return ">";
    case Comparison::kGreaterEqual: return ">=";
    case Comparison::kIn: return "IN";
    case Comparison::kContains: return "CONTAINS";
    case Comparison::kContainsKey: return "CONTAINS KEY";
    case Comparison::kLike: return "LIKE";
    case Comparison::kBetween: return "BETWEEN";
    case Comparison::kIsNotNull: return "IS NOT";
  }
  return "";
}

bool IsSlice(Comparison comparison) {
  return (comparison >= Comparison::kLess && comparison <= Comparison::kGreaterEqual) ||
         comparison == Comparison::kBetween;
}

namespace {

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

bool HoldsOrder(Comparison comparison, int order) {
  switch (comparison) {
    case Comparison::kNotEqual: return order != 0;
    case Comparison::kLess: return order < 0;
    case Comparison::kLessEqual: return order <= 0;
    case Comparison::kGreater: return order > 0;
    case Comparison::kGreaterEqual: return order >= 0;
    default: return order == 0;
  }
}

// Whether one of the parts at first, first + step... is the operand.
bool HasPart(const DataType& type, std::string_view value, std::string_view operand, size_t first,
             size_t step) {
  PartReader parts(type, value);
  while (parts.Next()) {
    if (parts.index() % step == first && parts.value() &&
        CompareValues(parts.type(), *parts.value(), operand) == 0) {
      return true;
    }
  }
  return false;
}

bool IsEmptyCollection(const DataType& type, std::string_view value) {
  return type.is_collection() && PartReader(type, value).count() == 0;
}

}  // namespace

bool Holds(Comparison comparison, const DataType& type, std::string_view value,
           std::string_view operand) {
  bool map = type.id() == TypeId::kMap;
  if (comparison == Comparison::kContains) {
    return HasPart(type, value, operand, map ? 1 : 0, map ? 2 : 1);
  }
  if (comparison == Comparison::kContainsKey) {
    return HasPart(type, value, operand, 0, 2);
  }
  return HoldsOrder(comparison, CompareValues(type, value, operand));
}

// ---- Prepare ----

Result<Filter> Filter::Prepare(const Relation& relation, const Table& table, Use use,
                               MarkerSpecs& markers, const TypeScope& scope) {
  Filter filter;
  filter.table_ = &table;
  filter.use_ = use;
  filter.target_ = relation.target;
  filter.comparison_ = relation.comparison;
  filter.in_marker_ = relation.in_marker;
  for (const std::string& name : relation.columns) {
    const Column* column = table.Find(name);
    if (column == nullptr) {
      return Error(Invalid("Undefined column name " + ToCql(QualifiedName{{}, name}) +
                           " in table " + ToCql(QualifiedName{table.keyspace, table.name})));
    }
    filter.columns_.push_back(static_cast<uint16_t>(column - table.columns.data()));
  }
  TermScope term_scope(scope, &table);
  ORRERY_TRY_STATUS(filter.Check(relation));
  ORRERY_TRY_STATUS(filter.SetTypes(relation, markers, term_scope));
  ORRERY_TRY_STATUS(filter.SetOperands(relation, markers, term_scope));
  return filter;
}

std::string Filter::Names() const {
  std::string names;
  for (uint16_t column : columns_) {
    names += (names.empty() ? "" : ",") + table_->columns[column].name;
  }
  return names;
}

Status Filter::Check(const Relation& relation) const {
  const Column& column = table_->columns[columns_.front()];
  if (use_ == Use::kCondition && column.is_key()) {
    return Invalid("PRIMARY KEY column '" + column.name + "' cannot have IF conditions");
  }
  if (use_ == Use::kCondition && column.type.id() == TypeId::kCounter) {
    return Invalid("Conditions on counters are not supported");
  }
  if (comparison_ == Comparison::kLike) {
    return Invalid("LIKE restriction is only supported on properly indexed columns. " +
                   ToCql(relation) + " is not valid.");
  }
  if (IsSlice(comparison_) && column.type.Contains(TypeId::kDuration)) {
    bool plain = column.type.id() == TypeId::kDuration;
    if (use_ == Use::kCondition) {
      return Invalid("Slice conditions ( " + std::string(SignOf(comparison_)) +
                     " ) are not supported on " +
                     (plain ? "durations" : "collections containing durations"));
    }
    return Invalid(std::string("Slice restrictions are not supported on ") +
                   (plain ? "duration columns" : "collections containing durations"));
  }
  return CheckTarget(relation);
}

Status Filter::CheckTarget(const Relation& relation) const {
  const Column& column = table_->columns[columns_.front()];
  if (comparison_ == Comparison::kContains && !column.type.is_collection()) {
    return Invalid("Cannot use CONTAINS on non-collection column " + column.name);
  }
  if (comparison_ == Comparison::kContainsKey && column.type.id() != TypeId::kMap) {
    return Invalid("Cannot use CONTAINS KEY on non-map column " + column.name);
  }
  if (target_ == RelationTarget::kElement) {
    if (use_ == Use::kWhere && column.type.id() == TypeId::kList) {
      return Invalid("Indexes on list entries (" + column.name +
                     "[index] = value) are not currently supported.");
    }
    if (use_ == Use::kWhere && column.type.id() != TypeId::kMap) {
      return Invalid("Column " + column.name + " cannot be used as a map");
    }
    if (!column.type.is_collection()) {
      return Invalid("Invalid element access syntax for non-collection column " + column.name);
    }
    if (column.type.id() == TypeId::kSet) {
      return Invalid("Invalid element access syntax for set column " + column.name);
    }
  }
  if (target_ == RelationTarget::kField) {
    if (column.type.id() != TypeId::kUdt) {
      return Invalid("Invalid operation (" + ToCql(relation) + ") for column " + column.name +
                     " of type " + column.type.ToCql());
    }
    if (!column.type.FieldIndex(relation.field)) {
      return Invalid("Unknown field " + relation.field + " for column " + column.name);
    }
  }
  return Status::Ok();
}

Status Filter::SetTypes(const Relation& relation, MarkerSpecs& markers, const TermScope& scope) {
  const Column& column = table_->columns[columns_.front()];
  receiver_ = {table_->keyspace, table_->name, column.name, column.type};
  switch (target_) {
    case RelationTarget::kColumn: break;
    case RelationTarget::kToken: receiver_ = TokenReceiver(receiver_); break;
    case RelationTarget::kTuple: {
      std::vector<DataType> types;
      for (uint16_t place : columns_) {
        types.push_back(table_->columns[place].type);
      }
      receiver_.name = "(" + Names() + ")";
      receiver_.type = DataType::Tuple(std::move(types));
      break;
    }
    case RelationTarget::kElement: {
      auto key =
          PrepareTerm(*relation.element, ElementReceiver(receiver_, /*key=*/true), markers, scope);
      if (!key) {
        return key.error();
      }
      element_ = *std::move(key);
      receiver_ = ElementReceiver(receiver_, /*key=*/false);
      break;
    }
    case RelationTarget::kField:
      field_ = *column.type.FieldIndex(relation.field);
      receiver_ = FieldReceiver(receiver_, field_);
      break;
  }
  type_ = receiver_.type;
  if (comparison_ == Comparison::kContains || comparison_ == Comparison::kContainsKey) {
    receiver_ = ElementReceiver(receiver_, comparison_ == Comparison::kContainsKey);
  }
  return Status::Ok();
}

Status Filter::AddOperand(const Expression& expression, const Receiver& receiver,
                          MarkerSpecs& markers, const TermScope& scope) {
  bool tuple = target_ == RelationTarget::kTuple && expression.kind == ExpressionKind::kTuple;
  if (tuple && expression.children.size() != columns_.size()) {
    return Invalid("Expected " + std::to_string(columns_.size()) +
                   " elements in value tuple, but got " +
                   std::to_string(expression.children.size()) + ": " + ToCql(expression));
  }
  auto term = PrepareTerm(expression, receiver, markers, scope);
  if (!term) {
    return term.error();
  }
  operands_.push_back(*std::move(term));
  return Status::Ok();
}

Status Filter::SetOperands(const Relation& relation, MarkerSpecs& markers, const TermScope& scope) {
  Receiver receiver = receiver_;
  if (in_marker_) {
    bool tuple = target_ == RelationTarget::kTuple;
    receiver = InReceiver(receiver);
    receiver.name = tuple ? "in" + receiver_.name : receiver.name;
  }
  for (const Expression& value : relation.values) {
    ORRERY_RETURN_IF_ERROR(AddOperand(value, receiver, markers, scope));
  }
  return Status::Ok();
}

// ---- Bind ----

// A value to compare with, if it may be one.
Result<std::optional<std::string>> Filter::Checked(Bound value) const {
  bool condition = use_ == Use::kCondition;
  if (value.is_unset()) {
    return Error(Invalid(condition ? "Invalid 'unset' value in condition"
                                   : "Invalid unset value for column " + Names()));
  }
  if (value.is_null() && !condition) {
    return Error(Invalid("Invalid null value in condition for column " + Names()));
  }
  bool may_be_null = comparison_ == Comparison::kEqual || comparison_ == Comparison::kNotEqual ||
                     comparison_ == Comparison::kIn;
  if (value.is_null() && !may_be_null) {
    return Error(Invalid("Invalid comparison with null for operator \"" +
                         std::string(SignOf(comparison_)) + "\""));
  }
  if (target_ == RelationTarget::kTuple && value.has_value()) {
    PartReader parts(type_, value.bytes());
    for (uint16_t column : columns_) {
      if (!parts.Next() || !parts.value()) {
        return Error(
            Invalid("Invalid null value in condition for column " + table_->columns[column].name));
      }
    }
  }
  return std::move(value).TakeValue();
}

Result<BoundFilter> Filter::Bind(const Bindings& bindings) const {
  BoundFilter bound(*this);
  if (element_) {
    ORRERY_TRY(Bound key, element_->Bind(bindings.markers, bindings.context));
    bool list = table_->columns[columns_.front()].type.id() == TypeId::kList;
    std::string what = list ? "list" : "map";
    if (key.is_unset()) {
      return Error(Invalid("Invalid unset value for " + what + " element access"));
    }
    if (!key.has_value()) {
      return Error(Invalid("Invalid null value for " + what + " element access"));
    }
    bound.element_ = std::string(key.bytes());
    if (list && bound.element_.size() == 4 && ReadInt(bound.element_) < 0) {
      return Error(
          Invalid("Invalid negative list index " + std::to_string(ReadInt(bound.element_))));
    }
  }
  for (const Term& operand : operands_) {
    ORRERY_TRY(Bound value, operand.Bind(bindings.markers, bindings.context));
    if (!in_marker_) {
      ORRERY_TRY(auto checked, Checked(std::move(value)));
      bound.operands_.push_back(std::move(checked));
      continue;
    }
    if (!value.has_value()) {
      return Error(Invalid(value.is_null() ? "Invalid null value for column " + Names()
                                           : "Invalid unset value for column " + Names()));
    }
    PartReader parts(operand.type(), value.bytes());
    while (parts.Next()) {
      bound.operands_.emplace_back(parts.value());
    }
  }
  return bound;
}

// ---- Match ----

std::optional<std::string_view> BoundFilter::ValueOf(const RowInput& row) const {
  std::optional<std::string_view> value = row.values[filter_->columns_.front()];
  const DataType& type = filter_->table_->columns[filter_->columns_.front()].type;
  if (!value) {
    return std::nullopt;
  }
  switch (filter_->target_) {
    case RelationTarget::kElement: return FindPart(type, *value, element_);
    case RelationTarget::kField: return FieldOf(type, *value, filter_->field_);
    default: return value;
  }
}

bool BoundFilter::MatchesOne(Comparison comparison, std::optional<std::string_view> value,
                             const std::optional<std::string>& operand) const {
  bool not_equal = comparison == Comparison::kNotEqual;
  if (!operand) {
    return value.has_value() == not_equal;
  }
  if (value) {
    return Holds(comparison, filter_->type_, *value, *operand);
  }
  if (filter_->use_ == Filter::Use::kWhere) {
    return false;
  }
  // A collection of many cells without any is null and empty at once.
  bool empty = filter_->type_.multi_cell() && IsEmptyCollection(filter_->type_, *operand);
  return not_equal ? !empty : comparison == Comparison::kEqual && empty;
}

bool BoundFilter::MatchesValue(std::optional<std::string_view> value) const {
  switch (filter_->comparison_) {
    case Comparison::kIsNotNull: return value.has_value();
    case Comparison::kIn:
      return std::ranges::any_of(operands_, [&](const std::optional<std::string>& operand) {
        return MatchesOne(Comparison::kEqual, value, operand);
      });
    case Comparison::kBetween:
      return MatchesOne(Comparison::kGreaterEqual, value, operands_[0]) &&
             MatchesOne(Comparison::kLessEqual, value, operands_[1]);
    default: return MatchesOne(filter_->comparison_, value, operands_[0]);
  }
}

// Column by column; the first that differs decides.
bool BoundFilter::MatchesTuple(const RowInput& row, Comparison comparison,
                               std::string_view operand) const {
  PartReader parts(filter_->type_, operand);
  for (uint16_t column : filter_->columns_) {
    const std::optional<std::string_view>& value = row.values[column];
    if (!parts.Next() || !parts.value() || !value) {
      return false;
    }
    if (int order = CompareValues(parts.type(), *value, *parts.value())) {
      return HoldsOrder(comparison, order);
    }
  }
  return HoldsOrder(comparison, 0);
}

bool BoundFilter::Matches(const RowInput& row) const {
  if (filter_->target_ == RelationTarget::kToken) {
    std::vector<std::optional<std::string_view>> key;
    for (uint16_t column : filter_->columns_) {
      key.push_back(row.values[column]);
    }
    auto token = TokenOf(key);
    std::string bytes = BigintBytes(token.value_or(0));
    return MatchesValue(token ? std::optional<std::string_view>(bytes) : std::nullopt);
  }
  if (filter_->target_ != RelationTarget::kTuple) {
    return MatchesValue(ValueOf(row));
  }
  auto matches = [&](Comparison comparison, const std::optional<std::string>& operand) {
    return operand && MatchesTuple(row, comparison, *operand);
  };
  switch (filter_->comparison_) {
    case Comparison::kIn:
      return std::ranges::any_of(
          operands_, [&](const auto& operand) { return matches(Comparison::kEqual, operand); });
    case Comparison::kBetween:
      return matches(Comparison::kGreaterEqual, operands_[0]) &&
             matches(Comparison::kLessEqual, operands_[1]);
    default: return matches(filter_->comparison_, operands_[0]);
  }
}

}  // namespace orrery::cql
