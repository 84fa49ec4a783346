#include "rows/condition.h"

#include "cql/assemble.h"
#include "cql/filter.h"
#include "cql/value.h"

namespace orrery::rows {

using cql::Comparison;
using cql::DataType;
using cql::TypeId;

namespace {

using MaybeView = std::optional<std::string_view>;

// A part of a value and its type.
struct ValuePart {
  DataType type;
  std::optional<std::string> value;
};

bool Equal(const DataType& type, MaybeView a, MaybeView b) {
  return a.has_value() == b.has_value() && (!a || cql::CompareValues(type, *a, *b) == 0);
}

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
  if (comparison == Comparison::kEqual || comparison == Comparison::kNotEqual) {
    return Equal(type, value, operand) == (comparison == Comparison::kEqual);
  }
  return value && operand && cql::Holds(comparison, type, *value, *operand);
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
