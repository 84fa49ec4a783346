// Instance: one Orrery below its front ends: store, replicas, catalog, router, and on a cluster the
// consensus groups and the care for them. A process runs one; the simulator runs many.
//
// Alone, every group is committed by this node's log. As a member of a cluster it has an identity,
// which it got from the meta group and keeps for ever; every group is then a raft group, also while
// there is one node.
//
//   Open    recovers (before the workers start); Start brings the groups to life; Stop ends them
//   OnFrame, OnCall, OnRefused    what the transport brings
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "cluster/balancer.h"
#include "model/balance.h"
#include "model/catalog.h"
#include "model/partition_host.h"
#include "model/placement.h"
#include "model/reshaper.h"
#include "partition/router.h"
#include "replication/local_replica_set.h"
#include "replication/raft_host.h"
#include "replication/transport.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::cluster {

// Who a member is. An empty data folder is a new node, with a new identity.
struct NodeIdentity {
  uint64_t cluster = 0;
  NodeId node;
  ReplicaId meta_replica;
  // The nodes there were when it last heard of them, with their addresses, and up to which entry of
  // the catalog that was. After a crash the catalog may be older, and newer only by their help.
  std::map<NodeId, std::string> nodes;
  Lsn nodes_as_of;
  bool operator==(const NodeIdentity&) const = default;
};

struct InstanceOptions {
  std::optional<NodeIdentity> identity;  // none: a lone node
  bool begins_cluster = false;           // a lone node that is about to become the first of one
  model::CatalogLimits limits;
  model::HostOptions host;
  replication::RaftHostOptions raft;
  model::PlacementSettings placement;
  model::ReshaperOptions reshaper;
  BalancerOptions balancer;
  Duration care_interval = std::chrono::seconds(1);
  Duration check_interval = std::chrono::hours(1);  // between two comparisons of a set's replicas
  std::function<uint64_t()> free_bytes;             // of the disk, for placement; null: plenty
  // Told on the first worker.
  std::function<void(const std::map<NodeId, std::string>& addresses, Lsn as_of)> on_nodes;
  std::function<void()> on_keys;
  std::function<void()> on_removed;  // others say that this node is no member any more
};

// What a replica knows of its partition. Only the leader knows what was spent.
struct PartitionFigures {
  storage::Totals totals;
  partition::RequestUnits share;
  partition::RequestUnits used_last_second;
  partition::ReplicaStats stats;
  partition::RequestUnits sustained = {};  // for five seconds
};
// One replica, as its node sees it.
struct ReplicaReport {
  GroupId group;
  NodeId node;
  replication::RaftView raft;
  std::optional<PartitionFigures> figures;  // none: the meta group
};
// What a node says about itself.
struct NodeReport {
  NodeId node;
  bool reached = false;
  uint64_t free_bytes = 0;
  bool log_healthy = true;
  bool disk_full = false;
  std::vector<ReplicaReport> replicas;
};

struct Overview;  // cluster/overview.h

// What a node hears that was removed, and the answer to kCatalogIndex that says so.
inline constexpr std::string_view kRemovedAnswer = "removed";
inline constexpr std::string_view kRemovedText =
    "this node was removed from its cluster: it can come back only as a new node, with an empty "
    "data folder";

class Instance final : public model::CatalogListener {
 public:
  Instance(InstanceOptions options, std::unique_ptr<storage::Engine> log,
           std::unique_ptr<storage::Engine> state, storage::StoreOptions store_options,
           runtime::WorkerPool& workers, const Clock& clock, Random& random,
           const partition::OperationRegistry& registry, replication::Transport* transport);
  ~Instance() override;

  // REQUIRES: nothing was posted to the workers yet that knows this instance.
  Status Open();
  void Start();  // REQUIRES: the workers run
  void Stop();   // blocks; REQUIRES: not on a worker
  // Gives the leadership of its groups to others, as far as that can be done in `longest`.
  runtime::Task<> HandOver(Duration longest);

  // From the transport, on a worker. `from` is 0 for who is no member yet.
  void OnFrame(NodeId from, std::string frame);
  runtime::Task<std::string> OnCall(NodeId from, std::string request);
  void OnRefused(NodeId node);

  // What a node that wants to join sends to any member; the answer is model::EncodeAnswer.
  static std::string JoinRequest(const model::CatalogChange& add_node);

