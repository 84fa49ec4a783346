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
#include "model/catalog.h"
#include "model/partition_host.h"
#include "model/placement.h"
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
  // The nodes there were when it joined, with their addresses: until it has the catalog.
  std::map<NodeId, std::string> nodes;
  bool operator==(const NodeIdentity&) const = default;
};

struct InstanceOptions {
  std::optional<NodeIdentity> identity;  // none: a lone node
  bool begins_cluster = false;           // a lone node that is about to become the first of one
  model::CatalogLimits limits;
  model::HostOptions host;
  replication::RaftHostOptions raft;
  model::PlacementSettings placement;
  Duration care_interval = std::chrono::seconds(1);
  Duration check_interval = std::chrono::hours(1);  // between two comparisons of a set's replicas
  std::function<uint64_t()> free_bytes;             // of the disk, for placement; null: plenty
  // Told on the first worker.
  std::function<void(const model::CatalogView&)> on_nodes;
  std::function<void()> on_keys;
};

// One replica, as its node sees it.
struct ReplicaReport {
  GroupId group;
  NodeId node;
  replication::RaftView raft;
};
// What a node says about itself.
struct NodeReport {
  NodeId node;
  bool reached = false;
  uint64_t free_bytes = 0;
  std::vector<ReplicaReport> replicas;
};

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

  // Operators. kForbidden: sets would fall below what they need.
  runtime::Task<Status> Drain(NodeId node);
  runtime::Task<Status> Remove(NodeId node);
  // Of all nodes that can be reached.
  runtime::Task<std::vector<NodeReport>> Inspect();

  bool clustered() const { return options_.identity.has_value(); }
  NodeId self() const { return clustered() ? options_.identity->node : NodeId(); }
  storage::Store& store() { return *store_; }
  model::Catalog& catalog() { return *catalog_; }
  partition::Router& router() { return *router_; }
  partition::ReplicaTable& replicas() { return replicas_; }
  replication::RaftHost* raft() { return raft_.get(); }

  // model::CatalogListener
  void OnPlaced(const model::CatalogView& next, const std::vector<GroupId>& groups) override;
  void OnNodesChanged(const model::CatalogView& view) override;
  void OnKeysChanged(const model::AccountKeys& keys) override;

 private:
  Status OpenMeta(const std::vector<model::RecoveredOutcome>& outcomes);
  Status FoundMeta();
  void ConnectRouter();
  runtime::Task<Result<std::string>> ForwardChange(std::string change);
  runtime::Task<std::string> Join(std::string request);
  runtime::Task<std::string> SnapshotExtra(GroupId group);
  model::ClusterHealth Health() const;
  // care.cc
  runtime::Task<> Care(runtime::Gate::Pass pass);
  runtime::Task<> CareOnce();
  void CheckOne();
  runtime::Task<NodeReport> InspectHere();
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
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint32_t> next_try_ = 0;
  std::map<GroupId, Instant> checked_;  // by Care
};

}  // namespace orrery::cluster
