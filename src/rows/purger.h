// Purger: has what is dead dropped from the tables whose partitions this node leads, now and then.
//
// A partition is walked over when something in it is due, by what the last walk saw; and while it
// is written to after its grace, or an hour. A walk may take a tenth of the time. What is known of
// a partition is forgotten with the term and the table's definition: then it is walked over once.
//
// Lives on the first worker; counts() is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/time.h"
#include "partition/replica.h"
#include "partition/router.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::rows {

class Purger {
 public:
  Purger(partition::ReplicaTable& replicas, runtime::WorkerPool& workers, const Clock& clock,
         Duration interval)
      : replicas_(replicas), workers_(workers), clock_(clock), interval_(interval) {}

  // Looks once in an interval, until Stop().
  void Start();
  // Blocks. REQUIRES: not on a worker.
  void Stop();
  // Looks at all partitions once.
  runtime::Task<> Look();

  // Since the start: keys that are gone, keys of which something is left, bytes.
  struct Counts {
    uint64_t dropped = 0;
    uint64_t trimmed = 0;
    int64_t bytes = 0;
  };
  Counts counts() const { return {dropped_.load(), trimmed_.load(), bytes_.load()}; }

 private:
  // What the last walk over a partition has shown.
  struct Seen {
    uint64_t term = 0;
    uint64_t schema = 0;
    WallTime began;
    Instant ended;
    Duration took = {};
    Lsn applied;       // if nobody else has written since it began
    int64_t next = 0;  // the least limit, in microseconds, at which there is more to drop
  };
  runtime::Task<> Loop(runtime::Gate::Pass pass);
  bool IsDue(const partition::Replica& replica, uint64_t schema, int64_t grace_seconds) const;
  runtime::Task<> Purge(std::shared_ptr<partition::Replica> replica, uint64_t schema);

  partition::ReplicaTable& replicas_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  const Duration interval_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> trimmed_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::unordered_map<PartitionId, Seen> seen_;
};

}  // namespace orrery::rows
