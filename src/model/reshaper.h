// Reshaper: carries out the splits and merges that the catalog has begun (Container::reshapes), for
// the partitions that this node leads.
//
//   split    the leader walks over the items and finds the place to cut. Then it keeps writes out
//            for a moment, and the last entry of the partition's log says where it is cut: that is
//            the point of no return. The catalog follows, with two heirs in its place.
//   merge    the leader of the left one looks whether all replicas of both are there, has both
//            frozen, waits until every node that has the one has all of the other, and tells the
//            catalog: that is the point of no return. If it takes too long it is called off there,
//            and the leaders go on.
//
// An heir begins with what the parents have on each node (PartitionHost): no item is moved. A crash
// at any step leaves the parents, frozen or not, or the heirs; whoever leads then goes on.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/catalog.h"
#include "model/freeze_partition.h"
#include "partition/reshape.h"
#include "partition/router.h"
#include "runtime/gate.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::model {

struct ReshaperOptions {
  Duration look_interval = std::chrono::milliseconds(20);
  Duration holders_wait = std::chrono::milliseconds(500);  // for replicas that are behind
  // Of a merge, and for its replicas to be there before it; then it is called off.
  Duration freeze_max = std::chrono::seconds(3);
  // Of a merge, for replicas to move; a second more for each megabyte.
  Duration gather_max = std::chrono::seconds(60);
  double partition_bytes = 30e9;
  // Of a split: logical partitions that may change while the place to cut is looked for. If there
  // are more it is taken all the same, and what lies before it is counted in a second walk.
  size_t watched_max = 100'000;
};

// What this node has carried out since its start. Thread-safe.
struct ReshapeCounters {
  std::atomic<uint64_t> splits = 0;
  std::atomic<uint64_t> merges = 0;
  std::atomic<uint64_t> splits_called_off = 0;
  std::atomic<uint64_t> merges_called_off = 0;
};

class Reshaper {
 public:
  // Takes what an heir must remember of its parents; called before the heir is there.
  using Inherit = std::function<void(PartitionId heir, std::string outcomes)>;

  Reshaper(Catalog& catalog, storage::Store& store, runtime::WorkerPool& workers,
           const Clock& clock, partition::ReplicaTable& replicas, ReshaperOptions options);
  void SetInherit(Inherit inherit) { inherit_ = std::move(inherit); }
  // How partitions are reached that are led elsewhere. REQUIRES: before Start.
  void SetRouter(partition::Router* router) { router_ = router; }

  void Start();
  void Stop();  // blocks; REQUIRES: not on a worker

  const ReshapeCounters& counters() const { return counters_; }

 private:
  struct Task {
    std::shared_ptr<const Container> container;
    Reshape reshape;
    Instant since;
  };

  runtime::Task<> Run(runtime::Gate::Pass pass);
  void Look();
  void LookForWork(const CatalogView& view);
  void FlushFor(const Reshape& reshape);
  void LookForThaws(const CatalogView& view);
  runtime::Task<> Drive(Task task, std::shared_ptr<partition::Replica> replica,
                        runtime::Gate::Pass pass);
  runtime::Task<Status> Split(const Task& task, partition::Replica& replica);
  runtime::Task<Result<storage::Totals>> Count(const Task& task, partition::Replica& replica,
                                               std::shared_ptr<const storage::Snapshot> state);
  runtime::Task<Result<partition::CutFinder::Cut>> FindCut(
      const Task& task, partition::Replica& replica, storage::Totals totals, types::Epk given,
      std::shared_ptr<const storage::Snapshot> state);
  runtime::Task<Status> FreezeAt(const Task& task, partition::Replica& replica, types::Epk& place);
  runtime::Task<Status> FinishSplit(const Task& task, partition::Replica& replica);
  runtime::Task<Status> Merge(const Task& task, partition::Replica& left);
  runtime::Task<Status> Gather(const Task& task, int64_t bytes);
  runtime::Task<Status> WaitForAll(const Task& task, partition::Replica& left);
  runtime::Task<Result<FreezePartition::Answer>> AskRight(const Task& task, bool freeze);
  runtime::Task<Status> FinishMerge(const Task& task, const FreezePartition::Answer& left,
                                    const FreezePartition::Answer& right);
  runtime::Task<> Thaw(std::shared_ptr<partition::Replica> replica, runtime::Gate::Pass pass);

  Catalog& catalog_;
  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  partition::ReplicaTable& replicas_;
  const ReshaperOptions options_;
  partition::Router* router_ = nullptr;
  Inherit inherit_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  ReshapeCounters counters_;

  // On the first worker:
  std::set<PartitionId> running_;         // by name, and what is being thawed by its own id
  std::map<PartitionId, Instant> since_;  // changes that the view has, and when that was seen
  std::shared_ptr<const CatalogView> looked_at_;
  Instant next_thaws_;
  PartitionId flushed_;  // the newest change that the state was flushed for
};

}  // namespace orrery::model
