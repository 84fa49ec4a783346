// LogicalSizes: how large the logical partitions of a physical partition are, as far as their limit
// needs it.
//
// Nothing is counted while the whole is under half of the limit. From then on:
//   walk     goes over all of the partition, in the background, and finds those that have a quarter
//            of the limit or more. Every other one has less than a quarter, and what was written
//            since the walk began: when that is half of the limit the next walk is due
//   tracked  those that were found, and those that a write had to know at once: measured at a
//            snapshot, then followed write by write
// So a write knows whether there is room without a look at the data. It must wait only in a
// partition that is over the limit of a logical one and was not walked yet: then its own logical
// partition is measured.
//
// Only the leader counts. All of it is forgotten with the term: what comes after was evaluated
// elsewhere. Writes that are on their way are counted as if they were done, until they fail.
//
// Lives on the partition's worker; SetLimit() and largest() are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/engine.h"
#include "storage/keys.h"

namespace orrery::partition {

class LogicalSizes {
 public:
  // How many are tracked; those over a quarter of the limit always are.
  static constexpr size_t kTrackedMax = 256;

  LogicalSizes(GroupId group, storage::KeySpan items, storage::Engine& state,
               runtime::WorkerPool& workers, const replication::ReplicaSet& set)
      : group_(group), items_(std::move(items)), state_(state), workers_(workers), set_(set) {}

  // Of each logical partition, in bytes; 0: none.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  enum class Room : uint8_t { kYes, kNo, kUnknown };
  // Whether a logical partition, named by the prefix of its keys, may grow. kUnknown: Measure it.
  Room RoomFor(const std::string& prefix, int64_t growth);
  // After it succeeded RoomFor knows, until something else is waited for. kUnavailable: try later.
  runtime::Task<Status> Measure(std::string prefix);

  // A change of a logical partition that is about to be committed, and what became of it.
  struct Ticket {
    int64_t growth = 0;
    bool counted = false;
  };
  Ticket Begin(const std::string& prefix, int64_t change);
  void End(const std::string& prefix, int64_t change, const Ticket& ticket,
           const Result<Lsn>& outcome);
  // What is on its way.
  int64_t pending() const { return pending_; }

  // Whether a walk is due. Asked now and then; forgets what is not needed any more.
  bool WantsWalk();
  // Ends early when `stop` says so.
  runtime::Task<> Walk(std::function<bool()> stop);

  // All of them may have changed.
  void Forget();
  // How often that was so.
  uint64_t era() const { return era_; }
  // What was counted of one may be too much: it was written to without a look at what was there. It
  // is measured again when it is asked for. False: that was done a moment ago.
  bool Doubt(const std::string& prefix, Instant now);

  // The largest one that is tracked, some seconds ago; 0: all are small.
  int64_t largest() const { return largest_.load(std::memory_order_relaxed); }

 private:
  struct Tracked {
    bool measured = false;
    bool doubted = false;  // what was measured does not count, but it may be large
    Status failure;
    int64_t bytes = 0;  // when measured
    uint64_t used = 0;  // when it was asked for last
    // While it is measured: the snapshot's place in the log, and the changes behind it.
    std::optional<Lsn> as_of;
    std::vector<std::pair<Lsn, int64_t>> before_known;
    int64_t behind = 0;

    void Add(Lsn lsn, int64_t change);
  };

  int64_t total() const { return set_.totals().bytes + pending_; }
  bool counts() const { return limit() > 0 && total() >= limit() / 2; }
  // Forgets what belongs to another term or limit.
  void Refresh();
  void ShowLargest();
  void Evict();
  runtime::Task<Status> MeasureInto(std::string prefix, std::shared_ptr<Tracked> tracked);

  const GroupId group_;
  const storage::KeySpan items_;
  storage::Engine& state_;
  runtime::WorkerPool& workers_;
  const replication::ReplicaSet& set_;
  std::atomic<int64_t> limit_ = 0;
  std::atomic<int64_t> largest_ = 0;

  // On the worker:
  uint64_t term_ = 0;
  int64_t limit_seen_ = 0;
  uint64_t era_ = 0;  // rises when all is forgotten
  uint64_t uses_ = 0;
  int64_t pending_ = 0;
  std::unordered_map<std::string, int64_t> in_flight_;  // growth, by logical partition
  int64_t uncounted_ = 0;  // growth that is on its way since before anything was counted
  std::unordered_map<std::string, std::shared_ptr<Tracked>> tracked_;
  std::unordered_map<std::string, Instant> doubted_;  // when
  bool walked_ = false;
  int64_t grown_ = 0;  // since the last finished walk began, all logical partitions together
  bool walking_ = false;
  int64_t grown_in_walk_ = 0;
};

}  // namespace orrery::partition
