// The operations on rows: what runs at a partition for Cassandra's tables.
//
// They know no schema. Whoever makes them has bound every value, and names columns by their ids;
// the catalog's version in their target makes sure that nobody works with an old definition.
//
// Keys of a partition, behind what all of its rows begin with (storage/keys.h):
//   01                 its deletions: of all of it, and of ranges of rows
//   02                 its static row
//   03, clustering     a row; the clustering columns as cql/ordered_value.h has them
//
// Writes are merges (cql/row.h), or puts where a whole row is written that is surely newer than
// what was there (partition/horizon.h): who reads it then need not look for older parts of it. They
// read nothing, unless they have a condition, change a list by position, delete a range of counters
// or have a timestamp before the purge horizon; then they have the partition alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cql/data_type.h"
#include "cql/expression.h"
#include "model/catalog_types.h"
#include "partition/operation.h"
#include "partition/replica.h"
#include "rows/derivation.h"
#include "types/epk.h"

namespace orrery::rows {

inline constexpr size_t kRowBytesMax = 2 << 20;
inline constexpr size_t kWriteBytesMax = 16 << 20;
inline constexpr size_t kPageBytesMax = 4 << 20;
inline constexpr size_t kChangesMax = 65'535;

inline constexpr char kDeletionsKey = 1;
inline constexpr char kStaticKey = 2;
inline constexpr char kRowKey = 3;

// The item key of a logical partition: what all of its keys begin with.
std::string PartitionPrefix(ContainerId container, std::string_view epk,
                            std::string_view partition_key);
// The partition key columns, as they were serialized, and what follows, of an item key. False: it
// is malformed.
bool SplitKey(std::string_view item_key, std::string* partition_key, std::string_view* row_key);

// --- Writes -----------------------------------------------------------------------------------

enum class CellAction : uint8_t {
  kSet = 1,
  kDelete,
  kDeleteColumn,   // all cells of a column with many
  kReplaceColumn,  // the same, before it gets others in the same write
  kAdd,            // to a counter: value is a bigint
  kAppend,         // to a list: value is an element
  kPrepend,        // "; the first of several comes first
  kSetAt,          // of a list: path is the position, as an int
  kDeleteAt,       // "
  kRemove,         // from a list: all elements that equal the value
};

struct CellChange {
  CellAction action = CellAction::kSet;
  uint32_t column = 0;
  std::string path;
  std::string value;
};

enum class RowAction : uint8_t {
  kWrite = 1,    // cells
  kDeleteRow,    // all of it
  kDeleteRange,  // rows from `key` up to `end`
  kDeletePartition,
  kMerge,    // `end` is what is merged into the row, as it is stored
  kRefresh,  // nothing: what follows from the row is made anew
};

struct RowChange {
  RowAction action = RowAction::kWrite;
  bool is_static = false;
  bool marks = false;  // the row is there even without cells; of a deletion of many rows: each is
                       // deleted by itself, which sets counters back
  std::string key;     // clustering columns
  std::string end;
  std::optional<int64_t> timestamp;  // microseconds; none: partition time
  int64_t made = 0;  // if it may be done twice: when it was made, in microseconds; expiries count
                     // from there, and elements of lists are placed by it
  int32_t ttl = 0;   // seconds
  // It marks the row and says something of every column that a row of the table can have, whose ids
  // are less than this; 0: it does not.
  uint32_t whole = 0;
  std::vector<CellChange> cells;
};

// A term of IF: what must hold for a column, or a part of it.
struct CellCondition {
  uint32_t column = 0;
  cql::DataType type;  // of the column
  cql::Comparison comparison = cql::Comparison::kEqual;
  enum class Part : uint8_t { kAll, kElement, kField } part = Part::kAll;
  std::string element;  // of kElement: the key, or the position in a list
  uint32_t field = 0;   // of kField
  std::vector<std::optional<std::string>> values;
};

// What must hold of one row before anything is written.
struct RowCondition {
  enum class Kind : uint8_t { kExists = 1, kNotExists, kCells } kind = Kind::kExists;
  bool is_static = false;  // only the static row counts
  std::string key;
  std::vector<CellCondition> cells;
};

// A part of a batch over several partitions. What it does is the same however often it is done.
struct BatchPart {
  ContainerId container;
  types::Epk epk;
  std::string partition_key;
  std::vector<RowChange> changes;
};

// A batch that is to be done to its end: kept with the first of its partitions until that is so.
struct KeptBatch {
  int64_t made = 0;  // microseconds
  std::vector<BatchPart> parts;

  std::string Encode() const;
  // kCorruption if it is malformed.
  static Result<KeptBatch> Decode(std::string_view bytes);
};

// One transaction on one partition of a table.
class WriteRows final : public partition::Operation {
 public:
  types::Epk epk;
  std::string partition_key;
  std::vector<RowChange> changes;
  std::vector<RowCondition> conditions;
  std::string batch;  // a KeptBatch, kept under the id of this operation; or empty
  // What indexes and views keep of the rows; null: there are none. `derived` is the number that the
  // table's definition had then: kPreconditionFailed if it has another one by now.
  std::shared_ptr<const Derivation> derivation;
  uint32_t derived = 0;
  // Part of a batch that has begun: runs into debt rather than being throttled, and leaves out what
  // cannot be indexed.
  bool forced = false;

  partition::OperationKind kind() const override { return partition::OperationKind::kWriteRows; }
  bool writes() const override { return true; }
  std::string logical_partition() const override;
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override;
  // The body of the reply is a WriteAnswer.
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;

