#include "api/cassandra/row_values.h"

#include "api/cassandra/restrictions.h"
#include "cql/assemble.h"
#include "cql/ordered_value.h"

namespace orrery::cassandra {

using cql::Column;
using cql::ColumnKind;

namespace {
constexpr uint16_t kNowhere = 0xFFFF;
}

RowValues::RowValues(const cql::Table& table, std::vector<bool> needed)
    : table_(table),
      needed_(std::move(needed)),
      places_(table.next_column, kNowhere),
      values_(table.columns.size()),
      owned_(table.columns.size()) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id < places_.size()) {
      places_[table.columns[i].id] = static_cast<uint16_t>(i);
    }
  }
}

void RowValues::Clear(ColumnKind kind) {
  for (size_t i = table_.partition_columns; i < values_.size(); ++i) {
    if (table_.columns[i].kind == kind) {
      values_[i].reset();
    }
  }
}

Status RowValues::BeginPartition(std::string_view key) {
  if (!SplitPartitionKey(key, table_.partition_columns, &key_)) {
    return Status(Code::kCorruption, "the partition key of a row is malformed");
  }
  for (size_t i = 0; i < key_.size(); ++i) {
    values_[i] = key_[i];
  }
  static_ = {};
  Clear(ColumnKind::kStatic);
  SetNoRow();
  return Status::Ok();
}

void RowValues::Fill(const cql::LiveRow& row) {
  const std::vector<cql::CellView>& cells = row.cells;
  for (size_t at = 0; at < cells.size();) {
    size_t end = at + 1;
    while (end < cells.size() && cells[end].column == cells[at].column) {
      ++end;
    }
    const uint32_t id = cells[at].column;
    const uint16_t place = id < places_.size() ? places_[id] : kNowhere;
    // Cells of columns that were dropped are nobody's.
    if (place != kNowhere && Needs(place)) {
      const cql::DataType& type = table_.columns[place].type;
      if (type.multi_cell() || cells[at].counter) {
        owned_[place] = *cql::AssembleValue(type, {&cells[at], end - at});
        values_[place] = owned_[place];
      } else {
        values_[place] = cells[at].value;
      }
    }
    at = end;
  }
}

Status RowValues::SetStatic(std::string_view row, int64_t now, int64_t deleted) {
  auto live = cql::ReadRow(row, now, deleted);
  if (!live) {
    return live.error();
  }
  static_ = std::move(*live);
  Fill(static_);
  return Status::Ok();
}

void RowValues::SetValues(std::span<const std::optional<std::string>> values) {
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i] = values[i];
  }
}

void RowValues::SetNoRow() {
  row_ = {};
  Clear(ColumnKind::kClustering);
  Clear(ColumnKind::kRegular);
}

Status RowValues::SetRow(std::string_view clustering, std::string_view row, int64_t now,
                         int64_t deleted) {
  auto live = cql::ReadRow(row, now, deleted);
  if (!live) {
    return live.error();
  }
  row_ = std::move(*live);
  Clear(ColumnKind::kRegular);
  size_t place = table_.partition_columns;
  for (const Column& column : table_.clustering()) {
    std::optional<std::string> value;
    if (!cql::TakeOrderedValue(column.type, column.descending, clustering, &value)) {
      return Status(Code::kCorruption, "the clustering key of a row is malformed");
    }
    values_[place].reset();
    if (value) {
      owned_[place] = std::move(*value);
      values_[place] = owned_[place];
    }
    ++place;
  }
  Fill(row_);
  return Status::Ok();
}

std::span<const cql::CellView> RowValues::CellsAt(size_t place) const {
  const Column& column = table_.columns[place];
  return cql::CellsOf(column.kind == ColumnKind::kStatic ? static_ : row_, column.id);
}

}  // namespace orrery::cassandra
