// What the consensus core speaks of: members, configurations, snapshots and messages.
//
// Neutral: nothing of a library shows here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "storage/log_entry.h"

namespace orrery::replication {

using storage::EntryKind;
using storage::LogEntry;

// Standbys receive the log and do not vote.
enum class Role : uint8_t { kStandby = 1, kVoter = 2 };

struct Member {
  ReplicaId id;
  NodeId node;
  Role role = Role::kVoter;
  bool operator==(const Member&) const = default;
};

// One member on a node at most, and at least one voter. Order does not matter.
struct Configuration {
  static constexpr size_t kMembersMax = 256;
  std::vector<Member> members;

  const Member* Find(ReplicaId id) const;
  size_t voters() const;
  // Whatever their order.
  bool SameMembers(const Configuration& other) const;
  bool Valid() const;
  bool operator==(const Configuration& other) const;

  std::string ToString() const;  // 7@1 8@2 9@3+ (+: a standby)
  std::string Encode() const;
  // kCorruption if it is malformed or not valid.
  static Result<Configuration> Decode(std::string_view bytes);
};

// What stands below the first entry of a log: the state up to `index` is somewhere else.
struct SnapshotMeta {
  Lsn index;
  uint64_t term = 0;
  Configuration configuration;  // as of index
  Lsn configuration_index;
};

enum class MessageKind : uint8_t {
  kAppend = 1,
  kAppendResult = 2,
  kVote = 3,
  kVoteResult = 4,
  kInstall = 5,
  kTimeoutNow = 6,
};

// One message of the protocol. Which fields count depends on its kind.
struct Message {
  MessageKind kind = MessageKind::kAppend;
  ReplicaId from;
  ReplicaId to;
  NodeId node;  // where `to` is, when sending; where `from` is, when received. Not in the bytes
  uint64_t term = 0;

  Lsn index;                // kAppend: before the first entry; kAppendResult: the receiver's last;
                            // kVote, kTimeoutNow: the sender's last; kInstall: of the snapshot
  uint64_t index_term = 0;  // of `index`
  Lsn commit;               // kAppend
  Lsn rejected;             // kAppendResult; 0: accepted
  bool pre_vote = false;    // kVote, kVoteResult
  bool disrupt = false;     // kVote: a transfer, the current leader does not count
  bool granted = false;     // kVoteResult

  // kAppend. The core says how many; who sends it attaches them.
  uint32_t entry_count = 0;
  std::vector<LogEntry> entries;

  // kInstall
  Configuration configuration;
  Lsn configuration_index;
  std::string manifest;  // attached by who sends it; bytes to the core

  void Encode(Encoder& encoder) const;
  // False if it is malformed or not valid.
  static bool Decode(Decoder& decoder, Message* message);
  // Whether its parts agree with each other.
  bool Valid() const;
};

}  // namespace orrery::replication
