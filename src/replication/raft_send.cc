// RaftReplicaSet: messages in and out.
#include "base/log.h"
#include "replication/raft_host.h"
#include "replication/raft_replica_set.h"

namespace orrery::replication {

namespace {

constexpr size_t kReadingMax = 32;

}  // namespace

void RaftReplicaSet::Receive(NodeId from_node, ReplicaId from, FrameKind kind,
                             std::string_view body) {
  if (stopped_ || core_ == nullptr) {
    return;
  }
  Decoder decoder(body);
  switch (kind) {
    case FrameKind::kRaft: {
      Message message;
      if (!Message::Decode(decoder, &message)) {
        log::Warning("a malformed message from another node", {{"node", from_node.ToString()}});
        return;
      }
      message.from = from;
      message.to = self_;
      message.node = from_node;
      if (message.kind == MessageKind::kAppend || message.kind == MessageKind::kInstall) {
        ask_at_ = host_.clock().Now() + options_.election_timeout;
        heard_from_ = {from, from_node, Role::kVoter};
      }
      if (message.kind != MessageKind::kAppendResult) {
        Wake();  // an answer that comes late is no reason to
      }
      if (message.kind == MessageKind::kVote && TellGone(from_node, from)) {
        return;
      }
      if (options_.lease_reads && !KeepsPromise(message)) {
        return;
      }
      OnStamps(message, decoder);
      Handle(core_->Receive(std::move(message), Now()));
      StepTransfer();
      return;
    }
    case FrameKind::kProbe: {
      uint64_t term = decoder.U64();
      uint64_t number = decoder.U64();
      std::string ack;
      Encoder encoder(ack);
      encoder.U64(term);
      encoder.U64(number);
      encoder.Bool(core_->term() == term);
      SendSmall(from, from_node, FrameKind::kProbeAck, ack);
      return;
    }
    case FrameKind::kProbeAck: return OnProbeAck(from, decoder);
    case FrameKind::kQuiet: return OnQuiet(from_node, from, decoder);
    case FrameKind::kHash: return OnHash(from, decoder);
    case FrameKind::kDamaged: return OnDamaged(from, decoder);
    case FrameKind::kAsk:
      if (core_->leads() && !TellGone(from_node, from)) {
        Wake();  // the next heartbeat tells it all
      }
      return;
    case FrameKind::kWant: return OnWant(from);
    case FrameKind::kWrong:
      if (core_->leader() == from && decoder.U64() == core_->term()) {
        gone_ = true;
        Fail(damaged_ ? "its state is damaged"
                      : "its state differs from that of the other replicas");
      }
      return;
    case FrameKind::kGone: {
      // Of one who was never a member it says nothing: it may still be added.
      Lsn newest =
          configurations_.empty() ? base_.configuration_index : configurations_.back().first;
      bool was_member = founder_ || !core_->configuration().members.empty();
      if (Lsn(decoder.U64()) > newest && was_member) {
        gone_ = true;
      }
      return;
    }
  }
}

// Who is no member any more hears it from the leader.
bool RaftReplicaSet::TellGone(NodeId node, ReplicaId replica) {
  if (!leads() || core_->changing() || core_->configuration().Find(replica) != nullptr) {
    return false;
  }
  std::string body;
  Encoder(body).U64(core_->configuration_index().value());
  SendSmall(replica, node, FrameKind::kGone, body);
  return true;
}

void RaftReplicaSet::SendSmall(ReplicaId to, NodeId node, FrameKind kind, const std::string& body) {
  host_.Send(worker_, node, group_, to, self_, kind, body);
}

void RaftReplicaSet::SendNow(Message message) {
  if (message.kind == MessageKind::kAppend) {
    told_commit_[message.to] = std::max(told_commit_[message.to], message.commit);
    if (message.entry_count > 0) {
      return SendAppend(std::move(message));
    }
  }
  if (message.kind == MessageKind::kInstall) {
    if (message.index != base_.index) {
      return;  // the log was cut meanwhile; the core asks again
    }
    message.configuration = base_.configuration;
    message.configuration_index = base_.configuration_index;
    HoldLog(kSnapshotHold);
  }
  SendMessage(message);
}

void RaftReplicaSet::SendMessage(const Message& message) {
  std::string bytes;
  Encoder encoder(bytes);
  message.Encode(encoder);
  AppendStamps(message, encoder);
  host_.Send(worker_, message.node, group_, message.to, self_, FrameKind::kRaft, bytes);
}

// Takes entries from the cache. False: the first one is not there.
bool RaftReplicaSet::AttachEntries(Message& message, size_t bytes_max) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < message.entry_count; ++i) {
    const LogEntry* entry = cache_.Find(Lsn(message.index.value() + 1 + i));
    if (entry == nullptr || (i > 0 && bytes + entry->bytes() > bytes_max)) {
      break;
    }
    bytes += entry->bytes();
    message.entries.push_back(*entry);
  }
  return !message.entries.empty();
}

