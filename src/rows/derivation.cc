#include "rows/derivation.h"

#include <algorithm>
#include <optional>

#include "cql/assemble.h"
#include "cql/filter.h"
#include "cql/ordered_value.h"
#include "cql/partition_token.h"
#include "cql/value.h"

namespace orrery::rows {

using cql::CellView;
using cql::IndexTargetKind;
using cql::LiveRow;

namespace {

constexpr size_t kTablesMax = 1000;

Lifetime LifetimeOf(const cql::Stamp& stamp) { return {stamp.ttl, stamp.expires}; }

Lifetime Longer(const Lifetime& a, const Lifetime& b) {
  return a.ttl == 0 || (b.ttl != 0 && a.expires >= b.expires) ? a : b;
}
Lifetime Shorter(const Lifetime& a, const Lifetime& b) {
  return a.ttl != 0 && (b.ttl == 0 || a.expires <= b.expires) ? a : b;
}

// A row is there as long as anything of it is.
Lifetime LifetimeOf(const LiveRow& row) {
  std::optional<Lifetime> longest;
  if (row.mark) {
    longest = LifetimeOf(*row.mark);
  }
  for (const CellView& cell : row.cells) {
    longest = longest ? Longer(*longest, LifetimeOf(cell.stamp)) : LifetimeOf(cell.stamp);
  }
  return longest.value_or(Lifetime());
}

// One row of the table, and what follows from it.
class Deriver {
 public:
  Deriver(const Derivation& derivation, std::string_view item_key, const LiveRow& row)
      : derivation_(derivation), item_key_(item_key), row_(row), whole_(LifetimeOf(row)) {}

  Status ReadKeys(std::string_view partition_key, std::string_view clustering);
  void AddIndex(const DerivedIndex& index);
  void AddView(const DerivedView& view);
  Derived Finish() { return std::move(made_); }

 private:
  struct Seen {
    std::string_view value;
    Lifetime lifetime;
  };
  // Of a column whose value is one cell, or a part of the key.
  std::optional<Seen> Look(const ColumnSource& column) const;
  void AddEntry(const DerivedIndex& index, std::string partition, const Lifetime& lifetime);
  void AddParts(const DerivedIndex& index, std::span<const CellView> cells);

