// Horizon: what the leader of a partition of a table knows of the timestamps of its rows, all in
// microseconds, without a look at them.
//
//   horizon   the purge horizon. What died before it may have been dropped for good, or is being
//             dropped: whoever writes with a timestamp that is not later must look at what is there
//             (rows/purge_rows.h)
//   newest    no row has a later timestamp than partition time when the term began, or `ahead`, or
//             the latest of this term's writes to the rows that share its slot. So a write of a
//             whole row that is later than that puts it in the place of what was there
//   columns   no row has a cell of a column with a greater id: whoever does not know of a column
//             does not write whole rows
//
// Horizon, ahead (of timestamps beyond partition time) and columns only rise, and are records of
// the partition's state, at the beginning of its range:
//
//   index    'u', container u32, EPK (ordered bytes), 00, FC    -> horizon u64
//   index    'u', container u32, EPK (ordered bytes), 00, FB    -> ahead u64, columns u32
//
// So replicas and snapshots have them. A split writes them for the right heir; after a merge there
// are two of each, of which the later counts.
//
// Lives on the partition's worker. Only the leader knows it: it is read again with each term.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/engine.h"
#include "storage/write_set.h"
#include "types/epk.h"

namespace orrery::partition {

class Horizon {
 public:
  static constexpr int64_t kNone = INT64_MIN;

  Horizon(ContainerId container, types::EpkRange range, storage::Engine& state,
          runtime::WorkerPool& workers, const replication::ReplicaSet& set)
      : container_(container),
        range_(std::move(range)),
        state_(state),
        workers_(workers),
        set_(set) {}

  // Nothing: Read() it first.
  std::optional<int64_t> known() const {
    return term_ == set_.term() ? std::optional(value_) : std::nullopt;
  }
  // kNone: nothing was purged yet. kNotLeader, kCorruption.
  runtime::Task<Result<int64_t>> Read();

  // Adds to a WriteSet that it rises, and tells what came of that. REQUIRES: it is known.
  void AddTo(storage::WriteSet& set, int64_t to) const;
  void Risen(int64_t to, const Result<Lsn>& outcome);
  // Adds what the right heir of a split at `cut` begins with. REQUIRES: it is known.
  void AddForHeir(storage::WriteSet& set, std::string_view cut) const;

  // A write to a row, whose latest timestamp is this, in an entry of this time; called in the order
  // of the log. Whether all that was written to the row before is older. REQUIRES: it is known.
  bool NoteWrite(std::string_view key, int64_t timestamp, WallTime time);
  // The greatest column of a write.
  void NoteColumn(uint32_t column) { bounds_.columns = std::max(bounds_.columns, column); }
  uint32_t columns() const { return bounds_.columns; }
  struct Bounds {
    int64_t ahead = kNone;
    uint32_t columns = 0;
    bool operator==(const Bounds&) const = default;
  };
  // Adds to the WriteSet of these writes what must be known of them later, and gives it; nothing if
  // that is known already. Kept(): it is committed.
  std::optional<Bounds> AddBoundsTo(storage::WriteSet& set) const;
  void Kept(const Bounds& bounds);

 private:
  static constexpr size_t kSlots = 1024;

  std::string KeyAt(std::string_view epk, char mark) const;
  Status TakeRecord(std::string_view key, std::string_view value, int64_t& horizon,
                    Bounds& bounds) const;

  const ContainerId container_;
  const types::EpkRange range_;
  storage::Engine& state_;
  runtime::WorkerPool& workers_;
  const replication::ReplicaSet& set_;
  std::optional<uint64_t> term_;  // in which it was read
  int64_t value_ = kNone;
  std::optional<uint64_t> noted_term_;  // of what follows
  Bounds bounds_;
  Bounds kept_;                 // of them, what is surely a record
  std::vector<int64_t> slots_;  // empty: nothing was written in this term
};

}  // namespace orrery::partition
