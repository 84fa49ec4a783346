#include "rows/condition.h"

#include "cql/assemble.h"
#include "cql/value.h"

namespace orrery::rows {

using cql::Comparison;
using cql::DataType;
using cql::TypeId;

namespace {

bool Equal(const DataType& type, MaybeView a, MaybeView b) {
  return a.has_value() == b.has_value() && (!a || cql::CompareValues(type, *a, *b) == 0);
}

// Of a collection: whether one of its elements, keys or values is this one.
bool Contains(const DataType& type, MaybeView collection, MaybeView wanted, bool keys) {
  if (!collection || !wanted) {
    return false;
  }
  const bool map = type.id() == TypeId::kMap;
  for (cql::PartReader part(type, *collection); part.Next();) {
    bool is_key = map && part.index() % 2 == 0;
    if (is_key == (map && keys) && Equal(part.type(), part.value(), wanted)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool Compare(Comparison comparison, const DataType& type, MaybeView value,
             const std::vector<std::optional<std::string>>& operands) {
  if (comparison == Comparison::kIn) {
    for (const auto& operand : operands) {
      if (Equal(type, value, operand)) {
        return true;
      }
    }
    return false;
  }
  const MaybeView operand = operands.empty() ? std::nullopt : MaybeView(operands.front());
  switch (comparison) {
    case Comparison::kEqual: return Equal(type, value, operand);
    case Comparison::kNotEqual: return !Equal(type, value, operand);
    case Comparison::kContains: return Contains(type, value, operand, false);
    case Comparison::kContainsKey: return Contains(type, value, operand, true);
    default: break;
  }
  if (!value || !operand) {
    return false;
  }
  const int order = cql::CompareValues(type, *value, *operand);
  switch (comparison) {
    case Comparison::kLess: return order < 0;
    case Comparison::kLessEqual: return order <= 0;
    case Comparison::kGreater: return order > 0;
    case Comparison::kGreaterEqual: return order >= 0;
    case Comparison::kBetween:
      return order >= 0 && operands.size() == 2 && operands[1] &&
             cql::CompareValues(type, *value, *operands[1]) <= 0;
    default: return false;
  }
}

ValuePart ElementOf(const DataType& type, MaybeView collection, std::string_view element) {
  const bool map = type.id() == TypeId::kMap;
  ValuePart found{.type = map ? type.mapped() : type.element()};
  if (!collection) {
    return found;
  }
  const int64_t position = map ? 0 : cql::ReadInt(element);
  bool next = false;
  for (cql::PartReader part(type, *collection); part.Next();) {
    if (next || (!map && static_cast<int64_t>(part.index()) == position)) {
      found.value = part.value();
      return found;
    }
    next = map && part.index() % 2 == 0 &&
           cql::CompareValues(part.type(), *part.value(), element) == 0;
  }
  return found;
}

namespace {

ValuePart FieldOf(const DataType& type, MaybeView value, size_t field) {
  ValuePart found{.type = type.parameters()[field]};
  if (!value) {
    return found;
  }
  for (cql::PartReader part(type, *value); part.Next();) {
    if (part.index() == field) {
      found.value = part.value();
    }
  }
  return found;
}

}  // namespace

bool Holds(const CellCondition& condition, const cql::LiveRow& row) {
  std::optional<std::string> value =
      cql::AssembleValue(condition.type, cql::CellsOf(row, condition.column));
  switch (condition.part) {
    case CellCondition::Part::kAll:
      return Compare(condition.comparison, condition.type, value, condition.values);
    case CellCondition::Part::kElement: {
      ValuePart part = ElementOf(condition.type, value, condition.element);
      return Compare(condition.comparison, part.type, part.value, condition.values);
    }
    case CellCondition::Part::kField: {
      ValuePart part = FieldOf(condition.type, value, condition.field);
      return Compare(condition.comparison, part.type, part.value, condition.values);
    }
  }
  return false;
}

}  // namespace orrery::rows
