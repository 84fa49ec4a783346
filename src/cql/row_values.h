// RowValues: the values of one row after the other, by the places of their columns in the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/row.h"
#include "cql/schema.h"

namespace orrery::cql {

class RowValues {
 public:
  using Value = std::optional<std::string_view>;

  // `needed`: the columns that are looked at, by place; null: all. Both must outlive it.
  explicit RowValues(const Table& table, const std::vector<bool>* needed = nullptr);

  // A new partition, without rows yet. What is passed in must outlive what is read from here.
  // kCorruption if it is malformed.
  Status BeginPartition(std::string_view key);
  Status SetStatic(std::string_view row, int64_t now, int64_t deleted);
  // The next row of the partition, which takes the place of the one before.
  Status SetRow(std::string_view clustering, std::string_view row, int64_t now, int64_t deleted);
  // A row that is at hand, by places.
  void SetValues(std::span<const std::optional<std::string>> values);
  // A partition without rows: clustering columns and what depends on them are null.
  void SetNoRow();

  std::span<const Value> values() const { return values_; }
  // The cells of a column that is no key.
  std::span<const CellView> CellsAt(size_t place) const;
  // The latest timestamp of what is seen of the row, static columns too; kNeverWritten: none.
  int64_t newest() const;
  const Table& table() const { return table_; }

 private:
  bool Needs(size_t place) const { return needed_ == nullptr || (*needed_)[place]; }
  // Of a column by its id; kNowhere: there is none any more.
  uint16_t PlaceOf(uint32_t id) const;
  void Fill(const LiveRow& row);
  void Clear(ColumnKind kind);

  const Table& table_;
  const std::vector<bool>* const needed_;
  std::vector<uint16_t> places_;  // by the id of a column; of a table with few, none
  std::vector<Value> values_;
  std::vector<std::string> owned_;  // by place: what is no view of the bytes
  std::vector<std::string_view> key_;
  LiveRow static_;
  LiveRow row_;
};

}  // namespace orrery::cql
