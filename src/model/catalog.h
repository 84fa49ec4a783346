// Catalog: databases, containers, offers and keys, on a cluster also nodes and placements: the
// state machine of the meta group (group 0). The same on a lone node, on the leader and on
// followers.
//
//   change    is data; evaluated where the meta group is led, one at a time, against the newest
//             view, and committed like any other WriteSet. Other nodes send it there.
//   view      is made of what was applied, on every node; a look-up is a local read. Replicas of
//   new
//             containers exist before the view that names them is published.
//
// view() is thread-safe; changes may be asked for from any worker.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "model/catalog_change.h"
#include "model/catalog_evaluate.h"
#include "model/catalog_records.h"
#include "model/catalog_types.h"
#include "model/placement.h"
#include "partition/latches.h"
#include "replication/replica_set.h"
#include "runtime/gate.h"
#include "runtime/worker.h"
#include "storage/engine.h"

namespace orrery::model {

// What happens on the node when the catalog changes. Called on the meta group's worker.
class CatalogListener {
 public:
  virtual ~CatalogListener() = default;
  // Before the view that names it is published.
  virtual void OnCreated(const std::shared_ptr<const Container>& container,
                         const Database& database) {}
  // The partitions of it are others: before the view that has them is published.
  virtual void OnReshaped(const std::shared_ptr<const Container>& before,
                          const std::shared_ptr<const Container>& after, const Database& database) {
  }
  // The definition, the throughput or the partitions changed. After the view is published.
  virtual void OnChanged(const std::shared_ptr<const Container>& container,
                         const Database& database) {}
  virtual void OnDropped(ContainerId container, const std::vector<PartitionId>& partitions) {}
  // Groups whose placement is new or another in `next`: after OnCreated, before it is published.
  virtual void OnPlaced(const CatalogView& next, const std::vector<GroupId>& groups) {}
  // Groups that have no placement any more; after the view is published, and OnDropped.
  virtual void OnUnplaced(const std::vector<GroupId>& groups) {}
  virtual void OnNodesChanged(const CatalogView& view) {}
  virtual void OnKeysChanged(const AccountKeys& keys) {}
};

// Outcomes of operations that the log still remembers.
struct RecoveredOutcome {
  storage::OperationId id;
  Lsn lsn;
  std::string result;
  WallTime time;
  uint64_t settled = 0;
};

class Catalog final : public replication::ApplyListener {
 public:
  // Takes an encoded change to the node that leads the meta group, and its answer back. kNotLeader,
  // kUnavailable: it was not taken. kUnknownOutcome: it may have been.
  using Forward = std::function<runtime::Task<Result<std::string>>(std::string)>;
  using Health = std::function<ClusterHealth()>;

  // Becomes the listener of `meta`. Lives on the first worker, as the meta group does.
  Catalog(replication::ReplicaSet& meta, runtime::WorkerPool& workers, const Clock& clock,
          Random& random, CatalogLimits limits);

  // Reads the records; `last_time` is that of the meta group's last entry, `outcomes` what its log
  // remembers, `earlier` what came with a snapshot and with its
  // base. REQUIRES: before any other call.
  Status Load(storage::Engine& state, WallTime last_time,
              const std::vector<RecoveredOutcome>& outcomes = {},
              const std::vector<std::string>& earlier = {});
  // REQUIRES for these: before the workers start.
  void AddListener(CatalogListener* listener) { listeners_.push_back(listener); }
  void SetForward(Forward forward) { forward_ = std::move(forward); }
  // What is known about the nodes when a new container is placed.
  void SetHealth(Health health) { health_ = std::move(health); }
  // Changes end soon, with what is known then. Blocks; REQUIRES: not on a worker.
  void Stop();

  std::shared_ptr<const CatalogView> view() const;
  // The last entry of the meta group that the view has.
  Lsn applied() const { return Lsn(applied_.load(std::memory_order_acquire)); }
  partition::Ring FindRing(ContainerId container) const;
  const CatalogLimits& limits() const { return limits_; }
  bool leads() const { return meta_.leads(); }

  // Has the change done, here or where the meta group is led, and repeats it under its id (one is
  // made if it has none) while its fate is open, up to ten seconds. When it returns the view of
  // this node has it, unless this node is far behind.
  runtime::Task<Result<ChangeResult>> Execute(CatalogChange change);
  // What another node's Forward brought. kNotLeader if the meta group is not led here.
  runtime::Task<std::string> HandleForwarded(std::string bytes);

