#include <algorithm>
#include <utility>

#include "base/check.h"
#include "replication/raft_core_body.h"

namespace orrery::replication {

namespace {

// A heartbeat that leaves log and commit index alone, whatever they are.
Message Touch(const Message& message) {
  Message touch;
  touch.kind = MessageKind::kAppend;
  touch.from = message.from;
  touch.to = message.to;
  touch.node = message.node;
  touch.term = message.term;
  return touch;
}

}  // namespace

void RaftCore::Body::ReceiveAppend(Message message, Update& update) {
  if (leads() && message.term == r.current_term) {
    return;  // another leader of this term: a lie
  }
  if (installing) {
    message = Touch(message);
  }
  if (guards(kGuardTrimCompacted) && message.index < base.index && !installing) {
    // What the base covers is committed, so the leader has it too.
    size_t covered =
        std::min<size_t>(base.index.value() - message.index.value(), message.entries.size());
    message.entries.erase(message.entries.begin(), message.entries.begin() + covered);
    message.index = base.index;
    message.index_term = base.term;
  }
  size_t begin = 0;
  do {
    size_t end = message.entries.size();
    if (guards(kGuardChangeFirst)) {
      auto change =
          std::find_if(message.entries.begin() + std::min(begin + 1, end), message.entries.end(),
                       [](const LogEntry& entry) { return entry.kind == EntryKind::kChange; });
      end = change - message.entries.begin();
    }
    if (!StepAppend(message, begin, end, update)) {
      return;
    }
    begin = end;
  } while (begin < message.entries.size());
}

// The entries [begin, end) of a message. False: the rest of it is void.
bool RaftCore::Body::StepAppend(Message& message, size_t begin, size_t end, Update& update) {
  bool stale = message.term < r.current_term;
  uint64_t prev = message.index.value() + begin;
  uint64_t prev_term = begin == 0 ? message.index_term : message.entries[begin - 1].term;
  Given given{Lsn(prev + 1), std::span(message.entries).subspan(begin, end - begin)};
  uint64_t uncommitted = r.configuration_uncommitted_index;
  if (guards(kGuardChangeSettled) && uncommitted != 0 && !stale && prev >= uncommitted &&
      TermOf(prev) == prev_term && !given.entries.empty() &&
      given.entries[0].kind == EntryKind::kChange) {
    StepConfiguration(update, true);  // nobody begins a change before the last one is committed
  }
  if (!given.entries.empty()) {
    given.batch = raft_malloc(1);
  }
  LibraryEntries entries(given.entries, given.batch);
  std::string address = message.node.ToString();
  raft_message in{};
  in.type = RAFT_APPEND_ENTRIES;
  in.server_id = message.from.value();
  in.server_address = address.c_str();
  in.append_entries = {.version = 1,
                       .term = message.term,
                       .prev_log_index = prev,
                       .prev_log_term = prev_term,
                       .leader_commit = message.commit.value(),
                       .entries = entries.data(),
                       .n_entries = entries.size()};
  if (guards(kGuardCommitForward)) {
    in.append_entries.leader_commit = std::min(message.commit.value(), prev + given.entries.size());
  }
  raft_event event{.type = RAFT_RECEIVE};
  event.receive.message = &in;
  size_t answers = update.messages.size();
  if (Step(event, update, given) != 0) {
    status = Status(Code::kCorruption, "the log differs from its leader's in a committed entry");
    return false;
  }
  StepConfiguration(update, false);
  if (update.messages.size() == answers) {
    return true;
  }
  // The answer to all of the message is the last one.
  update.messages.erase(update.messages.begin(), update.messages.begin() + answers);
  if (stale) {
    update.messages[0].index = Lsn();  // the library leaves it undefined
  }
  return !stale && update.messages[0].rejected == Lsn();
}

void RaftCore::Body::ReceiveAppendResult(Message message, Update& update) {
  if (leads() && message.term == r.current_term && configuration.Find(message.from) != nullptr) {
    peers[message.from].heard = now_ms;
    uint64_t match = Match(message.from);
    if (guards(kGuardLateRejection) && message.rejected != Lsn() &&
        (message.rejected.value() <= match || message.index.value() < match)) {
      message.rejected = message.index = Lsn();  // only a sign of life
    }
  }
  StepMessage(message, update);
}

void RaftCore::Body::ReceiveVote(const Message& message, Update& update) {
  // Who counts votes knows who is a voter; the standby itself may not have heard yet that it is
  // one.
  raft_server* self = Self();
  if (!guards(kGuardStandbyVotes) || self == nullptr || self->role != RAFT_STANDBY) {
    return StepMessage(message, update);
  }
  self->role = RAFT_VOTER;
  StepMessage(message, update);
  self->role = RAFT_STANDBY;
  TakeConfiguration();
}

// The library would forget its log at once. Here it learns of the snapshot when that is installed.
void RaftCore::Body::ReceiveInstall(Message message, Update& update) {
  if (leads() && message.term == r.current_term) {
    return;
  }
  bool stale = message.term < r.current_term;
  Message touch = Touch(message);
  StepAppend(touch, 0, 0, update);
  if (stale || installing) {
    return;
  }
  uint64_t index = message.index.value();
  if (base.index.value() >= index || TermOf(index) == message.index_term) {
    update.messages.clear();
    return StepMessage(message, update);  // nothing is missing: it says so
  }
  if (index <= r.commit_index) {
    status = Status(Code::kCorruption, "the log differs from its leader's snapshot");
    return;
  }
  installing = SnapshotMeta{message.index, message.index_term, std::move(message.configuration),
                            message.configuration_index};
  installing_from = message.from;
  update.install = installing;
  update.install_manifest = std::move(message.manifest);
  update.install_from = message.from;
}

}  // namespace orrery::replication
