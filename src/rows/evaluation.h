// Evaluation: what one WriteRows does to its partition, worked out at the leader.
//
// Load() reads what is needed, Check() looks at conditions, Make() makes the changes without
// waiting, AddDerived() what follows from them for indexes and views, Finish() the WriteSet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cql/row.h"
#include "partition/replica.h"
#include "rows/derivation.h"
#include "rows/rows.h"
#include "storage/write_set.h"

namespace orrery::rows {

// Whether a deletion of many rows deletes each of them by itself.
bool DeletesEach(const RowChange& change);
// Whether a change reads its row, or rows, before it is made.
bool NeedsRow(const RowChange& change);
// Whether it writes to a row with a timestamp that is not later than the horizon.
bool IsOld(const RowChange& change, int64_t horizon);
// Latched shared by who has read rows and writes them as they will be, exclusively by who deletes
// them without a look.
inline constexpr partition::Latch kWholeRows{.name = 1, .exclusive = false};
// Under which a batch is kept. `prefix`: of its partition.
std::string BatchKey(const std::string& prefix, const storage::OperationId& id);
inline constexpr char kBatchMark = '\xFE';
inline constexpr char kSchemaMark = '\xFD';

// The evaluation of one WriteRows.
class Evaluation {
 public:
  // `horizon`: of the partition, if the write has timestamps that are not later; else
  // kNeverWritten. Rows that get those are read, and written as they will be.
  Evaluation(partition::Replica& replica, const WriteRows& write, std::string prefix,
             int64_t horizon)
      : replica_(replica), write_(write), prefix_(std::move(prefix)), horizon_(horizon) {}

  // Reads what conditions, lists and old timestamps need.
  runtime::Task<Status> Load();
  // Whether the conditions hold; what they saw is in `answer` if not. kCorruption.
  Result<bool> Check(WriteAnswer& answer);
  // Takes the next partition time and makes the changes, without waiting. May be called again.
  Status Make();
  bool newest() const { return replica_.last_time() == time_; }
  storage::WriteSet Finish();  // once, right before it is committed
  void Committed() const;

  // The batch that goes with the write, if it has parts: that which came with it, and what indexes
  // and views must be told. REQUIRES: Make() was fine.
  Status AddDerived();
  const std::string& batch() const { return batch_; }

  // By so much at the most.
  int64_t growth() const { return growth_; }
  size_t bytes_read() const { return bytes_read_; }
  const std::string& prefix() const { return prefix_; }

 private:
  runtime::Task<Status> Read(const std::string& key);
  // Those that a deletion takes away: indexes and views must know them, and counters begin anew.
  runtime::Task<Status> ReadRange(std::string begin, std::string end, int64_t deletion);
  runtime::Task<Status> LoadDerived();
  // The keys [begin, end) that a deletion of many rows covers.
  std::pair<std::string, std::string> KeysOf(const RowChange& change) const;
  void DeleteEach(const RowChange& change, int64_t timestamp);
  // As it is stored; nothing if there is none.
  std::optional<std::string_view> Stored(const std::string& key) const;
  // The same with the deletion of the range in it that hides it; what deletes the partition is not.
  std::optional<std::string> Seen(const std::string& key) const;
  Result<cql::LiveRow> Live(const std::string& key, int64_t now) const;
  int64_t DeletedAt(std::string_view clustering, bool is_static) const;
  // What was loaded of a row is older than what a condition writes. kCorruption.
  Status NoteNewest(const std::string& key);
  Status MakeRow(const RowChange& change, int64_t timestamp);
  Status ChangeList(const CellChange& cell, const std::string& key, const cql::Stamp& stamp,
                    cql::RowWriter& writer);
  void Add(std::string key, std::string operand, int64_t timestamp, bool marks = false,
           uint32_t whole = 0);
  // When a deletion with this timestamp is written, if it may not have been later; else 0.
  int64_t LateOf(int64_t timestamp) const;
  // What is left of rows that were written with old timestamps, and what becomes of the totals.
  Status Resolve();
  Result<std::optional<cql::Deletions>> DeletionsAfter() const;
  // A row as it will be.
  std::string After(const std::string& key) const;
  Result<Derived> DerivedFrom(const std::string& key, std::string_view row,
                              const std::optional<cql::Deletions>& deletions) const;
  int64_t TimestampOf(const RowChange& change) const;

  partition::Replica& replica_;
  const WriteRows& write_;
  const std::string prefix_;
  const int64_t horizon_;
  std::map<std::string, std::optional<std::string>> stored_;
  std::optional<cql::Deletions> deletions_;
  size_t bytes_read_ = 0;
  // With conditions: of anything that they looked at, or that is changed.
  int64_t newest_ = cql::kNeverWritten;
  WallTime time_;
  uint32_t list_number_ = 0;
  int64_t growth_ = 0;
  storage::Totals change_;
  struct Operand {
    std::string key;
    std::string bytes;
    bool marks = false;
    uint32_t whole = 0;  // as in RowChange
  };
  // Whether it takes the place of the row instead of being merged into it.
  bool Replaces(const Operand& operand);
  std::vector<Operand> operands_;
  std::map<std::string, std::optional<std::string>> resolved_;  // by key; nothing: it is gone
  std::string batch_;
  std::optional<partition::Horizon::Bounds> bounds_;  // that go with the write
};

}  // namespace orrery::rows