  const Derivation& derivation_;
  const std::string_view item_key_;
  const LiveRow& row_;
  const Lifetime whole_;
  std::vector<std::string_view> partition_key_;
  std::vector<std::optional<std::string>> clustering_;
  Derived made_;
};

Status Deriver::ReadKeys(std::string_view partition_key, std::string_view clustering) {
  if (!cql::SplitKey(partition_key, derivation_.partition_columns, &partition_key_)) {
    return Status(Code::kCorruption, "the partition key of a row is malformed");
  }
  for (const Derivation::Clustering& column : derivation_.clustering) {
    if (!cql::TakeOrderedValue(column.type, column.descending, clustering,
                               &clustering_.emplace_back())) {
      return Status(Code::kCorruption, "the clustering key of a row is malformed");
    }
  }
  return Status::Ok();
}

std::optional<Deriver::Seen> Deriver::Look(const ColumnSource& column) const {
  switch (column.kind) {
    case ColumnSource::Kind::kPartitionKey: return Seen{partition_key_.at(column.at), whole_};
    case ColumnSource::Kind::kClustering: {
      const auto& value = clustering_.at(column.at);
      return value ? std::optional(Seen{*value, whole_}) : std::nullopt;
    }
    case ColumnSource::Kind::kCell: break;
  }
  auto cells = cql::CellsOf(row_, column.at);
  return cells.empty() ? std::nullopt
                       : std::optional(Seen{cells[0].value, LifetimeOf(cells[0].stamp)});
}

void Deriver::AddEntry(const DerivedIndex& index, std::string partition, const Lifetime& lifetime) {
  if (partition.size() > kIndexedBytesMax) {
    made_.left_out.push_back({index.container, std::move(partition)});
    return;
  }
  for (DerivedRow& other : made_.rows) {
    if (other.container == index.container && other.partition_key == partition) {
      other.lifetime = Longer(other.lifetime, lifetime);
      return;
    }
  }
  made_.rows.push_back({.container = index.container,
                        .partition_key = std::move(partition),
                        .key = std::string(item_key_),
                        .lifetime = lifetime,
                        .cells = {}});
}

// Of a collection with a cell for each element or entry.
void Deriver::AddParts(const DerivedIndex& index, std::span<const CellView> cells) {
  auto value = cql::AssembleValue(index.column.type, cells);
  if (!value) {
    return;
  }
  const bool is_map = index.column.type.id() == cql::TypeId::kMap;
  size_t at = 0;
  for (cql::PartReader part(index.column.type, *value); part.Next() && at < cells.size(); ++at) {
    const std::string_view first = part.value().value_or("");
    std::string_view second = first;
    if (is_map && part.Next()) {
      second = part.value().value_or("");
    }
    std::string partition =
        index.kind == IndexTargetKind::kEntries
            ? IndexPartitionOfEntry(first, second)
            : IndexPartition(index.kind == IndexTargetKind::kKeys ? first : second);
    AddEntry(index, std::move(partition), LifetimeOf(cells[at].stamp));
  }
}

void Deriver::AddIndex(const DerivedIndex& index) {
  if (index.column.kind == ColumnSource::Kind::kCell && index.column.type.multi_cell()) {
    AddParts(index, cql::CellsOf(row_, index.column.at));
  } else if (auto seen = Look(index.column)) {
    AddEntry(index, IndexPartition(seen->value), seen->lifetime);
  }
}

void Deriver::AddView(const DerivedView& view) {
  for (const DerivedView::Filter& filter : view.filters) {
    auto seen = Look(filter.column);
    if (!seen || !cql::Holds(filter.comparison, filter.column.type, seen->value, filter.value)) {
      return;
    }
  }
  // What its key is made of may go before the row does.
  Lifetime lifetime = whole_;
  DerivedRow made{.container = view.container};
  std::vector<std::string> key;
  for (const ColumnSource& column : view.partition_key) {
    auto seen = Look(column);
    if (!seen || (seen->value.empty() && view.partition_key.size() == 1)) {
      return;
    }
    lifetime = Shorter(lifetime, seen->lifetime);
    key.emplace_back(seen->value);
  }
  for (const DerivedView::KeyColumn& column : view.clustering) {
    auto seen = Look(column.column);
    if (!seen) {
      return;
    }
    lifetime = Shorter(lifetime, seen->lifetime);
    cql::AppendOrderedValue(column.column.type, seen->value, column.descending, made.key);
  }
  made.partition_key = cql::JoinedKey(key);
  made.lifetime = lifetime;
  for (const std::string& part : key) {
    if (part.size() > kIndexedBytesMax) {
      made_.left_out.push_back({view.container, part});
      return;
    }
  }
  if (made.key.size() > 2 * kIndexedBytesMax) {
    made_.left_out.push_back({view.container, std::move(made.key)});
    return;
  }
  for (const CellView& cell : row_.cells) {
    if (std::ranges::binary_search(view.cells, cell.column)) {
      made.cells.push_back({.column = cell.column,
                            .path = std::string(cell.path),
                            .value = std::string(cell.value),
                            .lifetime = Shorter(LifetimeOf(cell.stamp), lifetime)});
    }
  }
  made_.rows.push_back(std::move(made));
}

void Put(Encoder& encoder, const ColumnSource& column) {
  encoder.U8(static_cast<uint8_t>(column.kind));
  encoder.Varint(column.at);
  column.type.Encode(encoder);
}

uint64_t TakeCount(Decoder& decoder) {
  uint64_t count = decoder.Varint();
  if (count > kTablesMax) {
    decoder.Fail();
  }
  return decoder.ok() ? count : 0;
}

// Of a table with so many key columns.
ColumnSource TakeColumn(Decoder& decoder, const Derivation& of) {
  using Kind = ColumnSource::Kind;
  ColumnSource column;
  column.kind = static_cast<Kind>(decoder.U8());
  column.at = static_cast<uint32_t>(decoder.Varint());
  column.type = cql::DataType::Decode(decoder);
  const bool known = column.kind >= Kind::kPartitionKey && column.kind <= Kind::kCell;
  if (!known || (column.kind == Kind::kPartitionKey && column.at >= of.partition_columns) ||
      (column.kind == Kind::kClustering && column.at >= of.clustering.size())) {
    decoder.Fail();
  }
  return column;
}

}  // namespace

void Derivation::Encode(Encoder& encoder) const {
  encoder.Varint(partition_columns);
  encoder.Varint(clustering.size());
  for (const Clustering& column : clustering) {
    column.type.Encode(encoder);
    encoder.Bool(column.descending);
  }
  encoder.Varint(indexes.size());
  for (const DerivedIndex& index : indexes) {
    encoder.U32(index.container.value());
    encoder.U8(static_cast<uint8_t>(index.kind));
    Put(encoder, index.column);
  }
  encoder.Varint(views.size());
  for (const DerivedView& view : views) {
    encoder.U32(view.container.value());
    encoder.Varint(view.partition_key.size());
    for (const ColumnSource& column : view.partition_key) {
      Put(encoder, column);
    }
    encoder.Varint(view.clustering.size());
    for (const DerivedView::KeyColumn& column : view.clustering) {
      Put(encoder, column.column);
      encoder.Bool(column.descending);
    }
    encoder.Varint(view.cells.size());
    for (uint32_t column : view.cells) {
      encoder.Varint(column);
    }
    encoder.Varint(view.filters.size());
    for (const DerivedView::Filter& filter : view.filters) {
      Put(encoder, filter.column);
      encoder.U8(static_cast<uint8_t>(filter.comparison));
      encoder.Bytes(filter.value);
    }
  }
}

Derivation Derivation::Decode(Decoder& decoder) {
  Derivation made;
  made.partition_columns = static_cast<uint32_t>(decoder.Varint());
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    Clustering& column = made.clustering.emplace_back();
    column.type = cql::DataType::Decode(decoder);
    column.descending = decoder.Bool();
  }
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    DerivedIndex& index = made.indexes.emplace_back();
    index.container = ContainerId(decoder.U32());
    index.kind = static_cast<IndexTargetKind>(decoder.U8());
    index.column = TakeColumn(decoder, made);
  }
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    DerivedView& view = made.views.emplace_back();
    view.container = ContainerId(decoder.U32());
    for (uint64_t columns = TakeCount(decoder); columns > 0 && decoder.ok(); --columns) {
      view.partition_key.push_back(TakeColumn(decoder, made));
    }
    for (uint64_t columns = TakeCount(decoder); columns > 0 && decoder.ok(); --columns) {
      view.clustering.push_back({TakeColumn(decoder, made), false});
      view.clustering.back().descending = decoder.Bool();
    }
    for (uint64_t columns = TakeCount(decoder); columns > 0 && decoder.ok(); --columns) {
      view.cells.push_back(static_cast<uint32_t>(decoder.Varint()));
    }
    for (uint64_t filters = TakeCount(decoder); filters > 0 && decoder.ok(); --filters) {
      DerivedView::Filter& filter = view.filters.emplace_back();
      filter.column = TakeColumn(decoder, made);
      filter.comparison = static_cast<cql::Comparison>(decoder.U8());
      filter.value = decoder.Bytes();
      if (filter.comparison > cql::Comparison::kGreaterEqual) {
        decoder.Fail();
      }
    }
  }
  return made;
}

