// BatchKeeper: sees to it that batches over several partitions are done to their end.
//
// Whoever coordinates a batch writes it down with its first partition, does the other parts, and
// then strikes it out. If that process dies, or a part cannot be done, the node that leads the
// first partition finds it here and does what is left: parts have fixed timestamps, so that doing
// them twice changes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "model/catalog.h"
#include "partition/router.h"
#include "rows/rows.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

class BatchKeeper {
 public:
  BatchKeeper(model::Catalog& catalog, partition::Router& router, partition::ReplicaTable& replicas,
              runtime::WorkerPool& workers, const Clock& clock);

  // Looks now and then, until Stop().
  void Start();
  // Blocks. REQUIRES: not on a worker; before the router is stopped.
  void Stop();

  // Does the parts of a batch: ok if all are done. Parts of tables that are gone are.
  runtime::Task<Status> Do(const rows::KeptBatch& batch);
  // Strikes a batch out.
  runtime::Task<Status> End(ContainerId container, const rows::FoundBatch& batch);
  // Looks at all partitions once. `age`: younger ones are left to who began them.
  runtime::Task<> Look(Duration age);

 private:
  // What was found in a partition, and when.
  struct Seen {
    uint64_t term = 0;
    Lsn applied;
    Instant when;
    bool empty = false;
  };
  runtime::Task<> Loop(runtime::Gate::Pass pass);
  bool Wants(const partition::Replica& replica) const;
  runtime::Task<> LookAt(std::shared_ptr<partition::Replica> replica, Duration age);
  runtime::Task<Status> DoPart(const rows::BatchPart& part);

  model::Catalog& catalog_;
  partition::Router& router_;
  partition::ReplicaTable& replicas_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::unordered_map<PartitionId, Seen> seen_;  // on the first worker
};

}  // namespace orrery::cassandra
