// Router: finds the partition of an operation and has it run there.
//
// It does not care where a partition lives: here the operation object is handed over as it is,
// elsewhere it is encoded, sent, decoded and run by the same code. When the map was old (kMoved,
// kSchemaChanged) it looks again and repeats. On a cluster it follows the leader: what was refused
// by a replica that does not lead, or got lost on the way, is tried again under the same operation
// id, so a write gets its first outcome; what cannot be known in the end is reported as unknown.
// With each write it tells which of its earlier ones have ended, and need not be remembered.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "partition/flights.h"
#include "partition/operation.h"
#include "partition/partition_map.h"
#include "partition/replica.h"
#include "runtime/task.h"

namespace orrery::partition {

// The replicas of this node.
class ReplicaTable {
 public:
  ReplicaTable() { Replace(std::make_shared<const Map>()); }
  std::shared_ptr<Replica> Find(PartitionId id) const;
  void Add(const std::vector<std::shared_ptr<Replica>>& replicas);
  void Remove(const std::vector<PartitionId>& ids);
  std::vector<std::shared_ptr<Replica>> All() const;

 private:
  using Map = std::unordered_map<PartitionId, std::shared_ptr<Replica>>;
  std::shared_ptr<const Map> Current() const;
  void Replace(std::shared_ptr<const Map> map);

  mutable std::mutex mutex_;
  std::shared_ptr<const Map> map_;
  std::atomic<uint64_t> version_ = 0;
};

// The ring of a container as it was when the operation was made.
struct Ring {
  ContainerId container;
  std::shared_ptr<const PartitionMap> map;
  uint64_t schema_version = 1;
};

// Where the newest ring of a container comes from; null map if the container is gone. Thread-safe.
using FindRing = std::function<Ring(ContainerId)>;

// How other nodes are reached. Thread-safe.
struct Remote {
  NodeId self;
  // Those that should have a replica of the partition.
  std::function<std::vector<NodeId>(PartitionId)> nodes;
  // kUnavailable: it was not sent. kUnknownOutcome: it may have been handled.
  // It ends when nothing is heard of the node any more.
  std::function<runtime::Task<Result<std::string>>(NodeId, std::string)> call;
  // Whether anything was heard of a node lately; others are not asked. Empty: of all.
  std::function<bool(NodeId)> alive = {};
  bool always = false;  // even what is here goes through `call`; for tests
};

class Router {
 public:
  Router(ReplicaTable& replicas, const OperationRegistry& registry, FindRing find_ring,
         Random& random, const Clock& clock);
  // REQUIRES: before the first operation.
  void SetRemote(Remote remote) { remote_ = std::move(remote); }
  // Whether everybody reads Operation::settled; once true it stays so. By default it is. REQUIRES:
  // thread-safe, and before the first operation.
  void SetTellsSettled(std::function<bool()> tells) { may_tell_ = std::move(tells); }

  // To the partition that holds this place of the ring. An operation that its maker did not name
  // gets its id here; executed again it is another one.
  runtime::Task<Reply> Execute(Ring ring, std::string_view epk, Operation& operation);
  // To one partition, by its id as of `ring`. kMoved if it is not (or no longer) there.
  runtime::Task<Reply> ExecuteAt(const Ring& ring, const PartitionRange& range,
                                 Operation& operation);

  // After kMoved or kSchemaChanged, for the tries-th time: the ring as it is now, after a pause.
  // Null map: the container is gone. Nothing: it has been tried for long enough.
  runtime::Task<std::optional<Ring>> LookAgain(const Ring& ring, int tries);

  // What a node does with the message of another.
  runtime::Task<std::string> HandleMessage(std::string message);

 private:
  bool TellsSettled();
  std::optional<Flights::Flight> Name(Operation& operation);
  runtime::Task<Reply> Try(const Ring& ring, const PartitionRange& range, Operation& operation);
  runtime::Task<Reply> Send(NodeId node, const Operation& operation);
  runtime::Task<Reply> Ask(NodeId node, Operation& operation);
  runtime::Task<Reply> FollowLeader(Operation& operation);
  NodeId IfAlive(NodeId node) const;
  NodeId LikelyLeader(PartitionId partition) const;
  NodeId NextInTurn(const std::vector<NodeId>& nodes, int tries) const;
  void LearnLeader(PartitionId partition, NodeId node);
  void ForgetLeader(PartitionId partition, NodeId node);

  ReplicaTable& replicas_;
  const OperationRegistry& registry_;
  const FindRing find_ring_;
  Random& random_;
  const Clock& clock_;
  std::optional<Remote> remote_;
  std::function<bool()> may_tell_;
  std::atomic<bool> tells_ = false;
  Flights flights_;

  mutable std::mutex leaders_mutex_;
  std::unordered_map<PartitionId, NodeId> leaders_;  // where the last answer came from
};

}  // namespace orrery::partition
