// Derivation: what indexes and views keep of the rows of a table, in containers of their own.
//
// A derived row follows from one row of the table, and the writes of that row have an order: that
// of its partition. So each write that changes it makes the derived row whole anew, with the
// partition's time as the timestamp: it does not matter how often or in which order these changes
// arrive. They go with the write as a batch that is done to its end (rows.h, KeptBatch).
//
//   of an index  the partition is the value that is indexed; the row's key is the key of the
//   table's
//                row, so that what is found stands in the order of the ring; it has no cells
//   of a view    partition and row as the view's primary key says; cells have the ids that they
//   have
//                in the table
//
// Pure functions and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "cql/ast.h"
#include "cql/data_type.h"
#include "cql/expression.h"
#include "cql/row.h"

namespace orrery::rows {

// A column of the table.
struct ColumnSource {
  enum class Kind : uint8_t { kPartitionKey = 1, kClustering, kCell } kind = Kind::kCell;
  uint32_t at = 0;  // its place in the key; of kCell its id
  cql::DataType type;
};

struct DerivedIndex {
  ContainerId container;
  cql::IndexTargetKind kind = cql::IndexTargetKind::kSimple;
  ColumnSource column;
};

struct DerivedView {
  struct KeyColumn {
    ColumnSource column;
    bool descending = false;
  };
  // What a row must be to be in the view.
  struct Filter {
    ColumnSource column;
    cql::Comparison comparison = cql::Comparison::kEqual;
    std::string value;
  };
  ContainerId container;
  std::vector<ColumnSource> partition_key;
  std::vector<KeyColumn> clustering;
  std::vector<uint32_t> cells;  // columns that it has besides
  std::vector<Filter> filters;
};

struct Derivation {
  struct Clustering {
    cql::DataType type;
    bool descending = false;
  };
  // Of the table:
  uint32_t partition_columns = 0;
  std::vector<Clustering> clustering;

  std::vector<DerivedIndex> indexes;
  std::vector<DerivedView> views;

  void Encode(Encoder& encoder) const;
  static Derivation Decode(Decoder& decoder);
};

// How long something is there; ttl 0: it stays.
struct Lifetime {
  int32_t ttl = 0;
  int64_t expires = 0;  // seconds since 1970
  bool operator==(const Lifetime&) const = default;
};

struct DerivedRow {
  struct Cell {
    uint32_t column = 0;
    std::string path;
    std::string value;
    Lifetime lifetime;
    bool operator==(const Cell&) const = default;
  };
  ContainerId container;
  std::string partition_key;
  std::string key;
  Lifetime lifetime;
  std::vector<Cell> cells;
  bool operator==(const DerivedRow&) const = default;

  // All of it, in place of what was written before `timestamp`.
  std::string Write(int64_t timestamp) const;
};

inline constexpr size_t kIndexedBytesMax = 65'535;  // of a value, as in Cassandra

// What follows from a row. A value that is too long to be a key is left out: by that index or view
// the row is not found.
struct Derived {
  struct LeftOut {
    ContainerId container;
    std::string value;
    bool operator==(const LeftOut&) const = default;
  };
  std::vector<DerivedRow> rows;
  std::vector<LeftOut> left_out;
};

// Of a row that is alive; nothing from others. `item_key` is its key, with all that stands before
// it. kCorruption: it is malformed.
Result<Derived> Derive(const Derivation& derivation, std::string_view item_key,
                       std::string_view partition_key, std::string_view clustering,
                       const cql::LiveRow& row);
// What a write is told that brings such a value.
Status CannotIndex(size_t bytes);

// The partition of an index in which rows with a value are.
std::string IndexPartition(std::string_view value);
std::string IndexPartitionOfEntry(std::string_view key, std::string_view value);

}  // namespace orrery::rows
