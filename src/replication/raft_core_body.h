// RaftCore::Body: what stands between RaftCore and libraft. Only raft_core*.cc include it.
//
// raft_core_body.cc translates and steps, raft_core_receive.cc has what happens to messages before
// the library sees them, raft_core.cc the operations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "replication/raft_core.h"

extern "C" {
#include <raft.h>
}

namespace orrery::replication {

raft_configuration ToLibrary(const Configuration& configuration);
raft_snapshot_metadata ToLibrary(const SnapshotMeta& meta);
NodeId NodeOf(const char* address);

// Entries in the library's form. What it keeps of them it copies, so this lives for one step.
class LibraryEntries {
 public:
  // A batch for entries of which the library frees none.
  static void* NoBatch();

  // REQUIRES: the payload of each kChange is a configuration.
  LibraryEntries(std::span<const LogEntry> entries, void* batch);
  ~LibraryEntries();
  LibraryEntries(const LibraryEntries&) = delete;

  raft_entry* data() { return list_.data(); }
  unsigned size() const { return static_cast<unsigned>(list_.size()); }

 private:
  std::vector<raft_entry> list_;
  std::vector<void*> buffers_;
};

// The entries that a step was given, to be handed on by the update. No library sees their payload.
struct Given {
  Lsn first;
  std::span<LogEntry> entries;
  void* batch = nullptr;  // freed when the library hands the entries back, else the library did
};

struct RaftCore::Body {
  explicit Body(const RaftOptions& given);
  ~Body() { raft_close(&r, nullptr); }

  bool guards(Guard guard) const { return (options.guards & guard) != 0; }
  bool leads() const { return r.state == RAFT_LEADER; }
  ReplicaId leader() const;
  bool settled() const;
  uint64_t TermOf(uint64_t index) const;
  uint64_t Match(ReplicaId id) const;
  uint64_t last() const { return raft_last_index(const_cast<raft*>(&r)); }
  raft_server* Self();
  bool LoneVoter();

  // Around each operation.
  void Begin(Instant now);
  void Finish(Update& update);

  // One step of the library; what it wants done is added to `update`.
  int Step(raft_event& event, Update& update, const Given& given = {});
  void TakeEntries(const raft_update& out, Update& update, const Given& given);
  void TakeConfiguration();
  void TakeMessage(const raft_message& out, Update& update);
  void MendFirstSnapshot(Message& message);
  // False: nothing to send.
  bool FromLibrary(const raft_message& out, Message& message);
  void StepMessage(const Message& message, Update& update);
  void StepConfiguration(Update& update, bool committed);

  void ReceiveAppend(Message message, Update& update);
  bool StepAppend(Message& message, size_t begin, size_t end, Update& update);
  void ReceiveAppendResult(Message message, Update& update);
  void ReceiveVote(const Message& message, Update& update);
  void ReceiveInstall(Message message, Update& update);
  int Submit(std::vector<LogEntry> entries, Update& update);
  Status CheckFewerVoters(const Configuration& next) const;
  Result<Configuration> NextConfiguration(const Configuration& wanted) const;
  bool Silent(ReplicaId id) const;
  void ForgetLeader();

  const RaftOptions options;
  raft r{};
  Status status;
  SnapshotMeta base;
  Configuration configuration;  // r.configuration in our form
  std::optional<SnapshotMeta> installing;
  ReplicaId installing_from;

  // Of the operation.
  uint64_t now_ms = 0;
  bool submitting = false;
  unsigned short state_before = RAFT_FOLLOWER;
  ReplicaId leader_before;
  uint64_t commit_before = 0;

  // Of the leader, in milliseconds.
  struct Peer {
    uint64_t sent = 0;   // an AppendEntries
    uint64_t heard = 0;  // an answer
  };
  std::map<ReplicaId, Peer> peers;
  uint64_t leads_since = 0;
};

}  // namespace orrery::replication
