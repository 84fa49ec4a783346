#include "cql/row_values.h"

#include <algorithm>

#include "cql/assemble.h"
#include "cql/ordered_value.h"
#include "cql/partition_token.h"

namespace orrery::cql {

namespace {
constexpr uint16_t kNowhere = 0xFFFF;
constexpr size_t kFew = 16;  // columns, which are found as fast without places
}  // namespace

RowValues::RowValues(const Table& table, const std::vector<bool>* needed)
    : table_(table), needed_(needed), values_(table.columns.size()), owned_(table.columns.size()) {
  if (table.columns.size() <= kFew) {
    return;
  }
  places_.resize(table.next_column, kNowhere);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id < places_.size()) {
      places_[table.columns[i].id] = static_cast<uint16_t>(i);
    }
  }
}

uint16_t RowValues::PlaceOf(uint32_t id) const {
  if (!places_.empty()) {
    return id < places_.size() ? places_[id] : kNowhere;
  }
  auto found = std::ranges::find(table_.columns, id, &Column::id);
  return found == table_.columns.end() ? kNowhere
                                       : static_cast<uint16_t>(found - table_.columns.begin());
}

void RowValues::Clear(ColumnKind kind) {
  for (size_t i = table_.partition_columns; i < values_.size(); ++i) {
    if (table_.columns[i].kind == kind) {
      values_[i].reset();
    }
  }
}

Status RowValues::BeginPartition(std::string_view key) {
  if (!SplitKey(key, table_.partition_columns, &key_)) {
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

void RowValues::Fill(const LiveRow& row) {
  const std::vector<CellView>& cells = row.cells;
  for (size_t at = 0; at < cells.size();) {
    size_t end = at + 1;
    while (end < cells.size() && cells[end].column == cells[at].column) {
      ++end;
    }
    const uint16_t place = PlaceOf(cells[at].column);
    // Cells of columns that were dropped are nobody's.
    if (place != kNowhere && Needs(place)) {
      const DataType& type = table_.columns[place].type;
      if (type.multi_cell() || cells[at].counter) {
        owned_[place] = *AssembleValue(type, {&cells[at], end - at});
        values_[place] = owned_[place];
      } else {
        values_[place] = cells[at].value;
      }
    }
    at = end;
  }
}

Status RowValues::SetStatic(std::string_view row, int64_t now, int64_t deleted) {
  ORRERY_RETURN_IF_ERROR(ReadRow(row, now, deleted, static_));
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
  ORRERY_RETURN_IF_ERROR(ReadRow(row, now, deleted, row_));
  Clear(ColumnKind::kRegular);
  size_t place = table_.partition_columns;
  for (const Column& column : table_.clustering()) {
    std::optional<std::string> value;
    if (!TakeOrderedValue(column.type, column.descending, clustering, &value)) {
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

std::span<const CellView> RowValues::CellsAt(size_t place) const {
  const Column& column = table_.columns[place];
  return CellsOf(column.kind == ColumnKind::kStatic ? static_ : row_, column.id);
}

int64_t RowValues::newest() const {
  int64_t newest = kNeverWritten;
  for (const LiveRow* row : {&static_, &row_}) {
    newest = std::max(newest, row->mark ? row->mark->timestamp : kNeverWritten);
    for (const CellView& cell : row->cells) {
      newest = std::max(newest, cell.stamp.timestamp);
    }
  }
  return newest;
}

}  // namespace orrery::cql
