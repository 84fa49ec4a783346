// TestReplica: one core whose disk is instant and whose peers are played by the test.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "replication/raft_core.h"

namespace orrery::replication {

inline LogEntry Command(uint64_t term, std::string payload = "x") {
  return {.term = term, .payload = std::make_shared<const std::string>(std::move(payload))};
}

inline LogEntry ChangeEntry(uint64_t term, const Configuration& configuration) {
  return {.term = term,
          .kind = EntryKind::kChange,
          .payload = std::make_shared<const std::string>(configuration.Encode())};
}

// Replicas 1, 2, ... on nodes of the same number.
inline Configuration Group(size_t voters, size_t standbys = 0) {
  Configuration out;
  for (size_t i = 1; i <= voters + standbys; ++i) {
    out.members.push_back({ReplicaId(i), NodeId(static_cast<uint32_t>(i)),
                           i <= voters ? Role::kVoter : Role::kStandby});
  }
  return out;
}

class TestReplica {
 public:
  explicit TestReplica(uint64_t id, uint32_t guards = kGuardsAll, uint32_t inflight = 512)
      : id_(id),
        core({.id = ReplicaId(id),
              .node = NodeId(static_cast<uint32_t>(id)),
              .inflight_entries = inflight,
              .guards = guards}) {}

  // With a base at index 1 and term 1.
  void Start(const Configuration& configuration, uint64_t term = 1,
             std::vector<LogEntry> entries = {}) {
    SnapshotMeta base{Lsn(1), 1, configuration, Lsn(1)};
    Take(core.Start({.term = term, .base = base, .entries = std::move(entries)}, now));
  }

  void Take(Update update) {
    hard_state |= update.hard_state;
    for (Message& message : update.messages) {
      sent.push_back(std::move(message));
    }
    entries.insert(entries.end(), update.entries.begin(), update.entries.end());
    if (update.install) {
      install = update.install;
    }
    if (!update.entries.empty() && persists) {
      Take(core.Persisted(Lsn(update.first_entry.value() + update.entries.size() - 1), now));
    }
  }

  Message From(uint64_t peer, MessageKind kind) const {
    Message message;
    message.kind = kind;
    message.from = ReplicaId(peer);
    message.to = ReplicaId(id_);
    message.node = NodeId(static_cast<uint32_t>(peer));
    message.term = core.term();
    return message;
  }
  void Receive(Message message) {
    message.entry_count = static_cast<uint32_t>(message.entries.size());
    Take(core.Receive(std::move(message), now));
  }
  void Append(uint64_t peer, uint64_t term, uint64_t index, uint64_t index_term, uint64_t commit,
              std::vector<LogEntry> with) {
    Message message = From(peer, MessageKind::kAppend);
    message.term = term;
    message.index = Lsn(index);
    message.index_term = index_term;
    message.commit = Lsn(commit);
    message.entries = std::move(with);
    Receive(std::move(message));
  }
  void Ack(uint64_t peer, uint64_t index, uint64_t rejected = 0) {
    Message message = From(peer, MessageKind::kAppendResult);
    message.index = Lsn(index);
    message.rejected = Lsn(rejected);
    Receive(std::move(message));
  }
  void AckAll() {
    for (const Member& member : Configuration(core.configuration()).members) {
      if (member.id.value() != id_) {
        Ack(member.id.value(), core.last().value());
      }
    }
  }
  // Waits for its deadline.
  void Tick() {
    now = std::max(now, core.deadline());
    Take(core.Tick(now));
  }
  // Makes it leader by the votes of all; its barrier is not acknowledged.
  void Elect() {
    for (int i = 0; i < 10 && !core.leads(); ++i) {
      sent.clear();
      Tick();
      for (bool pre_vote : {true, false}) {
        for (const Message& request : std::vector<Message>(sent)) {
          Message vote = From(request.to.value(), MessageKind::kVoteResult);
          vote.term = request.term;
          vote.pre_vote = pre_vote;
          vote.granted = true;
          if (request.kind == MessageKind::kVote && request.pre_vote == pre_vote) {
            Receive(std::move(vote));
          }
        }
      }
    }
    ORRERY_CHECK(core.leads());
  }
  // Elected and settled, and everybody has everything.
  void Lead() {
    Elect();
    AckAll();
    AckAll();
    sent.clear();
  }
  void Submit(size_t count = 1) {
    Result<Update> update = core.Submit(std::vector<LogEntry>(count, Command(0)), now);
    ORRERY_CHECK(update.has_value());
    Take(std::move(*update));
  }
  // As ConfigurationApplied follows a commit.
  Status Change(const Configuration& configuration) {
    Result<Update> update = core.Change(configuration, now);
    if (!update) {
      return update.error();
    }
    Take(std::move(*update));
    return Status::Ok();
  }

  const Message* Last(MessageKind kind) const {
    const Message* found = nullptr;
    for (const Message& message : sent) {
      found = message.kind == kind ? &message : found;
    }
    return found;
  }

 private:
  const uint64_t id_;

 public:
  RaftCore core;
  Instant now{std::chrono::seconds(1)};
  bool persists = true;
  bool hard_state = false;
  std::vector<Message> sent;
  std::vector<LogEntry> entries;
  std::optional<SnapshotMeta> install;
};

}  // namespace orrery::replication
