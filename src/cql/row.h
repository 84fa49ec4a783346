// Rows as they are stored: cells with write times, in one form for a whole row and for what one
// write does to it. Rows are merged, never read before they are written. Pure functions.
//
// The rules are Cassandra's: of two cells the one with the later timestamp stays; of equal ones a
// deleted cell before a live one, an expiring before one that is not, the later expiry, the greater
// value. A deletion of a row or a column hides what is not newer than it. Merging is associative
// and, but for counters, commutative. Nothing is dropped here because of its age.
//
// Counters are sums: an addition after a deletion counts from zero, in the order of merging.
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

// Builds one write of a row. The order of calls does not matter.
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
  std::string Finish();
  // (private members of your choice)
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

// What is alive at `now` (seconds since 1970), without what was written at or before `deleted`.
// kCorruption if the row is malformed.
Result<LiveRow> ReadRow(std::string_view row, int64_t now, int64_t deleted = kNeverWritten);
// The latest timestamp of anything in the row, deletions too.
Result<int64_t> NewestIn(std::string_view row);

// The deletions of a partition: of all of it, and of ranges of its rows by their keys [begin, end).
std::string DeletionOfPartition(int64_t timestamp);
std::string DeletionOfRange(std::string_view begin, std::string_view end, int64_t timestamp);

class Deletions {
 public:
  static Result<Deletions> Parse(std::string_view bytes);
  int64_t partition() const;                   // kNeverWritten: none
  int64_t At(std::string_view row_key) const;  // the latest that hides the row
  // (private members of your choice)
};

// Folds writes, oldest first, into a row or into deletions: which of both is told by the first byte
// of each. Malformed ones are kept so that reading finds them: the result is malformed too.
std::string MergeRows(std::optional<std::string_view> existing,
                      std::span<const std::string_view> operands);

}  // namespace orrery::cql
