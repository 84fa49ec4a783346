// SimNode: what the simulator runs: one process of a cluster, from the engines up, without its
// network and its threads. Cluster makes them.
//
// A node reaches the world only through its Environment. All calls come on the simulator's one
// thread; those that say so on a worker of the node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "replication/transport.h"
#include "runtime/worker.h"
#include "storage/engine.h"

namespace orrery::sim {

class Witness;

// --- what clients ask ----------------------------------------------------------------------------

enum class OpKind : uint8_t {
  kCreate,
  kUpsert,
  kReplace,
  kDelete,
  kRead,
  kSessionRead,
  kBoundedRead
};
// Only kRead is Strong, and in the history that must be linearizable.
inline bool Reads(OpKind kind) { return kind >= OpKind::kRead; }
inline bool ReadsWeakly(OpKind kind) { return kind > OpKind::kRead; }

// How far behind a kBoundedRead may be.
inline constexpr uint64_t kStalenessVersions = 10;
inline constexpr Duration kStalenessTime = std::chrono::milliseconds(1000);

struct ClientOp {
  OpKind kind = OpKind::kRead;
  std::string key;
  std::string value;               // what is written
  std::string if_match;            // an etag, for kReplace and kDelete; empty: whatever is there
  std::map<GroupId, Lsn> session;  // what the client has seen, for kSessionRead
  // Of kRead: as the step of a transaction. Of kDelete without an etag: with all of its logical
  // partition.
  bool otherwise = false;
};

// Codes: kOk, kNotFound, kAlreadyExists, kPreconditionFailed are answers. kUnknownOutcome: a write
// may have happened. kUnavailable, kNotLeader, kTimeout, kThrottled, kMoved, kSessionNotReached:
// nothing was done.
struct OpResult {
  Code code = Code::kUnavailable;
  std::string value;  // what was read
  std::string etag;   // of what was read or written
  GroupId group;
  Lsn lsn;  // what the replica that answered has applied; of a write, at least the write's own
};

// --- what the checkers ask -----------------------------------------------------------------------

struct ReplicaReport {
  GroupId group;
  uint64_t term = 0;
  bool leads = false;
  Lsn applied;
};

class SimNode {
 public:
  // REQUIRES: its workers were abandoned. Must not wait for anything.
  virtual ~SimNode() = default;

  // Recovers from the disks and begins. Not on a worker, may block.
  virtual Status Start() = 0;
  // The disk is ready: one batch of the log, or of applies. False if there was nothing to do.
  virtual bool CommitStep() = 0;
  virtual bool ApplyStep() = 0;

  // From the network, on a worker.
  virtual void OnFrame(NodeId from, std::string frame) = 0;
  virtual runtime::Task<std::string> OnCall(NodeId from, std::string request) = 0;
  virtual void OnRefused(NodeId node) {}  // the process of that node is dead

  // From a client, on any worker.
  virtual runtime::Task<OpResult> Execute(ClientOp op) = 0;
  // On one node before clients and faults begin, again and again until ok.
  virtual runtime::Task<Status> SetUp() { co_return Status::Ok(); }

  // From whoever looks after the cluster; on a worker. False: it did nothing.
  virtual bool TransferLeader(Random& random) { return false; }
  virtual bool ChangeMembers(Random& random) { return false; }
  virtual bool CutLog(Random& random) { return false; }
  virtual bool Reshape(Random& random) { return false; }  // splits or merges partitions

  // All replicas that should have caught up once nothing is wrong any more. Not on a worker.
  virtual std::vector<ReplicaReport> Report() = 0;
  // Of a replica's items.
  virtual uint64_t StateHash(GroupId group) = 0;
  // What this node still has to do before the cluster is as it should be; empty: nothing.
  virtual std::string Unfinished() { return {}; }
};

// --- what a node is given ------------------------------------------------------------------------

struct Environment {
  NodeId self;
  std::vector<NodeId> nodes;  // all of the cluster
  uint64_t incarnation = 1;   // how often it was started
  uint64_t seed = 0;          // of the run: what is the same on all nodes comes from it
  runtime::WorkerPool& workers;
  const Clock& clock;
  Random& random;
  replication::Transport& transport;
  Witness& witness;
  std::string folder;  // for real files; it and they outlive a crash
  // The two disks.
  std::function<std::unique_ptr<storage::Engine>(storage::EngineOptions)> open_log;
  std::function<std::unique_ptr<storage::Engine>(storage::EngineOptions)> open_state;
};

using MakeNode = std::function<std::unique_ptr<SimNode>(Environment)>;

}  // namespace orrery::sim
