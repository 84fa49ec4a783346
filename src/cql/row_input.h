// One row, as selections and filters look at it. Views; nothing is owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::cql {

// When a cell was written, and how long it has to live.
struct CellTimes {
  int64_t timestamp = 0;       // microseconds
  std::optional<int32_t> ttl;  // seconds that are left
};

// Knows the times of the cells of a row. Columns go by their place in Table::columns.
class RowTimes {
 public:
  virtual ~RowTimes() = default;
  // Of a column with one cell; nothing if it has none.
  virtual std::optional<CellTimes> Of(size_t column) const = 0;
  // Of a column with many: of each part of its value, in the order of that; of a user type of each
  // field, nothing for those without a value.
  virtual std::vector<std::optional<CellTimes>> OfParts(size_t column) const = 0;
};

struct RowInput {
  // One for each of Table::columns. Columns with many cells are assembled to one value; without any
  // they are null. Those that are not needed may be null.
  std::span<const std::optional<std::string_view>> values;
  const RowTimes* times = nullptr;  // only for those who ask for them
};

}  // namespace orrery::cql
