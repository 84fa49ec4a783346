// RaftReplicaSet: who the members are, who leads, and when a group may sleep.
#include <algorithm>
#include <tuple>

#include "base/log.h"
#include "replication/raft_host.h"
#include "replication/raft_replica_set.h"

namespace orrery::replication {

namespace {

constexpr int kQuietAfterHeartbeats = 3;
constexpr Duration kRefusedPause = std::chrono::seconds(5);
constexpr size_t kVotersMin = 3;  // of a set that had so many

}  // namespace

void RaftReplicaSet::SetPlacement(Configuration desired) {
  if (desired_ && desired_->members == desired.members) {  // in this order
    return;
  }
  desired_ = std::move(desired);
  if (core_ != nullptr && !HasPlacement()) {
    Wake();
  }
}

// Whether the members are those of the placement, as far as it is known here.
bool RaftReplicaSet::HasPlacement() const {
  return !desired_ || core_->configuration().SameMembers(*desired_);
}

bool RaftReplicaSet::whole() const {
  if (!desired_ || core_ == nullptr) {
    return false;
  }
  size_t voting = 0;
  for (const Member& member : core_->configuration().members) {
    voting += member.role == Role::kVoter && (member.id == self_ || host_.Alive(member.node));
  }
  return voting >= desired_->voters();
}

// The next configuration on the way from `now` to the placement: first everybody comes as a
// standby, then those who have caught up vote, then who should not vote stops and the others go.
// Where a replica takes the place of another on the same node, the old one goes first if enough
// others vote; else it has stopped already, because it is broken. Of several that can go it is the
// one that has least: no voter goes while one that stays lacks the last change, and one that is
// dead would lack it for ever.
std::optional<Configuration> RaftReplicaSet::NextConfiguration(const Configuration& now) const {
  Configuration next = now;
  const Member* in_the_way = nullptr;
  auto goes_first = [this](const Member& member, const Member* than) {
    auto order = [this](const Member& one) {
      return std::tuple(one.id == self_, one.role == Role::kVoter, core_->Match(one.id));
    };
    return than == nullptr || order(member) < order(*than);
  };
  // Another one on the node of a member that should come, if it can go first.
  auto before_it = [&now](const Member& wanted) -> const Member* {
    for (const Member& member : now.members) {
      if (member.node == wanted.node && member.id != wanted.id &&
          (member.role == Role::kStandby || now.voters() > kVotersMin)) {
        return &member;
      }
    }
    return nullptr;
  };
  for (const Member& wanted : desired_->members) {
    if (now.Find(wanted.id) != nullptr) {
      continue;
    }
    const Member* other = before_it(wanted);
    if (other == nullptr) {
      next.members.push_back({wanted.id, wanted.node, Role::kStandby});
      return next;
    }
    in_the_way = goes_first(*other, in_the_way) ? other : in_the_way;
  }
  bool all_vote = true;
  for (Member& member : next.members) {
    const Member* wanted = desired_->Find(member.id);
    if (wanted == nullptr || wanted->role != Role::kVoter || member.role == Role::kVoter) {
      continue;
    }
    all_vote = false;
    if (core_->Match(member.id) >= core_->commit() && host_.Alive(member.node)) {
      member.role = Role::kVoter;
      return next;
    }
    if (const Member* other = before_it(member); other && goes_first(*other, in_the_way)) {
      in_the_way = other;  // it came while there were too few others
    }
  }
  auto without = [&now](ReplicaId id) {
    Configuration fewer = now;
    std::erase_if(fewer.members, [id](const Member& member) { return member.id == id; });
    return fewer;
  };
  if (in_the_way != nullptr) {
    return in_the_way->id == self_ ? std::nullopt : std::optional(without(in_the_way->id));
  }
  if (!all_vote) {
    return std::nullopt;  // nobody leaves before the new ones vote
  }
  Member* goes = nullptr;
  for (Member& member : next.members) {
    const Member* wanted = desired_->Find(member.id);
    bool stays = wanted != nullptr && (wanted->role == member.role || wanted->role == Role::kVoter);
    if (!stays && member.id != self_ && goes_first(member, goes)) {
      goes = &member;
    }
  }
  if (goes == nullptr) {
    return std::nullopt;
  }
  if (desired_->Find(goes->id) == nullptr) {
    return without(goes->id);
  }
  goes->role = Role::kStandby;
  return next;
}

void RaftReplicaSet::Reconcile() {
  if (!desired_ || !frozen_.empty() || !leads() || core_->changing() ||
      host_.clock().Now() < refused_until_ || transfer_to_ != ReplicaId() ||
      core_->configuration().SameMembers(*desired_)) {
    return;
  }
  std::optional<Configuration> next = NextConfiguration(core_->configuration());
  if (!next) {
    const Member* self = desired_->Find(self_);
    if (self == nullptr || self->role != Role::kVoter) {
      TransferAway();  // another leader removes this one
    }
    return;
  }
  Result<Update> update = core_->Change(*next, Now());
  if (update) {
    last_activity_ = host_.clock().Now();
    Handle(std::move(*update));
  } else if (update.error().code() == Code::kInvalidArgument) {
    log::Warning("a change of members was refused",
                 {{"group", group_.ToString()}, {"why", update.error().message()}});
    refused_until_ = host_.clock().Now() + kRefusedPause;
  }
}

// A replica that votes from now on, while one on another node is to go, has moved. The catalog does
// not move: it is on every node.
void RaftReplicaSet::CountMoves(const Configuration& before, const Configuration& now) {
  if (!leads() || !desired_ || group_ == GroupId(0)) {
    return;
  }
  for (const Member& member : now.members) {
    const Member* was = before.Find(member.id);
    bool comes = member.role == Role::kVoter && (was == nullptr || was->role != Role::kVoter);
    auto goes = [&](const Member& other) {
      return desired_->Find(other.id) == nullptr && other.node != member.node;
    };
    if (comes && std::ranges::any_of(now.members, goes)) {
      host_.CountMove();
    }
  }
}

Result<ReplicaSet::Holders> RaftReplicaSet::HoldersOf(Lsn lsn) const {
  if (!leads() || core_->changing()) {
    return Error(Code::kNotLeader, "this replica does not lead, or its members change");
  }
  Holders known{.term = core_->TermOf(lsn), .voters = {host_.self()}};
  if (known.term == 0) {
    return Error(Code::kUnavailable, "the term of " + lsn.ToString() + " is not known");
  }
  for (const Member& member : core_->configuration().members) {
    if (member.role != Role::kVoter) {
      continue;
    }
    bool self = member.id == self_;
    if (!self) {
      known.voters.push_back(member.node);
    }
    if ((self ? core_->stored() : core_->Match(member.id)) >= lsn) {
      known.holders.push_back(member.node);
    }
    if (!host_.Alive(member.node)) {
      known.silent.push_back(member.node);
    }
  }
  return known;
}

// Leadership --------------------------------------------------------------------------------------

void RaftReplicaSet::TransferAway() {
  if (!leads() || transfer_to_ != ReplicaId()) {
    return;
  }
  ReplicaId best;
  Lsn best_match;
  for (const Member& member : core_->configuration().members) {
    const Member* wanted = desired_ ? desired_->Find(member.id) : &member;
    if (member.id == self_ || member.role != Role::kVoter || wanted == nullptr ||
        wanted->role != Role::kVoter || !host_.Alive(member.node)) {
      continue;
    }
    Lsn match = core_->Match(member.id);
    if (best == ReplicaId() || match > best_match) {
      best = member.id;
      best_match = match;
    }
  }
  if (best != ReplicaId()) {
    TransferTo(best);
  }
}

void RaftReplicaSet::AskToLead() {
  if (!stopped_ && !damaged_ && core_ != nullptr && core_->leader() != ReplicaId() &&
      !core_->leads()) {
    SendSmall(core_->leader(), leader_node(), FrameKind::kWant, "");
  }
}

void RaftReplicaSet::OnWant(ReplicaId from) {
  bool first = desired_ && !desired_->members.empty() && desired_->members.front().id == from &&
               desired_->members.front().role == Role::kVoter;
  if (first && leads() && transfer_to_ == ReplicaId() && !core_->changing() &&
      core_->configuration().SameMembers(*desired_) && core_->Match(from) == core_->last()) {
    TransferTo(from);
  }
}

void RaftReplicaSet::TransferTo(ReplicaId replica) {
  transfer_to_ = replica;
  transfer_until_ = host_.clock().Now() + options_.election_timeout;
  Wake();
  StepTransfer();
}

// Proposals are held until the other has everything; then it is told to take over.
void RaftReplicaSet::StepTransfer() {
  if (transfer_to_ == ReplicaId() || stopped_) {
    return;
  }
  if (!core_->leads() || host_.clock().Now() >= transfer_until_) {
    transfer_to_ = ReplicaId();
    FlushProposals();
    return;
  }
  if (Result<Update> update = core_->Transfer(transfer_to_, Now())) {
    no_lease_term_ = core_->term();
    Handle(std::move(*update));
  }
}

void RaftReplicaSet::OnNodeSilent(NodeId node, bool dead) {
  if (stopped_ || core_ == nullptr) {
    return;
  }
  bool concerns = std::ranges::any_of(core_->configuration().members,
                                      [&](const Member& member) { return member.node == node; });
  if (!concerns) {
    return;
  }
  Wake();
  if (dead && !core_->leads() && leader_node() == node) {
    Handle(core_->LeaderDied(Now()));
    Tick();
  }
}

// A standby does not call for elections, and a replica that was removed is told nothing: so it
// asks.
void RaftReplicaSet::Ask() {
  ask_at_ = host_.clock().Now() + options_.election_timeout;
  std::vector<Member> members = core_->configuration().members;
  if (desired_) {
    members.insert(members.end(), desired_->members.begin(), desired_->members.end());
  }
  for (const Member& member : members) {
    if (member.id != self_) {
      SendSmall(member.id, member.node, FrameKind::kAsk, "");
    }
  }
}

// Sleep -------------------------------------------------------------------------------------------

// When every member has everything and nothing is going on, the clocks stop.
void RaftReplicaSet::MaybeQuiet() {
  Instant now = host_.clock().Now();
  if (!options_.quiesce || !leads() ||
      now < last_activity_ + kQuietAfterHeartbeats * options_.heartbeat || !queue_.empty() ||
      !waiting_.empty() || !reading_.empty() || read_round_ || !appends_.empty() ||
      transfer_to_ != ReplicaId() || check_index_ != Lsn() || core_->changing() ||
      core_->commit() != core_->last() || applied() != core_->last() || !HasPlacement()) {
    return;
  }
  const Configuration& configuration = core_->configuration();
  for (const Member& member : configuration.members) {
    if (member.id != self_ &&
        (core_->Match(member.id) != core_->last() || told_commit_[member.id] != core_->commit() ||
         !host_.Alive(member.node))) {
      return;
    }
  }
  std::string body;
  Encoder encoder(body);
  encoder.U64(core_->term());
  encoder.U64(core_->last().value());
  for (const Member& member : configuration.members) {
    if (member.id != self_) {
      SendSmall(member.id, member.node, FrameKind::kQuiet, body);
    }
  }
  quiet_ = true;
  quiet_since_ = now;
}

void RaftReplicaSet::OnQuiet(NodeId from_node, ReplicaId from, Decoder body) {
  uint64_t term = body.U64();
  Lsn last(body.U64());
  if (quiet_ || term != core_->term() || core_->leader() != from || core_->leads() ||
      core_->last() != last || core_->commit() != last || !host_.Alive(from_node) ||
      !HasPlacement()) {  // who slept through its removal would never ask whether it is gone
    if (!quiet_ && core_->leader() == from) {
      SendSmall(from, from_node, FrameKind::kAsk, "");  // something is still missing here
    }
    return;
  }
  quiet_ = true;
  quiet_since_ = host_.clock().Now();
}

}  // namespace orrery::replication
