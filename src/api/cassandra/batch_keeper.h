// BatchKeeper: writes rows, and sees to it that what follows from a write in other partitions is
// done to its end: the rest of a logged batch, and what indexes and views keep of the rows.
//
// It is written down as a batch with the first partition; whoever coordinates the write does the
// other parts and then strikes it out. If that process dies, or a part cannot be done, the node
// that leads the first partition finds it here and does what is left: parts have fixed timestamps,
// so that doing them twice changes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "api/cassandra/schema_cache.h"
#include "base/time.h"
#include "partition/router.h"
#include "rows/rows.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

class BatchKeeper {
 public:
  BatchKeeper(const SchemaCache& schemas, partition::Router& router,
              partition::ReplicaTable& replicas, runtime::WorkerPool& workers, const Clock& clock);

  // Looks now and then, until Stop(). `alone`: there is no other node that could be at it, so what
  // is older than this process is done at once.
  void Start(bool alone);
  // Blocks. REQUIRES: not on a worker; before the router is stopped.
  void Stop();

  struct Written {
    Status status;
    partition::RequestUnits charge;
    rows::WriteAnswer answer;
  };
  // A write with all that follows from it. kOwnerNotFound: the table is gone. kUnknownOutcome also
  // if the write is done and the rest will be.
  runtime::Task<Written> Write(ContainerId table, rows::WriteRows& write);
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
  // One that nobody finished.
  runtime::Task<> Finish(ContainerId container, const rows::FoundBatch& batch);
  // The write alone, made again if the indexes or views of the table change meanwhile.
  runtime::Task<partition::Reply> Send(ContainerId table, rows::WriteRows& write);
  // Ok if all are done. Parts of tables that are gone are.
  runtime::Task<Written> Do(const rows::KeptBatch& batch);
  runtime::Task<Written> DoPart(const rows::BatchPart& part);
  // One change after the other: of a part that is too large to be done at once. All of it has its
  // time already, so that nothing is different in the end.
  runtime::Task<Written> DoChanges(const rows::BatchPart& part);
  // Row by row what a deletion covers, and then the deletion.
  runtime::Task<Written> DeleteRows(const rows::BatchPart& part, const rows::RowChange& deletion);
  runtime::Task<Written> WritePart(const rows::BatchPart& part,
                                   std::vector<rows::RowChange> changes);
  // Strikes a batch out.
  runtime::Task<Status> End(ContainerId table, const types::Epk& epk,
                            const std::string& partition_key, const storage::OperationId& batch);

  const SchemaCache& schemas_;
  partition::Router& router_;
  partition::ReplicaTable& replicas_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  int64_t nobodys_ = INT64_MIN;  // batches that were made before, in microseconds, are nobody's
  std::unordered_map<PartitionId, Seen> seen_;  // on the first worker
};

}  // namespace orrery::cassandra