namespace {

// What is left of an append after its attached entries were sent.
Message Rest(const Message& sent, uint32_t wanted) {
  Message rest = sent;
  rest.entries.clear();
  rest.index = Lsn(sent.index.value() + sent.entries.size());
  rest.index_term = sent.entries.back().term;
  rest.entry_count = wanted - static_cast<uint32_t>(sent.entries.size());
  return rest;
}

}  // namespace

// In several messages if its entries are large.
void RaftReplicaSet::SendAppend(Message message) {
  while (message.entry_count > 0) {
    auto reading = reading_.find(message.to);
    if (reading != reading_.end()) {
      if (reading->second.size() < kReadingMax) {
        reading->second.push_back(std::move(message));
      }
      return;
    }
    if (!AttachEntries(message, options_.message_bytes_max)) {
      reading_[message.to].push_back(message);
      worker_.Spawn(SendFromLog(shared_from_this(), std::move(message)));
      return;
    }
    uint32_t wanted = message.entry_count;
    message.entry_count = static_cast<uint32_t>(message.entries.size());
    SendMessage(message);
    message = Rest(message, wanted);
  }
}

// How long to rest after entries up to `sent` went to who is far behind. Nothing is waiting for a
// standby of a set that has all its voters.
Duration RaftReplicaSet::RestAfter(ReplicaId to, Lsn sent) {
  const Member* member = core_->configuration().Find(to);
  if (member == nullptr || member->role != Role::kStandby || !whole()) {
    return Duration::zero();
  }
  return catching_up_[to].Rest(core_->last().value() - sent.value(), host_.clock().Now());
}

// A follower is far behind: its entries come from the log, and what is for it meanwhile waits.
runtime::Task<> RaftReplicaSet::SendFromLog(std::shared_ptr<RaftReplicaSet> self, Message message) {
  ReplicaId to = message.to;
  uint64_t term = message.term;
  while (true) {
    auto queue = reading_.find(to);
    if (stopped_ || !core_->leads() || core_->term() != term || queue == reading_.end()) {
      break;
    }
    if (queue->second.empty()) {
      break;
    }
    message = queue->second.front();
    const bool far_behind = !AttachEntries(message, options_.message_bytes_max);
    if (far_behind) {
      Lsn first(message.index.value() + 1);
      Lsn last(message.index.value() + message.entry_count);
      auto read = [this, first, last] {
        return store_.ReadLog(group_, first, last, options_.message_bytes_max);
      };
      Result<std::vector<LogEntry>> entries = co_await runtime::OnBlocking(host_.workers(), read);
      if (!entries) {
        break;  // cut meanwhile: the next heartbeat is refused, and the core sees what to do
      }
      message.entries = std::move(*entries);
    }
    queue = reading_.find(to);
    if (stopped_ || core_->term() != term || queue == reading_.end()) {
      break;
    }
    uint32_t wanted = message.entry_count;
    message.entry_count = static_cast<uint32_t>(message.entries.size());
    SendMessage(message);
    if (message.entry_count < wanted) {
      queue->second.front() = Rest(message, wanted);
    } else {
      queue->second.pop_front();
    }
    if (far_behind) {
      const Lsn sent(message.index.value() + message.entry_count);
      if (const Duration rest = RestAfter(to, sent); rest > Duration::zero()) {
        HoldLog(kSnapshotHold);  // it comes closer: a cut would have it begin anew
        co_await runtime::Sleep(rest);
      }
    }
  }
  if (core_->term() == term) {
    reading_.erase(to);
  }
}

// After a commit with nothing to send, followers would hear of it only with the next heartbeat.
void RaftReplicaSet::SendHint() {
  hint_at_ = Instant();
  if (!core_->leads()) {
    return;
  }
  for (const Member& member : core_->configuration().members) {
    if (member.id == self_ || told_commit_[member.id] >= core_->commit()) {
      continue;
    }
    Lsn match = core_->Match(member.id);
    uint64_t match_term = core_->TermOf(match);
    if (match < core_->commit() || match_term == 0) {
      continue;
    }
    SendAll({Message{.kind = MessageKind::kAppend,
                     .from = self_,
                     .to = member.id,
                     .node = member.node,
                     .term = core_->term(),
                     .index = match,
                     .index_term = match_term,
                     .commit = core_->commit()}});
  }
}

}  // namespace orrery::replication
