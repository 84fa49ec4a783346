// The value of a column from its cells, and the paths of cells. Pure functions.
//
//   path of a set's or a map's cell: its element or key, as ordered_value.h has it
//        of a list's: time i64 (sign flipped), then a number u32: elements stand in their order
//        of a user type's: the place of the field, u16
//   value of a map's cell: the mapped value; of a set's: nothing
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cql/data_type.h"
#include "cql/row.h"

namespace orrery::cql {

std::string ElementPath(const DataType& element, std::string_view value);
std::string ListPath(int64_t time, uint32_t number);
std::string FieldPath(size_t field);

// The serialized value; nothing if there are no cells. `cells` are all of one column.
std::optional<std::string> AssembleValue(const DataType& type, std::span<const CellView> cells);
// The same without a copy, of a column with one cell that is no counter.
inline std::optional<std::string_view> SingleValue(std::span<const CellView> cells) {
  return cells.empty() ? std::nullopt : std::optional(cells.front().value);
}

// The cells of a column among those of a row, which are sorted by column.
std::span<const CellView> CellsOf(const LiveRow& row, uint32_t column);

}  // namespace orrery::cql