 private:
  // Whether it reads before it writes, whatever its timestamps are.
  bool reads() const;
  // Whether some of its timestamps are, or may be, not later than the horizon.
  bool IsOldFor(const partition::Replica& replica, int64_t horizon) const;
  // The right to write; the horizon for Evaluation.
  runtime::Task<Result<partition::Replica::Turn>> TakeTurn(partition::Replica& replica,
                                                           const std::string& prefix,
                                                           int64_t& horizon);
  // A refusal that holds: as an entry of the log if another try may still come.
  runtime::Task<Status> Refuse(partition::Replica& replica, const partition::Replica::Turn& turn,
                               const partition::Reply& reply);
};

// Whether these changes bring a value that an index or a view cannot have. kInvalidArgument.
Status CheckIndexed(const Derivation& derivation, const std::vector<RowChange>& changes);

// What a condition saw.
struct SeenRow {
  std::string key;
  std::optional<std::string> row;         // as it is stored, without what a range deletes
  std::optional<std::string> static_row;  // as it is stored
  int64_t deleted = 0;                    // of both, everything up to this time is gone
};

struct WriteAnswer {
  bool applied = true;
  std::vector<SeenRow> seen;  // if not: of each condition, in their order
  int64_t now = 0;            // seconds since 1970
  // What is left to be done for indexes and views, with the rest of the batch that came with the
  // write: a KeptBatch, kept under this id. Empty: nothing.
  std::string batch;
  storage::OperationId batch_id;

  std::string Encode() const;
  // kUnknownOutcome if it is malformed.
  static Result<WriteAnswer> Decode(std::string_view bytes);
};

// --- Reads ------------------------------------------------------------------------------------

// Clustering keys [begin, end). An empty end is no bound.
struct RowSpan {
  std::string begin;
  std::string end;
  bool one = false;  // exactly the row `begin`
};

// Whether a row is in one of the spans, which are in order; if not, `next` is where the next one
// begins (empty: there is none). No spans: all rows.
bool InSpans(const std::vector<RowSpan>& spans, std::string_view clustering, std::string* next);

// A page of rows of one partition, or of a range of the ring.
class ReadRows final : public partition::Operation {
 public:
  // Of one partition; else `range`.
  std::optional<std::string> partition_key;
  types::EpkRange range;         // of one partition: its place is range.min
  std::vector<RowSpan> spans;    // of every partition, in order, without overlap; none: all rows
  bool reversed = false;         // from the last row to the first; only of one partition
  bool with_static = false;      // give static rows too
  bool only_partitions = false;  // nothing but partition keys and static rows: DISTINCT
  uint32_t rows_max = 1000;
  uint32_t partition_rows_max = 0;  // of each partition; 0: no limit
  std::string after;                // go on behind this item key
  uint32_t after_rows = 0;          // of the partition of `after`, so many rows were given before

  partition::OperationKind kind() const override { return partition::OperationKind::kReadRows; }
  bool writes() const override { return false; }
  // It reads the committed state alone.
  bool runs_anywhere() const override { return true; }
  std::string logical_partition() const override;
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return partition::LeastPriceOfRead(); }
  // The body of the reply is a RowPage.
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;

 private:
  // A few rows by their keys.
  bool IsPoint() const;
  runtime::Task<partition::Reply> RunPoint(partition::Replica& replica,
                                           const model::Container& container);
  runtime::Task<partition::Reply> RunScan(partition::Replica& replica,
                                          const model::Container& container);
};

// What ReadRows found: partitions, and of each its rows that are alive.
class RowPage {
 public:
  struct Row {
    std::string_view key;  // clustering columns
    std::string_view row;  // as it is stored; everything up to `deleted` is gone
    int64_t deleted = 0;
  };
  struct Partition {
    std::string_view key;  // partition key columns
    std::optional<std::string_view> static_row;
    int64_t deleted = 0;  // of the static row
    std::vector<Row> rows;
  };
  int64_t now = 0;  // seconds since 1970: what counted as alive
  std::vector<Partition> partitions;
  std::string_view last;   // go on behind it; empty: there is no more
  bool partial = false;    // whether the last partition may have more rows
  uint32_t last_rows = 0;  // how many rows of its partition were given, with the pages before

  // Views into the bytes. kUnavailable if they are malformed.
  static Result<RowPage> Decode(std::string_view bytes);
};

// The batch is done. Not an error if it is not there. With the batch 0 nothing is: the partition
// keeps the version of the schema that this was sent with, and takes no more writes by leaders that
// have not got so far.
class EndBatch final : public partition::Operation {
 public:
  types::Epk epk;
  std::string partition_key;
  storage::OperationId batch;

  partition::OperationKind kind() const override { return partition::OperationKind::kEndBatch; }
  bool writes() const override { return true; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return {}; }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

// A batch that is kept in a partition of this node.
struct FoundBatch {
  std::string key;  // where it stands
  types::Epk epk;
  std::string partition_key;
  storage::OperationId id;
  KeptBatch batch;
};
// Those of a physical partition that stand behind `after`, at most `most`; blocks. Malformed ones
// are left out.
std::vector<FoundBatch> FindBatches(storage::Engine& state, ContainerId container,
                                    const types::EpkRange& range, const std::string& after,
                                    size_t most);

// Deletes all rows of a physical partition, some at a time: TRUNCATE. The body of the reply is
// empty when there are no more.
class TruncateRows final : public partition::Operation {
 public:
  static constexpr size_t kDeletesMax = 5000;

  partition::OperationKind kind() const override { return partition::OperationKind::kTruncateRows; }
  bool writes() const override { return true; }
  void Encode(Encoder&) const override {}
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return partition::LeastPriceOfWrite(0); }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

void RegisterRowOperations(partition::OperationRegistry& registry);

}  // namespace orrery::rows