  // Waits until the catalog here has everything that was done anywhere before the call. If that
  // takes long it returns all the same: nobody knows better then. Nothing to do on a lone node.
  runtime::Task<> CatchUp();

  // Operators. kForbidden: sets would fall below what they need.
  runtime::Task<Status> Drain(NodeId node);
  runtime::Task<Status> Undrain(NodeId node);
  runtime::Task<Status> Remove(NodeId node);
  // Of all nodes that can be reached, each as far as it answers soon.
  runtime::Task<std::vector<NodeReport>> Inspect();
  // Of this node alone. REQUIRES: clustered()
  runtime::Task<NodeReport> InspectHere();
  // Of the replica that is here; nothing if there is none.
  std::optional<PartitionFigures> FiguresOf(PartitionId partition);
  // All that is known about nodes and sets. With `here` only what this node knows by itself.
  // REQUIRES: clustered()
  runtime::Task<Overview> Look(bool here = false);

  // Whether the meta group has a leader, as far as this node knows.
  bool catalog_led() const { return meta_->leads() || meta_->leader_node() != NodeId(); }
  bool clustered() const { return options_.identity.has_value(); }
  NodeId self() const { return clustered() ? options_.identity->node : NodeId(); }
  storage::Store& store() { return *store_; }
  model::Catalog& catalog() { return *catalog_; }
  partition::Router& router() { return *router_; }
  partition::ReplicaTable& replicas() { return replicas_; }
  replication::RaftHost* raft() { return raft_.get(); }
  const model::ReshapeCounters& reshapes() const { return reshaper_->counters(); }

  // model::CatalogListener
  void OnPlaced(const model::CatalogView& next, const std::vector<GroupId>& groups) override;
  void OnNodesChanged(const model::CatalogView& view) override;
  void OnKeysChanged(const model::AccountKeys& keys) override;

 private:
  Status OpenMeta(const std::vector<model::RecoveredOutcome>& outcomes);
  Status FoundMeta();
  void ConnectRouter();
  runtime::Task<partition::RequestUnits> Borrow(partition::BudgetOwner owner,
                                                partition::Budget::Ask ask);
  runtime::Task<Result<std::string>> ForwardChange(std::string change);
  runtime::Task<std::string> Join(std::string request);
  runtime::Task<Result<Lsn>> CatalogIndex();
  runtime::Task<Result<Lsn>> AskCatalogIndex(NodeId leader);
  runtime::Task<std::string> AnswerCatalogIndex(NodeId from);
  bool WasRemoved(NodeId node) const;
  NodeId CatalogLeader() const;
  NodeId NextOther();
  void OnRemoved();
  runtime::Task<std::string> SnapshotExtra(GroupId group);
  model::ClusterHealth Health() const;
  // care.cc
  runtime::Task<> Care(runtime::Gate::Pass pass);
  runtime::Task<> CareOnce();
  model::GroupLoads GroupLoadsOf(const PartitionLoads& loads);
  runtime::Task<> CareAlone();
  void CheckOne();
  runtime::Task<> AskWhetherRemoved();
  runtime::Task<NodeReport> InspectNode(NodeId node);
  runtime::Task<> ReplaceBroken(GroupId group, ReplicaId broken);
  void FollowNodes(const model::CatalogView& view);

  const InstanceOptions options_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  Random& random_;
  const partition::OperationRegistry& registry_;
  replication::Transport* const transport_;

  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<replication::RaftHost> raft_;
  std::shared_ptr<replication::ReplicaSet> meta_;
  std::shared_ptr<replication::RaftReplicaSet> meta_raft_;  // the same, on a cluster
  std::vector<storage::LogEntry> meta_heads_;
  std::unique_ptr<model::Catalog> catalog_;
  partition::ReplicaTable replicas_;
  std::unique_ptr<partition::Router> router_;
  std::unique_ptr<model::PartitionHost> host_;
  std::unique_ptr<model::Reshaper> reshaper_;
  std::unique_ptr<Balancer> balancer_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint32_t> next_try_ = 0;
  std::atomic<bool> told_removed_ = false;
  std::map<GroupId, Instant> checked_;    // by Care
  std::map<PartitionId, double> smooth_;  // RU/s; by Care
};

}  // namespace orrery::cluster
