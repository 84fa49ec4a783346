#include "replication/raft_test_cluster.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"

namespace orrery::replication {

namespace {

constexpr Lsn kFirst{1};

std::string Content(const LogEntry& entry) {
  return std::to_string(static_cast<int>(entry.kind)) +
         (entry.payload == nullptr ? "" : *entry.payload);
}

}  // namespace

TestCluster::TestCluster(const TestClusterOptions& options)
    : options_(options), random_(options.seed * 7919 + 17), chaos_(options.chaos) {
  SnapshotMeta base{.index = kFirst, .term = 1, .configuration_index = kFirst};
  for (size_t i = 0; i < options.founders; ++i) {
    base.configuration.members.push_back(
        {ReplicaId(next_id_ + i), NodeId(static_cast<uint32_t>(i + 1)), Role::kVoter});
  }
  newest_ = base.configuration;
  newest_index_ = kFirst;
  for (const Member& member : base.configuration.members) {
    Replica& replica = replicas_[member.id];
    replica.id = member.id;
    replica.node = member.node;
    replica.disk.hard.term = 1;
    replica.disk.base = base;
    replica.disk.applied = kFirst;
    ++next_id_;
  }
  applied_[1] = {1, ""};
  for (auto& [id, replica] : replicas_) {
    Boot(replica);
  }
}

void TestCluster::Fault(std::string what) {
  if (fault_.empty()) {
    fault_ = "seed " + std::to_string(options_.seed) + " at " + std::to_string(now_) + ": " + what;
  }
}

TestCluster::Replica* TestCluster::Find(ReplicaId id) {
  auto found = replicas_.find(id);
  return found == replicas_.end() ? nullptr : &found->second;
}

RaftCore* TestCluster::core(ReplicaId id) {
  Replica* replica = Find(id);
  return replica == nullptr ? nullptr : replica->core.get();
}

RaftCore* TestCluster::leader() {
  RaftCore* leader = nullptr;
  for (auto& [id, replica] : replicas_) {
    if (replica.core != nullptr && replica.core->leads() &&
        (leader == nullptr || leader->term() < replica.core->term())) {
      leader = replica.core.get();
    }
  }
  return leader;
}

ReplicaId TestCluster::Add() {
  std::set<NodeId> taken;
  for (auto& [id, replica] : replicas_) {
    taken.insert(replica.node);
  }
  for (uint32_t node = 1; node <= kNodes; ++node) {
    if (!taken.contains(NodeId(node))) {
      ReplicaId id(next_id_++);
      Replica& replica = replicas_[id];
      replica.id = id;
      replica.node = NodeId(node);
      Boot(replica);
      return id;
    }
  }
  return ReplicaId();
}

// Disks -------------------------------------------------------------------------------------------

void TestCluster::Disk::Do(const Write& write) {
  if (write.hard) {
    hard = *write.hard;
  }
  if (!write.entries.empty()) {
    size_t keep = write.first.value() - base->index.value() - 1;
    ORRERY_CHECK(keep <= entries.size());
    entries.resize(keep);
    entries.insert(entries.end(), write.entries.begin(), write.entries.end());
  }
  if (write.base) {
    size_t cut = write.base->index.value() - base->index.value();
    ORRERY_CHECK(cut <= entries.size());
    entries.erase(entries.begin(), entries.begin() + cut);
    base = write.base;
  }
}

void TestCluster::Boot(Replica& replica) {
  RaftOptions options{.id = replica.id,
                      .node = replica.node,
                      .inflight_entries = options_.inflight_entries,
                      .seed = static_cast<uint32_t>(random_.Next()),
                      .guards = options_.guards};
  replica.log = replica.disk;
  replica.applied = replica.disk.applied;
  replica.last = Lsn(replica.disk.base ? replica.disk.base->index.value() : 0);
  replica.last = Lsn(replica.last.value() + replica.disk.entries.size());
  replica.commit = Lsn();
  replica.core = std::make_unique<RaftCore>(options);
  RaftStart start{replica.disk.hard.term, ReplicaId(replica.disk.hard.vote), replica.disk.base,
                  replica.disk.entries};
  Handle(replica.id, replica.core->Start(std::move(start), now()));
}

void TestCluster::Crash(ReplicaId id) {
  Replica& replica = *Find(id);
  // Some of what was not synced may be there all the same, in order.
  for (uint64_t kept = Below(replica.writes.size() + 1); kept > 0; --kept) {
    replica.disk.Do(replica.writes.front());
    replica.writes.pop_front();
  }
  replica.disk.applied = std::min(replica.applied, replica.disk.base ? replica.applied : Lsn());
  replica.writes.clear();
  replica.gated.clear();
  replica.install.reset();
  replica.core.reset();
  ++crashes_;
}

void TestCluster::Restart(ReplicaId id) { Boot(*Find(id)); }

void TestCluster::FinishWrite(Replica& replica) {
  Write write = std::move(replica.writes.front());
  replica.writes.pop_front();
  replica.disk.Do(write);
  bool gate =
      std::ranges::any_of(replica.writes, [](const Write& w) { return w.hard.has_value(); });
  if (!gate) {
    for (Message& message : std::exchange(replica.gated, {})) {
      Send(replica, std::move(message));
    }
  }
  if (write.last > replica.core->stored()) {
    Handle(replica.id, replica.core->Persisted(write.last, now()));
  }
}

void TestCluster::FinishInstall(Replica& replica) {
  if (!replica.writes.empty()) {
    replica.install_due = now_ + 5;  // first what is under way
    return;
  }
  SnapshotMeta meta = *std::exchange(replica.install, std::nullopt);
  if (chaos_ && Chance(20)) {
    replica.core->InstallFailed();
    return;
  }
  replica.disk.base = meta;
  replica.disk.entries.clear();
  replica.disk.applied = replica.applied = replica.last = meta.index;
  replica.log = replica.disk;
  ++installs_;
  Handle(replica.id, replica.core->PersistedSnapshot(meta, now()));
}

// Updates -----------------------------------------------------------------------------------------

void TestCluster::Handle(ReplicaId id, Update update) {
  Replica& replica = *Find(id);
  RaftCore& core = *replica.core;
  if (!core.status().ok()) {
    return Fault(id.ToString() + ": " + core.status().ToString());
  }
  if (update.hard_state || !update.entries.empty()) {
    Write write{.due = now_ + 1 + Below(chaos_ ? 25 : 3)};
    if (!replica.writes.empty()) {
      write.due = std::max(write.due, replica.writes.back().due);
    }
    if (update.hard_state) {
      write.hard = storage::HardState{core.term(), core.vote().value()};
    }
    if (!update.entries.empty()) {
      Lsn kept(update.first_entry.value() - 1);
      for (Write& earlier : replica.writes) {
        earlier.last = std::min(earlier.last, kept);
      }
      write.first = update.first_entry;
      write.entries = update.entries;
      write.last = replica.last = Lsn(kept.value() + update.entries.size());
      if (kept < replica.applied) {
        Fault(id.ToString() + " cuts what is applied");
      }
    }
    replica.log.Do(write);
    replica.writes.push_back(std::move(write));
  }
  CheckCore(replica);
  bool gate =
      std::ranges::any_of(replica.writes, [](const Write& w) { return w.hard.has_value(); });
  for (Message& message : update.messages) {
    if (gate) {
      replica.gated.push_back(std::move(message));
    } else {
      Send(replica, std::move(message));
    }
  }
  if (update.install) {
    replica.install = update.install;
    replica.install_due = now_ + 5 + Below(chaos_ ? 400 : 20);
  }
  if (update.state_changed && core.leads()) {
    CheckLeader(replica);
  }
  Apply(replica);
}

void TestCluster::CheckCore(Replica& replica) {
  RaftCore& core = *replica.core;
  if (core.last() != replica.last) {
    Fault(replica.id.ToString() + " has another log than its core");
  }
  if (core.commit() < std::exchange(replica.commit, core.commit())) {
    Fault(replica.id.ToString() + " takes back its commit index");
  }
  if (!replica.log.base) {
    return;
  }
  uint64_t index = replica.last.value();
  while (index > replica.log.base->index.value() &&
         replica.log.At(index).kind != EntryKind::kChange) {
    --index;
  }
  bool based = index == replica.log.base->index.value();
  Lsn expected = based ? replica.log.base->configuration_index : Lsn(index);
  if (core.configuration_index() != expected ||
      core.configuration() != (based ? replica.log.base->configuration
                                     : *Configuration::Decode(*replica.log.At(index).payload))) {
    Fault(replica.id.ToString() + " has another configuration than its log");
  }
}

void TestCluster::CheckLeader(Replica& replica) {
  auto [leader, fresh] = leaders_.emplace(replica.core->term(), replica.id);
  if (!fresh && leader->second != replica.id) {
    Fault("two leaders in term " + std::to_string(replica.core->term()));
  }
  for (const auto& [index, entry] : applied_) {
    if (index >= replica.log.base->index.value() &&
        replica.core->TermOf(Lsn(index)) != entry.first) {
      return Fault(replica.id.ToString() + " leads without entry " + std::to_string(index));
    }
  }
}

void TestCluster::Apply(Replica& replica) {
  RaftCore& core = *replica.core;
  while (!replica.install && replica.applied < std::min(core.commit(), core.stored())) {
    Lsn index(replica.applied.value() + 1);
    const LogEntry& entry = replica.log.At(index.value());
    std::pair<uint64_t, std::string> applied{entry.term, Content(entry)};
    auto [known, fresh] = applied_.emplace(index.value(), applied);
    if (!fresh && known->second != applied) {
      return Fault(replica.id.ToString() + " applies another entry " + index.ToString());
    }
    replica.applied = index;
    if (entry.kind == EntryKind::kChange) {
      Configuration configuration = *Configuration::Decode(*entry.payload);
      if (index > newest_index_) {
        newest_ = configuration;
        newest_index_ = index;
        ++changes_;
      }
      Handle(replica.id, core.ConfigurationApplied(index, configuration, now()));
      return;
    }
  }
}

// The network -------------------------------------------------------------------------------------

void TestCluster::Send(Replica& replica, Message message) {
  if (message.kind == MessageKind::kAppend && message.entry_count > 0) {
    size_t offset = message.index.value() - replica.log.base->index.value();
    if (message.index < replica.log.base->index ||
        offset + message.entry_count > replica.log.entries.size()) {
      return;  // gone since
    }
    auto first = replica.log.entries.begin() + offset;
    message.entries.assign(first, first + message.entry_count);
  }
  std::string bytes;
  Encoder encoder(bytes);
  message.Encode(encoder);
  NodeId to = message.node;
  Decoder decoder(bytes);
  if (!Message::Decode(decoder, &message) || !decoder.done()) {
    return Fault("a message does not survive its encoding");
  }
  message.node = replica.node;
  if (cut_off_.contains(to) || cut_off_.contains(replica.node) || (chaos_ && Chance(4))) {
    return;
  }
  bool late = chaos_ && options_.reorder;
  Packet packet{now_ + 1 + Below(late ? 40 : 3), std::move(message)};
  if (late && Chance(10)) {
    Packet again = packet;
    again.due += Below(Chance(20) ? 3000 : 100);
    packets_.push_back(std::move(again));
  }
  packets_.push_back(std::move(packet));
}

void TestCluster::Deliver(Packet packet) {
  Replica* replica = Find(packet.message.to);
  if (replica != nullptr && replica->core != nullptr && !cut_off_.contains(replica->node)) {
    ReplicaId id = replica->id;
    Handle(id, replica->core->Receive(std::move(packet.message), now()));
  }
}

// Time --------------------------------------------------------------------------------------------

uint64_t TestCluster::NextEvent() const {
  uint64_t next = chaos_ ? next_chaos_ : UINT64_MAX;
  for (const Packet& packet : packets_) {
    next = std::min(next, packet.due);
  }
  for (const auto& [id, replica] : replicas_) {
    if (replica.core == nullptr) {
      continue;
    }
    next = std::min<uint64_t>(next, replica.core->deadline().time_since_epoch().count() / 1000);
    if (!replica.writes.empty()) {
      next = std::min(next, replica.writes.front().due);
    }
    if (replica.install) {
      next = std::min(next, replica.install_due);
    }
  }
  return next;
}

void TestCluster::Run(uint64_t ms, const std::function<bool()>& done) {
  uint64_t end = now_ + ms;
  while (fault_.empty() && !done()) {
    uint64_t next = NextEvent();
    if (next > end) {
      now_ = end;
      return;
    }
    now_ = std::max(now_, next);
    // The oldest first; of those that are due at once, in the order in which they were sent.
    auto packet = std::ranges::min_element(packets_, {}, &Packet::due);
    if (packet != packets_.end() && packet->due <= now_) {
      Packet taken = std::move(*packet);
      packets_.erase(packet);
      Deliver(std::move(taken));
      continue;
    }
    for (auto& [id, replica] : replicas_) {
      if (replica.core != nullptr && !replica.writes.empty() &&
          replica.writes.front().due <= now_) {
        FinishWrite(replica);
      }
      if (replica.core != nullptr && replica.install && replica.install_due <= now_) {
        FinishInstall(replica);
      }
      if (replica.core != nullptr && replica.core->deadline() <= now()) {
        Handle(id, replica.core->Tick(now()));
      }
    }
    if (chaos_ && next_chaos_ <= now_) {
      Chaos();
    }
  }
}

void TestCluster::Heal() {
  chaos_ = false;
  cut_off_.clear();
  for (auto& [id, replica] : replicas_) {
    if (replica.core == nullptr) {
      Boot(replica);
    }
  }
}

bool TestCluster::Settled() const {
  const RaftCore* leader = const_cast<TestCluster*>(this)->leader();
  return leader != nullptr && leader->settled() && !leader->changing() &&
         std::ranges::all_of(leader->configuration().members, [&](const Member& member) {
           auto found = replicas_.find(member.id);
           return found != replicas_.end() && found->second.applied == leader->last();
         });
}

// Chaos -------------------------------------------------------------------------------------------

bool TestCluster::Submit(std::string payload) {
  RaftCore* core = leader();
  if (core == nullptr) {
    return false;
  }
  std::vector<LogEntry> entries(1);
  entries[0].payload = std::make_shared<const std::string>(std::move(payload));
  ReplicaId id = core->leader();
  Result<Update> update = core->Submit(std::move(entries), now());
  if (update) {
    Handle(id, std::move(*update));
  }
  return update.has_value();
}

void TestCluster::Cut(Replica& replica) {
  uint64_t to = std::min({replica.applied, replica.core->stored(), replica.core->commit()}).value();
  uint64_t keep = Below(6);
  if (replica.install || !replica.log.base || to < replica.log.base->index.value() + 1 + keep) {
    return;
  }
  SnapshotMeta meta = *replica.log.base;
  for (; meta.index.value() < to - keep; meta.index = Lsn(meta.index.value() + 1)) {
    const LogEntry& entry = replica.log.At(meta.index.value() + 1);
    meta.term = entry.term;
    if (entry.kind == EntryKind::kChange) {
      meta.configuration = *Configuration::Decode(*entry.payload);
      meta.configuration_index = Lsn(meta.index.value() + 1);
    }
  }
  Write write{.due = now_ + 1, .base = meta};
  if (!replica.writes.empty()) {
    write.due = std::max(write.due, replica.writes.back().due);
  }
  replica.log.Do(write);
  replica.writes.push_back(std::move(write));
  Handle(replica.id, replica.core->LogCut(meta, now()));
}

void TestCluster::CutAll() {
  for (auto& [id, replica] : replicas_) {
    if (replica.core != nullptr) {
      Cut(replica);
    }
  }
}

// The leader begins to add, promote, demote or remove somebody, or hands over.
void TestCluster::ChangeSomething() {
  RaftCore* core = leader();
  if (core == nullptr || !core->settled() || core->changing()) {
    return;
  }
  ReplicaId self = core->leader();
  Configuration next = core->configuration();
  Member& chosen = next.members[Below(next.members.size())];
  if (Chance(30)) {
    if (Result<Update> update = core->Transfer(chosen.id, now())) {
      Handle(self, std::move(*update));
    }
    return;
  }
  if (chosen.role == Role::kStandby && Chance(80)) {
    Result<RaftCore::CatchUpStep> step = core->CatchUp(chosen.id, now());
    if (!step || !step->caught_up) {
      if (step) {
        Handle(self, std::move(step->update));
      }
      return;
    }
    chosen.role = Role::kVoter;
  } else if (next.members.size() < 5 && Chance(60)) {
    ReplicaId added = Add();
    if (added == ReplicaId()) {
      return;
    }
    next.members.push_back({added, Find(added)->node, Role::kStandby});
  } else if (Chance(80)) {
    std::erase(next.members, Member(chosen));
  } else {
    chosen.role = Role::kStandby;
  }
  if (Result<Update> update = core->Change(next, now())) {
    Handle(self, std::move(*update));
  }
}

void TestCluster::Chaos() {
  next_chaos_ = now_ + 1 + Below(40);
  uint64_t what = Below(100);
  auto picked = std::next(replicas_.begin(), Below(replicas_.size()));
  Replica& replica = picked->second;
  if (what < 60) {
    Submit("value " + std::to_string(next_payload_++));
  } else if (what < 63) {
    if (replica.core != nullptr) {
      Crash(replica.id);
    }
  } else if (what < 80) {
    if (replica.core == nullptr) {
      Boot(replica);
    }
  } else if (what < 84) {
    if (replica.core != nullptr) {
      Cut(replica);
    }
  } else if (what < 86) {
    cut_off_.insert(replica.node);
  } else if (what < 90) {
    cut_off_.clear();
  } else if (what < 91) {
    if (replica.core != nullptr) {
      Handle(replica.id, replica.core->LeaderDied(now()));
    }
  } else if (what < 94) {
    // Nobody needs it any more, and nobody is about to.
    RaftCore* core = leader();
    if (core != nullptr && core->settled() && !core->changing() &&
        core->configuration() == newest_ && newest_.Find(replica.id) == nullptr) {
      replicas_.erase(picked);
    }
  } else {
    ChangeSomething();
  }
}

}  // namespace orrery::replication
