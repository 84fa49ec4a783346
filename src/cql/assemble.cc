#include "cql/assemble.h"

#include <algorithm>

#include "base/bytes.h"
#include "cql/ordered_value.h"
#include "cql/value.h"

namespace orrery::cql {

std::string ElementPath(const DataType& element, std::string_view value) {
  std::string path;
  AppendOrderedValue(element, value, false, path);
  return path;
}

std::string ListPath(int64_t time, uint32_t number) {
  std::string path;
  Encoder encoder(path);
  encoder.U64(static_cast<uint64_t>(time) ^ uint64_t{1} << 63);
  encoder.U32(number);
  return path;
}

std::string FieldPath(size_t field) {
  return {static_cast<char>(field >> 8), static_cast<char>(field)};
}

namespace {

std::string KeyOf(const DataType& type, std::string_view path) {
  std::optional<std::string> key;
  return TakeOrderedValue(type, false, path, &key) ? key.value_or(std::string()) : std::string();
}

void AddFields(const DataType& type, std::span<const CellView> cells, PartWriter& parts) {
  size_t next = 0;
  for (const CellView& cell : cells) {
    if (cell.path.size() != 2) {
      continue;
    }
    size_t field = static_cast<size_t>(static_cast<uint8_t>(cell.path[0])) << 8 |
                   static_cast<uint8_t>(cell.path[1]);
    for (; next < field && next < type.parameters().size(); ++next) {
      parts.Add(std::nullopt);
    }
    if (field < type.parameters().size()) {
      parts.Add(cell.value);
      ++next;
    }
  }
  for (; next < type.parameters().size(); ++next) {
    parts.Add(std::nullopt);
  }
}

}  // namespace

std::optional<std::string> AssembleValue(const DataType& type, std::span<const CellView> cells) {
  if (cells.empty()) {
    return std::nullopt;
  }
  if (!type.multi_cell()) {
    const CellView& cell = cells.front();
    return cell.counter ? BigintBytes(cell.count) : std::string(cell.value);
  }
  std::string out;
  PartWriter parts(type, out);
  if (type.id() == TypeId::kUdt) {
    AddFields(type, cells, parts);
  } else {
    for (const CellView& cell : cells) {
      if (type.id() != TypeId::kList) {
        parts.Add(KeyOf(type.element(), cell.path));
      }
      if (type.id() != TypeId::kSet) {
        parts.Add(cell.value);
      }
    }
  }
  parts.Finish();
  return out;
}

std::span<const CellView> CellsOf(const LiveRow& row, uint32_t column) {
  auto found = std::ranges::equal_range(row.cells, column, {}, &CellView::column);
  return {found.begin(), found.end()};
}

}  // namespace orrery::cql
