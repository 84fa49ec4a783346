// RaftCore: the consensus algorithm of one replica as a step function: an event in, an update out.
// No I/O, no clock, no threads, no log: the caller keeps the log and says what time it is.
//
// Behind it stands libraft 0.22.1, which only raft_core.cc knows, with a guard at the message
// boundary for each of its known defects (docs/decisions/0011-consensus-core.md). The caller must
// do with an Update, in this order: make term and vote durable before any message of this or a
// later update leaves; write the entries (those at and above `first_entry` that the log has go
// first) and call Persisted; install the snapshot and call PersistedSnapshot or InstallFailed; send
// the messages; apply up to commit(), and call ConfigurationApplied for each kChange entry applied.
//
// While a snapshot is being installed nothing of the log changes here: entries that arrive are
// dropped and there is no candidacy, but Persisted must still be called for what was written
// before.
//
// Not thread-safe: it lives on its group's worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "replication/raft_types.h"

namespace orrery::replication {

enum class RaftState : uint8_t { kFollower, kCandidate, kLeader };

// The guards, each for one defect; tests and planted mutants switch one off.
enum Guard : uint32_t {
  kGuardChangeFirst = 1 << 0,     // D1
  kGuardTrimCompacted = 1 << 1,   // D2
  kGuardRefusalTerm = 1 << 2,     // D3
  kGuardLateRejection = 1 << 3,   // D4
  kGuardTransferReady = 1 << 4,   // D5
  kGuardSingleVoter = 1 << 5,     // D6
  kGuardOneCatchUp = 1 << 6,      // M1
  kGuardRemoveCaughtUp = 1 << 7,  // M3
  kGuardBarrier = 1 << 8,         // M5: reads and changes wait for an entry of the own term
  kGuardStandbyVotes = 1 << 9,    // M6
  kGuardNewTerm = 1 << 10,        // D7
  kGuardCommitForward = 1 << 11,  // D8
  kGuardChangeSettled = 1 << 12,  // D9
  kGuardFirstSnapshot = 1 << 13,  // D10
  kGuardsAll = (1 << 14) - 1,
};

struct RaftOptions {
  ReplicaId id;
  NodeId node;
  Duration election_timeout = std::chrono::milliseconds(1000);  // randomized to 1-2 of it
  Duration heartbeat = std::chrono::milliseconds(200);
  Duration install_timeout = std::chrono::seconds(30);
  uint32_t inflight_entries = 512;  // sent and not acknowledged, per follower
  uint32_t seed = 1;
  uint32_t guards = kGuardsAll;
};

// What a replica has when it starts. Nothing at all: it waits for a leader to send a snapshot.
struct RaftStart {
  uint64_t term = 0;
  ReplicaId vote;
  std::optional<SnapshotMeta> base;
  // The entries above the base; payloads only of kChange entries are read.
  std::vector<LogEntry> entries;
};

struct Update {
  bool hard_state = false;  // term() or vote() changed
  Lsn first_entry;  // of `entries`; at or below the last one of the log: the log is cut there first
  std::vector<LogEntry> entries;
  std::optional<SnapshotMeta> install;  // fetch the snapshot that `install_manifest` names
  std::string install_manifest;
  ReplicaId install_from;
  std::vector<Message> messages;
  bool state_changed = false;  // state() or leader()
  bool commit_changed = false;
};

class RaftCore {
 public:
  explicit RaftCore(const RaftOptions& options);
  ~RaftCore();
  RaftCore(const RaftCore&) = delete;

  // `now` never goes back.
  Update Start(RaftStart start, Instant now);
  Update Receive(Message message, Instant now);
  // Entries up to `last` are durable. REQUIRES: none of them was cut off meanwhile.
  Update Persisted(Lsn last, Instant now);
  // The snapshot of Update::install is there, and its base took the place of the whole log.
  // REQUIRES: one is being installed.
  Update PersistedSnapshot(const SnapshotMeta& meta, Instant now);
  // The snapshot could not be had and the log is as it was; a later message starts anew.
  void InstallFailed();
  // A kChange entry was applied. A leader that it removes or demotes steps down only now.
  Update ConfigurationApplied(Lsn index, const Configuration& configuration, Instant now);
  // The log was cut: `meta` is its new base. Entries above it stay. REQUIRES: it is committed.
  Update LogCut(const SnapshotMeta& meta, Instant now);
  Update Tick(Instant now);  // nothing before deadline()
  Instant deadline() const;

  // kNotLeader; kUnavailable while a transfer runs. Term is filled in. Not for kChange entries.
  Result<Update> Submit(std::vector<LogEntry> entries, Instant now);
  // One member added, removed, or with another role. kNotLeader, kUnavailable (try later), or
  // kInvalidArgument (more than one difference; fewer than 3 voters where there were 3).
  Result<Update> Change(const Configuration& configuration, Instant now);
  // Begins (or goes on) to bring a standby up to date; ask again until it is. kNotLeader,
  // kInvalidArgument (it is no standby), kUnavailable (another one is being brought up to date).
  struct CatchUpStep {
    Update update;
    bool caught_up = false;
  };
  Result<CatchUpStep> CatchUp(ReplicaId id, Instant now);
  // Gives the leadership to `id`. kUnavailable until it has the whole log (hold proposals and ask
  // again); then a message goes, and the leader refuses to submit until it is deposed or gives up.
  Result<Update> Transfer(ReplicaId id, Instant now);
  // The process of the current leader is known to be dead, or there was none yet: elect soon, the
  // voters one shortly after the other (see deadline()). May be repeated while nobody leads.
  Update LeaderDied(Instant now);

  // Not ok: its log contradicts what is committed. It takes no more events; make it anew.
  const Status& status() const;
  RaftState state() const;
  bool leads() const { return state() == RaftState::kLeader; }
  // Leads, and an entry of its own term is committed: only then may it read or change members.
  bool settled() const;
  uint64_t term() const;
  ReplicaId vote() const;
  ReplicaId leader() const;  // 0: none known
  Lsn commit() const;
  Lsn last() const;
  Lsn stored() const;
  uint64_t TermOf(Lsn index) const;            // 0: not known
  Lsn Match(ReplicaId id) const;               // of a follower; REQUIRES: leads()
  const Configuration& configuration() const;  // the newest, perhaps not committed
  Lsn configuration_index() const;             // of the newest
  bool changing() const;                       // the newest is not committed

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::replication
