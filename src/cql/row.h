// Rows as they are stored: cells with write times, in one form for a whole row and for what one
// write does to it. Rows are merged, never read before they are written. Pure functions.
//
// The rules are Cassandra's: of two cells the one with the later timestamp stays; of equal ones a
// deleted cell before a live one, an expiring before one that is not, the later expiry, the shorter
// ttl, the greater value. A deletion of a row or a column hides what is not newer than it. Merging
// drops nothing because of its age; PurgeRow does.
//
// Merging is associative and, but for counters, commutative: the same writes give the same bytes,
// however they were grouped. What is hidden by something in the same row is not kept.
//
// Counters are sums: an addition after a deletion (of it, of its column, of its row) counts from
// zero, in the order of merging; timestamps do not matter. Within one write deletions come first.
// A column has counters or values, never both.
//
//   row     := 11, newest u64, flags u8, [mark], [deletion back], [late varint], part*
//   mark    := [back], [expiry]
//   part    := flags u8, [step varint], [back], [expiry], [reset back, count zigzag], [path bytes],
//              [value bytes]
//   back    := varint: how far before `newest` a timestamp is; left out where it is 0
//   expiry  := ttl varint, expires zigzag; of a cell left out where it is the one that stood last
//
// Parts stand by column, the deletion of a column before its cells, and those by path. The flags
// and the form of deletions: docs/formats/rows.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orrery::cql {

inline constexpr int64_t kNeverWritten = INT64_MIN;

// When something was written, and until when it is there.
struct Stamp {
  int64_t timestamp = kNeverWritten;  // microseconds
  int32_t ttl = 0;                    // seconds; 0: it stays
  int64_t expires = 0;                // seconds since 1970, with a ttl
  bool AliveAt(int64_t now) const { return ttl == 0 || now < expires; }
  bool operator==(const Stamp&) const = default;
};

// Builds one write of a row. The order of calls does not matter. REQUIRES: timestamps are later
// than kNeverWritten.
class RowWriter {
 public:
  // The row is there even without cells: INSERT.
  void Mark(const Stamp& stamp);
  void DeleteRow(int64_t timestamp);
  // `path` names a part of a column with many cells, in the order of bytes; else it is empty.
  void Set(uint32_t column, std::string_view path, const Stamp& stamp, std::string_view value);
  void Delete(uint32_t column, std::string_view path, int64_t timestamp);
  // All cells of a column with many.
  void DeleteColumn(uint32_t column, int64_t timestamp);
  void Add(uint32_t column, int64_t delta, int64_t timestamp);  // to a counter
  // Its deletions are written only now, in seconds since 1970, whatever their timestamps say.
  void Late(int64_t now);
  // The writer is empty then.
  std::string Finish();

 private:
  struct Entry {
    uint8_t kind;
    uint32_t column;
    size_t path_at;  // in bytes_; the value stands behind it
    size_t path_size;
    size_t value_size;
    Stamp stamp;
    int64_t count;
  };
  void Put(uint8_t kind, uint32_t column, std::string_view path, const Stamp& stamp,
           std::string_view value, int64_t count);

  Stamp mark_;
  int64_t deletion_ = kNeverWritten;
  int64_t newest_ = kNeverWritten;
  int64_t late_ = 0;
  std::vector<Entry> entries_;
  std::string bytes_;
};

// A cell of a stored row; views into its bytes.
struct CellView {
  uint32_t column = 0;
  std::string_view path;
  Stamp stamp;
  bool counter = false;
  int64_t count = 0;  // of a counter
  std::string_view value;
};

// What is to be seen of a row.
struct LiveRow {
  std::optional<Stamp> mark;
  std::vector<CellView> cells;  // by column, then path
  bool exists() const { return mark.has_value() || !cells.empty(); }
};

// What is alive at `now` (seconds since 1970), without what was written at or before `deleted`: of
// a counter its latest addition counts, and the sum is hidden or shown as a whole. kCorruption if
// the row is malformed.
Result<LiveRow> ReadRow(std::string_view row, int64_t now, int64_t deleted = kNeverWritten);
// The same in the place of what `live` was.
Status ReadRow(std::string_view row, int64_t now, int64_t deleted, LiveRow& live);
// Whether anything is. Looks no further than the first thing that is alive.
Result<bool> RowExists(std::string_view row, int64_t now, int64_t deleted = kNeverWritten);
// The latest timestamp of anything that was merged into the row, deletions too. Looks at its head
// only.
Result<int64_t> NewestIn(std::string_view row);
// The earliest timestamp of anything that is in the row, deletions too; INT64_MAX: it is empty.
Result<int64_t> OldestIn(std::string_view row);

// The deletions of a partition: of all of it, and of ranges of its rows by their keys [begin, end).
// A range whose end is not behind its begin is none. `late` as in RowWriter::Late; 0: it is not.
std::string DeletionOfPartition(int64_t timestamp, int64_t late = 0);
std::string DeletionOfRange(std::string_view begin, std::string_view end, int64_t timestamp,
                            int64_t late = 0);

// None, if not parsed.
class Deletions {
 public:
  static Result<Deletions> Parse(std::string_view bytes);
  bool empty() const { return partition_ == kNeverWritten && ranges_.empty(); }
  int64_t partition() const { return partition_; }  // kNeverWritten: none
  // The latest that hides the row; kNeverWritten: none does.
  int64_t At(std::string_view row_key) const;

 private:
  struct Range {  // places in bytes_
    size_t begin_at;
    size_t begin_size;
    size_t end_at;
    size_t end_size;
    int64_t timestamp;
  };
  std::string_view Begin(const Range& range) const {
    return std::string_view(bytes_).substr(range.begin_at, range.begin_size);
  }
  std::string_view End(const Range& range) const {
    return std::string_view(bytes_).substr(range.end_at, range.end_size);
  }

  int64_t partition_ = kNeverWritten;
  std::vector<Range> ranges_;  // by key; none overlaps another
  std::string bytes_;
};

// Folds writes, oldest first, into a row or into deletions: which of both is told by the first byte
// of each. If one is malformed or of the other kind, the result is malformed, so that reading finds
// it, and holds all of them as they were.
std::string MergeRows(std::optional<std::string_view> existing,
                      std::span<const std::string_view> operands);

// What a purge leaves of a row, or of deletions.
struct Remains {
  bool changed = false;              // else all of it stays as it is
  std::optional<std::string> value;  // of what is changed; nothing: there is nothing left
  int64_t next = INT64_MAX;          // the least horizon before which more of it will have died
  bool hides_counter = false;        // `deleted` hides a counter of the row, which stays
};

// Drops what died before the horizon, in microseconds: deletions that are older and were written
// before it, and what expired; and what is not newer than `deleted`. Counters stay. kNeverWritten:
// there is no horizon. kCorruption if it is malformed.
Result<Remains> PurgeRow(std::string_view row, int64_t deleted, int64_t horizon);
// The same of deletions. REQUIRES: nobody writes rows that those which go would hide.
Result<Remains> PurgeDeletions(std::string_view deletions, int64_t horizon);

}  // namespace orrery::cql
