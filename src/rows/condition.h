// Conditions of writes, and filters of reads, on values as they are.
#pragma once

#include <optional>
#include <string_view>

#include "cql/row.h"
#include "rows/rows.h"

namespace orrery::rows {

using MaybeView = std::optional<std::string_view>;

// Whether a value compares so to the operands. Null equals null, and is neither above nor below
// anything.
bool Compare(cql::Comparison comparison, const cql::DataType& type, MaybeView value,
             const std::vector<std::optional<std::string>>& operands);

// A part of a value and its type.
struct ValuePart {
  cql::DataType type;
  std::optional<std::string> value;
};
// Of a map by its key, of a list by its position (an int).
ValuePart ElementOf(const cql::DataType& type, MaybeView collection, std::string_view element);

// Whether a term holds for a row (an empty one if there is none).
bool Holds(const CellCondition& condition, const cql::LiveRow& row);

}  // namespace orrery::rows
