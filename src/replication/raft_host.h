// RaftHost: all raft groups of one node: their ticks, the frames between nodes, and which nodes are
// silent.
//
//   frame = version u8, then parts: group u64, to u64, from u64 (replicas), kind u8, body bytes
//
// Parts for one node that come up in one turn of a worker's loop leave in one frame. Each node
// sends every other one heartbeat; quiet groups live by it.
//
// Thread-safe, unless a function says where it runs.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "replication/raft_replica_set.h"
#include "replication/snapshot_transfer.h"
#include "replication/transport.h"
#include "runtime/gate.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::replication {

// Hears what the groups of a node do; for the simulator. On the group's worker.
class RaftObserver {
 public:
  virtual ~RaftObserver() = default;
  virtual void OnStarted(GroupId group, Lsn applied) = 0;
  // Again and again while it leads, also before it may evaluate.
  virtual void OnLeading(GroupId group, uint64_t term) = 0;
  virtual void OnApplied(GroupId group, Lsn index, const LogEntry& entry) = 0;
  virtual void OnInstalled(GroupId group, Lsn applied) = 0;
};

struct RaftHostOptions {
  RaftSetOptions set;
  // Elect at once when the process of a leader is known to be dead. Excludes leases.
  bool elect_when_refused = true;
  uint32_t guards = kGuardsAll;
  // A replica that differs from a majority of its set; told on the worker of the group, on the
  // leader's node.
  std::function<void(GroupId, ReplicaId)> on_difference;
  RaftObserver* observer = nullptr;
  std::string snapshot_folder;  // for files on their way
  SnapshotLimits snapshots;
};

class RaftHost {
 public:
  RaftHost(NodeId self, storage::Store& store, runtime::WorkerPool& workers, const Clock& clock,
           Random& random, Transport& transport, RaftHostOptions options);
  ~RaftHost();

  void Start();  // ticks and heartbeats
  void Stop();   // blocks; REQUIRES: not on a worker

  // From now on frames reach it. Its owner has set the listener, and starts it on its worker.
  void Insert(std::shared_ptr<RaftReplicaSet> set);
  void Remove(GroupId group);
  std::shared_ptr<RaftReplicaSet> Find(GroupId group) const;
  std::vector<std::shared_ptr<RaftReplicaSet>> All() const;

  // From the transport.
  void OnFrame(NodeId from, std::string frame);
  void OnRefused(NodeId node);
  // The other nodes: who gets heartbeats.
  void SetPeers(std::vector<NodeId> peers);
  // How long nothing was heard of a node; zero for this one.
  Duration SilentFor(NodeId node) const;
  // Calls to a node that is not end with kUnknownOutcome when that is noticed.
  bool Alive(NodeId node) const { return SilentFor(node) < options_.set.election_timeout; }

  // The state was flushed: logs may be cut.
  void OnFlushed();

  // Replicas of partitions that have moved, in sets that were led here then.
  uint64_t moves() const { return moves_; }

  // For groups, on their worker.
  void Send(runtime::Worker& worker, NodeId to, GroupId group, ReplicaId to_replica,
            ReplicaId from_replica, FrameKind kind, std::string_view body);
  void Schedule(RaftReplicaSet& set);  // its deadline may have come nearer
  void CountMove() { ++moves_; }

  NodeId self() const { return self_; }
  storage::Store& store() { return store_; }
  runtime::WorkerPool& workers() { return workers_; }
  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }
  Transport& transport() { return transport_; }
  SnapshotTransfer& snapshots() { return snapshots_; }
  const RaftHostOptions& options() const { return options_; }

 private:
  struct PerWorker {
    std::map<NodeId, std::string> outbox;
    bool flush_posted = false;
    std::set<std::pair<Instant, GroupId>> deadlines;
    std::unordered_map<GroupId, Instant> scheduled;
  };
  void Flush(runtime::Worker& worker);
  runtime::Task<> TickLoop(runtime::Worker& worker, runtime::Gate::Pass pass);
  runtime::Task<> HeartbeatLoop(runtime::Gate::Pass pass);
  void Tell(NodeId node, bool dead);

  const NodeId self_;
  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  Random& random_;
  Transport& transport_;
  const RaftHostOptions options_;
  SnapshotTransfer snapshots_;

  mutable std::mutex mutex_;  // what follows
  std::unordered_map<GroupId, std::shared_ptr<RaftReplicaSet>> groups_;
  struct Peer {
    Instant heard;
    bool reported = false;  // its silence was told to the groups
  };
  std::map<NodeId, Peer> peers_;

  std::vector<PerWorker> per_worker_;  // each on its worker
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> moves_ = 0;
};

}  // namespace orrery::replication
