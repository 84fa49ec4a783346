// PartitionHost: makes this node's replicas follow the catalog, and looks after them in the
// background: deletes what has expired, clears what was dropped, counts large logical partitions.
//
// A lone node has a replica of every partition. On a cluster placements say which replicas are
// here: one task at a time makes those that are missing and takes away those that no configuration
// has any more (partition_follow.cc).
//
// What CatalogListener declares runs on the meta group's worker.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/catalog.h"
#include "partition/replica.h"
#include "partition/router.h"
#include "replication/raft_host.h"
#include "runtime/gate.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::model {

struct HostOptions {
  bool burst = false;
  bool strict = false;  // throttle also where nobody chose a throughput
  Duration sweep_interval = std::chrono::seconds(1);
  replication::Staleness staleness;
  // On a cluster: how long a node is well before it takes the leadership back where a placement
  // names it first.
  Duration return_after = std::chrono::seconds(10);
};

// By group.
using RecoveredOutcomes = std::map<GroupId, std::vector<RecoveredOutcome>>;

// Members of a placement, as the consensus core knows them.
replication::Configuration ConfigurationOf(const std::vector<PlacedReplica>& members);
// How a group begins on each of its founders; `applied`: what a lone node's group has become.
storage::LogBase FoundingBase(const Placement& placement, Lsn applied);

class PartitionHost final : public CatalogListener {
 public:
  PartitionHost(Catalog& catalog, storage::Store& store, runtime::WorkerPool& workers,
                const Clock& clock, partition::ReplicaTable& replicas, HostOptions options);

  // From now on placements decide. `replace` asks meta for a new replica in the place of one that
  // is broken, `borrow` the owner of a budget for units. REQUIRES: before Load.
  using Replace = std::function<runtime::Task<>(GroupId, ReplicaId)>;
  using Borrow = decltype(partition::ReplicaServices::borrow);
  void SetCluster(NodeId self, replication::RaftHost* raft, Replace replace, Borrow borrow);
  // Makes the replicas of what the catalog has. REQUIRES: before the workers start. kCorruption if
  // a container has no database.
  Status Load(RecoveredOutcomes outcomes);
  // What an heir will remember of its parents; on a lone node. Thread-safe.
  void Inherit(PartitionId heir, std::string outcomes);
  void Start();  // the background work
  void Stop();   // blocks; REQUIRES: not on a worker

  void OnCreated(const std::shared_ptr<const Container>& container,
                 const Database& database) override;
  void OnReshaped(const std::shared_ptr<const Container>& before,
                  const std::shared_ptr<const Container>& after, const Database& database) override;
  void OnChanged(const std::shared_ptr<const Container>& container,
                 const Database& database) override;
  void OnDropped(ContainerId container, const std::vector<PartitionId>& partitions) override;
  void OnPlaced(const CatalogView& next, const std::vector<GroupId>& groups) override;
  void OnUnplaced(const std::vector<GroupId>& groups) override;

 private:
  struct Share {
    partition::RequestUnits units;  // RU/s
    bool governed = false;
    partition::Buckets buckets;
  };
  // Of one partition, or of the database that it shares.
  Share ShareOf(const Container& container, const Database& database, PartitionId partition) const;
  std::vector<std::shared_ptr<partition::Replica>> MakeReplicas(
      const std::shared_ptr<const Container>& container, const Database& database);
  std::shared_ptr<partition::Budget> BudgetOf(const Container& container, const Database& database,
                                              const partition::PartitionRange& range,
                                              const Share& share);
  std::shared_ptr<partition::Replica> MakeReplica(const std::shared_ptr<const Container>& container,
                                                  const Database& database,
                                                  const partition::PartitionRange& range,
                                                  std::shared_ptr<replication::ReplicaSet> set,
                                                  const std::vector<std::string>& outcomes = {});
  // partition_follow.cc
  struct Wanted {
    std::shared_ptr<const Placement> placement;
    PlacedReplica placed;
    std::shared_ptr<const Container> container;
    std::shared_ptr<const Database> database;
    partition::PartitionRange range;
    bool leaving = false;  // no placement has it any more
  };
  std::map<GroupId, Wanted> WantedHere(const CatalogView& view) const;
  runtime::Task<> Follow(runtime::Gate::Pass pass);
  runtime::Task<bool> FollowOnce();
  void FollowOwners(const CatalogView& view);
  void FollowLeaders(const CatalogView& view);
  runtime::Task<bool> Adopt(GroupId group, const Wanted& wanted);
  Result<std::vector<storage::LogEntry>> Prepare(GroupId group, const Wanted& wanted, bool* fresh);
  void StartReplica(GroupId group, const Wanted& wanted, std::vector<storage::LogEntry> heads,
                    const std::vector<std::string>& outcomes, bool fresh);
  runtime::Task<> Destroy(GroupId group, bool for_good = false);
  runtime::Task<> Detach(GroupId group);
  // Groups that are here and whose heirs the catalog knows, with where they end.
  using Ends = std::map<GroupId, std::shared_ptr<const Placement>>;  // with its origin
  Ends EndsHere(const CatalogView& view) const;
  runtime::Task<bool> Succeed(const CatalogView& view, const Origin& origin);
  std::vector<storage::Heir> HeirsHere(const CatalogView& view, const Origin& origin,
                                       const std::string& outcomes) const;
  runtime::Task<> Retire(std::vector<PartitionId> parents, runtime::Gate::Pass pass);
  runtime::Task<> WaitUntilUnused(std::vector<std::weak_ptr<partition::Replica>> leaving);

  runtime::Task<> Sweep(runtime::Gate::Pass pass);
  runtime::Task<> CountSizes(runtime::Gate::Pass pass);
  runtime::Task<> SweepReplica(std::shared_ptr<partition::Replica> replica);
  runtime::Task<> Clear(ContainerId container, std::vector<PartitionId> partitions,
                        runtime::Gate::Pass pass);

  Catalog& catalog_;
  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  partition::ReplicaTable& replicas_;
  const HostOptions options_;
  partition::ReplicaServices services_;
  NodeId self_;
  replication::RaftHost* raft_ = nullptr;  // on a cluster
  Replace replace_;
  std::atomic<bool> changed_ = true;  // the catalog, since the last look
  RecoveredOutcomes outcomes_;
  std::map<DatabaseId, std::shared_ptr<partition::Budget>> shared_budgets_;
  struct Misled {
    bool here = false;  // and should not be, or elsewhere and should be here
    Instant since;
  };
  std::map<GroupId, Misled> misled_;
  std::map<GroupId, Instant> behind_;  // parents that lack their last entries, since when
  std::mutex inherited_mutex_;
  std::map<PartitionId, std::string> inherited_;  // outcomes, for heirs to come
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace orrery::model