std::string DerivedRow::Write(int64_t timestamp) const {
  cql::RowWriter writer;
  writer.DeleteRow(timestamp - 1);
  writer.Mark({.timestamp = timestamp, .ttl = lifetime.ttl, .expires = lifetime.expires});
  for (const Cell& cell : cells) {
    writer.Set(cell.column, cell.path,
               {.timestamp = timestamp, .ttl = cell.lifetime.ttl, .expires = cell.lifetime.expires},
               cell.value);
  }
  return writer.Finish();
}

Result<Derived> Derive(const Derivation& derivation, std::string_view item_key,
                       std::string_view partition_key, std::string_view clustering,
                       const LiveRow& row) {
  if (!row.exists()) {
    return Derived();
  }
  Deriver deriver(derivation, item_key, row);
  ORRERY_TRY_STATUS(deriver.ReadKeys(partition_key, clustering));
  for (const DerivedIndex& index : derivation.indexes) {
    deriver.AddIndex(index);
  }
  for (const DerivedView& view : derivation.views) {
    deriver.AddView(view);
  }
  return deriver.Finish();
}

Status CannotIndex(size_t bytes) {
  return Status(Code::kInvalidArgument, "Cannot index value of size " + std::to_string(bytes) +
                                            " (maximum allowed size=65535)");
}

std::string IndexPartition(std::string_view value) { return std::string(value); }

std::string IndexPartitionOfEntry(std::string_view key, std::string_view value) {
  std::string partition;
  Encoder(partition).Bytes(key);
  partition += value;
  return partition;
}

}  // namespace orrery::rows
