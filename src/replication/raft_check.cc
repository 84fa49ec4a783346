// RaftReplicaSet: are all replicas equal? A mark in the log says where they compare: each hashes
// its state as it is after the mark, and tells the leader.
//
// One that meets damage when it reads its state, here or for a client, can answer nobody, but the
// others may need its vote and its log. So a leader that is well decides:
//
//   1. ReportDamage   a leader whose state is damaged gives the leadership to one that is well
//   2. TellDamage     it tells the others, until it is told to stop
//   3. OnDamaged      if the voters without it are a majority, the leader tells it to stop and has
//                     it made anew, as one that differs
#include <algorithm>

#include "base/log.h"
#include "replication/raft_host.h"
#include "replication/raft_replica_set.h"

namespace orrery::replication {

namespace {

constexpr storage::OperationId kCheckId{~uint64_t{0}, ~uint64_t{0}};
constexpr size_t kCheckBytesMax = 64;
constexpr Duration kCheckTime = std::chrono::minutes(10);
// The catalog: while a node runs nobody reads it, and its copy cannot be made anew meanwhile.
constexpr GroupId kMetaGroup(0);

}  // namespace

bool RaftReplicaSet::IsCheck(const LogEntry& entry) {
  if (entry.kind != EntryKind::kCommand || entry.bytes() > kCheckBytesMax) {
    return false;
  }
  auto view = storage::WriteSetView::Parse(*entry.payload);
  return view && view->id == kCheckId;
}

void RaftReplicaSet::Check() {
  if (!leads() || check_index_ != Lsn() || transfer_to_ != ReplicaId()) {
    return;
  }
  auto commit = [](std::shared_ptr<RaftReplicaSet> self) -> runtime::Task<> {
    storage::WriteSet mark;
    mark.id = kCheckId;
    mark.time = self->store_.Record(self->group_).time;
    (void)co_await self->Commit(std::move(mark), self->term());
  };
  worker_.Spawn(commit(shared_from_this()));
}

// REQUIRES: the mark at `index` is the last that was applied.
void RaftReplicaSet::StartHash(Lsn index) {
  NodeId leader = leader_node();
  if (leads()) {
    check_index_ = index;
    check_until_ = host_.clock().Now() + kCheckTime;
    leader = host_.self();
  }
  std::shared_ptr<storage::Snapshot> state = store_.state().NewSnapshot();
  worker_.Spawn(HashState(shared_from_this(), index, std::move(state), leader));
}

runtime::Task<> RaftReplicaSet::HashState(std::shared_ptr<RaftReplicaSet> self, Lsn index,
                                          std::shared_ptr<storage::Snapshot> state, NodeId leader) {
  auto hash = [this, &state]() -> Result<storage::SpanHash> {
    auto log = store_.Log(group_);
    if (!log) {
      return Error(Code::kNotFound);
    }
    return store_.HashSpans(group_, log->identity.spans, "", state.get());
  };
  Result<storage::SpanHash> found = co_await runtime::OnBlocking(host_.workers(), hash);
  if (!found && found.error().code() == Code::kCorruption) {
    static_cast<void>(co_await ReportDamage(found.error()));
  }
  if (!found || found->record.applied != index || stopped_) {
    co_return;
  }
  std::string body;
  Encoder encoder(body);
  encoder.U64(index.value());
  encoder.U64(found->hash);
  if (leader == host_.self()) {
    OnHash(self_, Decoder(body));
  } else if (const Member* to = core_->configuration().Find(core_->leader())) {
    SendSmall(to->id, to->node, FrameKind::kHash, body);
  }
}

// A follower may be done before the leader has applied the mark itself: what it says is kept.
void RaftReplicaSet::OnHash(ReplicaId from, Decoder body) {
  Lsn index(body.U64());
  uint64_t hash = body.U64();
  if (!body.ok() || !core_->leads() || !core_->configuration().Find(from)) {
    return;
  }
  hashes_[from] = std::max(hashes_[from], {index, hash});
  auto told = [this](const Member& member) {
    auto found = hashes_.find(member.id);
    return found != hashes_.end() && found->second.first == check_index_;
  };
  if (check_index_ != Lsn() && std::ranges::all_of(core_->configuration().members, told)) {
    JudgeHashes();
  }
}

// A replica that differs from a majority of the voters is wrong. Without one nobody can know.
void RaftReplicaSet::JudgeHashes() {
  std::map<ReplicaId, uint64_t> hashes;
  for (const auto& [replica, told] : std::exchange(hashes_, {})) {
    if (told.first == check_index_) {
      hashes[replica] = told.second;
    }
  }
  check_index_ = Lsn();
  std::map<uint64_t, size_t> votes;
  for (const Member& member : core_->configuration().members) {
    if (auto found = hashes.find(member.id); found != hashes.end() && member.role == Role::kVoter) {
      ++votes[found->second];
    }
  }
  if (votes.empty() || (votes.size() == 1 && votes.begin()->second == hashes.size())) {
    return;
  }
  auto most = std::ranges::max_element(
      votes, [](const auto& a, const auto& b) { return a.second < b.second; });
  bool majority = most->second > core_->configuration().voters() / 2;
  for (const auto& [replica, hash] : hashes) {
    if (hash == most->first) {
      continue;
    }
    log::Error("replicas of a partition differ",
               {{"group", group_.ToString()},
                {"replica", replica.ToString()},
                {"action", majority ? "it is made anew from the others" : "none: no majority"}});
    if (majority) {
      MakeAnew(replica);
    }
  }
}

// It stops, and another takes its place.
void RaftReplicaSet::MakeAnew(ReplicaId replica) {
  wrong_.insert(replica);
  if (const Member* member = core_->configuration().Find(replica); member && replica != self_) {
    std::string body;
    Encoder(body).U64(core_->term());
    SendSmall(replica, member->node, FrameKind::kWrong, body);
  }
  if (host_.options().on_difference) {
    host_.options().on_difference(group_, replica);
  }
}

// Damage ------------------------------------------------------------------------------------------

runtime::Task<bool> RaftReplicaSet::ReportDamage(Status why) {
  if (!worker_.IsCurrent()) {
    auto self = shared_from_this();
    auto report = [self, why = std::move(why)] { return self->ReportDamage(why); };
    co_return co_await runtime::OnWorker(worker_, std::move(report));
  }
  if (stopped_ || core_ == nullptr) {
    co_return stopped_;
  }
  const bool another = !core_->leads() || WellOther() != ReplicaId();
  if (!std::exchange(damaged_, true)) {
    log::Error("a replica is damaged",
               {{"group", group_.ToString()},
                {"replica", self_.ToString()},
                {"why", why.ToString()},
                {"action", another ? "others answer" : "none: no other is well"}});
    if (group_ != kMetaGroup) {
      worker_.Spawn(TellDamage(shared_from_this()));
    }
  }
  co_return another;
}

runtime::Task<> RaftReplicaSet::TellDamage(std::shared_ptr<RaftReplicaSet> self) {
  while (!stopped_) {
    std::string body;
    Encoder(body).U64(core_->term());
    for (const Member& member : core_->configuration().members) {
      if (member.id != self_) {
        SendSmall(member.id, member.node, FrameKind::kDamaged, body);
      }
    }
    if (leads() && transfer_to_ == ReplicaId()) {
      if (ReplicaId other = WellOther(); other != ReplicaId()) {
        TransferTo(other);
      }
    }
    co_await runtime::Sleep(options_.heartbeat);
  }
}

// One at a time: the next is decided on when the placement without the one before is reached.
void RaftReplicaSet::OnDamaged(ReplicaId from, Decoder body) {
  const uint64_t term = body.U64();
  if (!body.ok() || !core_->configuration().Find(from)) {
    return;
  }
  damaged_others_[from] = host_.clock().Now();
  if (term != core_->term() || !leads() || damaged_ || core_->changing() || !desired_ ||
      !core_->configuration().SameMembers(*desired_) || !CanSpare(from)) {
    return;
  }
  log::Error("a replica of a partition is damaged",
             {{"group", group_.ToString()},
              {"replica", from.ToString()},
              {"action", "it is made anew from the others"}});
  MakeAnew(from);
}

// Whether it votes and is no worse than the leader, as far as the leader can know: it is alive, and
// has taken what the term began with.
bool RaftReplicaSet::TakesPart(const Member& member) const {
  return member.role == Role::kVoter && !wrong_.contains(member.id) &&
         (member.id == self_ || (core_->Match(member.id) >= barrier_ && host_.Alive(member.node)));
}

// REQUIRES: it leads.
bool RaftReplicaSet::CanSpare(ReplicaId replica) const {
  auto counts = [&](const Member& m) { return m.id != replica && TakesPart(m); };
  const Configuration& now = core_->configuration();
  return static_cast<size_t>(std::ranges::count_if(now.members, counts)) > now.voters() / 2;
}

// Of those who could lead and have not said that they are damaged, the one that has most; 0: none.
// REQUIRES: it leads.
ReplicaId RaftReplicaSet::WellOther() const {
  const Instant since = host_.clock().Now() - options_.election_timeout;
  ReplicaId best;
  for (const Member& member : core_->configuration().members) {
    auto told = damaged_others_.find(member.id);
    const bool damaged = told != damaged_others_.end() && told->second >= since;
    if (member.id != self_ && !damaged && TakesPart(member) &&
        (best == ReplicaId() || core_->Match(member.id) > core_->Match(best))) {
      best = member.id;
    }
  }
  return best;
}

}  // namespace orrery::replication