  template <typename T>
  using Change = runtime::Task<Result<std::shared_ptr<const T>>>;
  Change<Database> CreateDatabase(std::string name, ThroughputRequest throughput);
  Change<Database> DefineDatabase(change::DefineDatabase change);
  runtime::Task<Status> DropDatabase(std::string name, std::string if_match);
  Change<Container> CreateContainer(std::string database, types::Document definition,
                                    ThroughputRequest throughput);
  Change<Container> ReplaceContainer(std::string link, types::Document definition,
                                     std::string if_match);
  // Empty, and another one than before.
  Change<Container> RenewContainer(std::string link, types::Document definition,
                                   std::string if_match);
  runtime::Task<Status> DropContainer(std::string link, std::string if_match);
  // If it needs more partitions than there are, some split soon.
  runtime::Task<Status> ReplaceOffer(uint32_t number, ThroughputRequest throughput,
                                     std::string if_match);
  runtime::Task<Status> ReplaceOffer(change::ReplaceOffer change);
  // Gives all keys as they are then.
  runtime::Task<Result<AccountKeys>> ChangeKeys(std::vector<KeyChange> keys);
  runtime::Task<Status> Cleared(ContainerId container);
  runtime::Task<Status> ChangeNode(change::ChangeNode change);
  runtime::Task<Status> SetPlacements(std::vector<PlacementChange> placements);
  runtime::Task<Status> BeginReshape(ContainerId container, std::vector<PartitionId> parents,
                                     types::Epk cut = {});
  runtime::Task<Status> FinishReshape(change::FinishReshape change);
  runtime::Task<Status> AbortReshape(ContainerId container, PartitionId name);
  runtime::Task<Status> PauseBalancer(bool paused);
  runtime::Task<Status> PutRoles(types::Document roles, std::string if_match);

  // replication::ApplyListener, on the worker.
  void OnApplied(Lsn lsn, const storage::WriteSetView& set) override;
  void OnReplaced() override;
  std::string Outcomes() const override;
  void OnLeading(bool leads) override;

 private:
  // A set that was applied while the records are read.
  struct Applied {
    Lsn lsn;
    std::vector<RecordChange> records;
  };
  struct Remembered {
    Lsn lsn;
    std::string result;
  };

  // On the worker:
  runtime::Task<Result<ChangeResult>> EvaluateHere(const CatalogChange& change);
  // Until what this leader committed without an answer is either applied or lost.
  runtime::Task<Status> Settle();
  runtime::Task<Result<ChangeResult>> Commit(Evaluated evaluated, uint64_t term);
  Result<ChangeResult> ResultOf(const ChangeOutcome& outcome, Lsn lsn) const;
  runtime::Task<> Reload(runtime::Gate::Pass pass);
  // Tells the listeners what is different, and shows it.
  void Publish(std::shared_ptr<const CatalogView> next, Lsn lsn);
  void Remember(const storage::OperationId& id, Lsn lsn, std::string_view result);
  // False if they are malformed.
  bool DecodeOutcomes(std::string_view bytes);
  void Break(const Status& why);
  // Later than every time before, so that etags differ.
  WallTime NextTime();
  // On any worker:
  runtime::Task<Result<ChangeResult>> Try(const CatalogChange& change, bool here);
  runtime::Task<Status> ExecuteStatus(CatalogChange::What what);
  runtime::Task<> WaitApplied(Lsn lsn);
  // REQUIRES: view_mutex_ is held.
  void SetView(std::shared_ptr<const CatalogView> view);

  replication::ReplicaSet& meta_;
  runtime::WorkerPool& workers_;
  runtime::Worker& worker_;
  const Clock& clock_;
  Random& random_;
  const CatalogLimits limits_;
  storage::Engine* state_ = nullptr;
  std::vector<CatalogListener*> listeners_;
  Forward forward_;
  Health health_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const CatalogView> view_;
  std::atomic<uint64_t> view_version_ = 0;
  std::atomic<uint64_t> applied_ = 0;

  // On the worker:
  partition::Latches latches_;
  WallTime last_time_;
  // Ids that this node has given out, also in changes whose fate is not known.
  CatalogCounters given_;
  bool doubtful_ = false;  // such a change may still be applied in this term
  std::unordered_map<storage::OperationId, Remembered, storage::OperationIdHash> outcomes_;
  std::deque<storage::OperationId> outcome_order_;
  bool loading_ = false;
  uint64_t load_number_ = 0;
  std::vector<Applied> while_loading_;
  Status broken_;  // a record that this program cannot read: no changes any more
};

}  // namespace orrery::model
