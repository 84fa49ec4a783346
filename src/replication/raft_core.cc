#include "replication/raft_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "replication/raft_core_body.h"

namespace orrery::replication {

namespace {

// A group that has as many voters keeps them.
constexpr size_t kVotersMin = 3;

bool HasChangeWithoutConfiguration(const std::vector<LogEntry>& entries) {
  return std::ranges::any_of(entries, [](const LogEntry& entry) {
    return entry.kind == EntryKind::kChange &&
           (entry.payload == nullptr || !Configuration::Decode(*entry.payload));
  });
}

}  // namespace

// Leading -----------------------------------------------------------------------------------------

int RaftCore::Body::Submit(std::vector<LogEntry> entries, Update& update) {
  for (LogEntry& entry : entries) {
    entry.term = r.current_term;
  }
  Given given{Lsn(last() + 1), entries};
  LibraryEntries library(entries, LibraryEntries::NoBatch());
  raft_event event{.type = RAFT_SUBMIT};
  event.submit.entries = library.data();
  event.submit.n = library.size();
  submitting = true;
  int error = Step(event, update, given);
  submitting = false;
  return error;
}

bool RaftCore::Body::Silent(ReplicaId id) const {
  auto peer = peers.find(id);
  uint64_t heard = peer == peers.end() ? 0 : peer->second.heard;
  return now_ms - std::max(heard, leads_since) >= r.election_timeout;
}

// Whether the voters may become fewer, as in `next`.
Status RaftCore::Body::CheckFewerVoters(const Configuration& next) const {
  if (guards(kGuardSingleVoter) && next.voters() < kVotersMin) {
    return Status(Code::kInvalidArgument, "a group keeps " + std::to_string(kVotersMin) +
                                              " voters, not " + std::to_string(next.voters()));
  }
  if (!guards(kGuardRemoveCaughtUp)) {
    return Status::Ok();
  }
  bool goes_silent = std::ranges::all_of(configuration.members, [&](const Member& member) {
    const Member* stays = next.Find(member.id);
    return (stays != nullptr && stays->role == member.role) ||
           (member.id != options.id && Silent(member.id));
  });
  for (const Member& member : next.members) {
    if (member.role != Role::kVoter || Match(member.id) >= r.configuration_committed_index) {
      continue;
    }
    // The dead may go one after the other.
    if (goes_silent && Silent(member.id)) {
      continue;
    }
    return Status(Code::kUnavailable,
                  "replica " + member.id.ToString() + " does not have the last change yet");
  }
  return Status::Ok();
}

// The members of `wanted`, in the order in which the library counts them. kInvalidArgument unless
// one member differs.
Result<Configuration> RaftCore::Body::NextConfiguration(const Configuration& wanted) const {
  size_t differences = 0;
  Configuration next;
  for (const Member& member : configuration.members) {
    const Member* stays = wanted.Find(member.id);
    if (stays == nullptr || *stays != member) {
      ++differences;
    }
    if (stays == nullptr) {
      continue;
    }
    if (stays->node != member.node) {
      return Error(Code::kInvalidArgument, "a replica cannot move to another node");
    }
    next.members.push_back(*stays);
  }
  for (const Member& member : wanted.members) {
    if (configuration.Find(member.id) != nullptr) {
      continue;
    }
    ++differences;
    next.members.push_back(member);
  }
  if (differences != 1 || !wanted.Valid()) {
    return Error(Code::kInvalidArgument, "not a change of one member");
  }
  return next;
}

void RaftCore::Body::ForgetLeader() {
  if (r.state != RAFT_FOLLOWER) {
    return;
  }
  r.follower_state.current_leader.id = 0;
  raft_free(r.follower_state.current_leader.address);
  r.follower_state.current_leader.address = nullptr;
}

// The operations ----------------------------------------------------------------------------------

RaftCore::RaftCore(const RaftOptions& options) : body_(std::make_unique<Body>(options)) {}
RaftCore::~RaftCore() = default;

Update RaftCore::Start(RaftStart start, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  ORRERY_CHECK(start.base || start.entries.empty());
  if (HasChangeWithoutConfiguration(start.entries)) {
    body.status = Status(Code::kCorruption, "a configuration in the log is malformed");
    return update;
  }
  if (start.base) {
    body.configuration = start.base->configuration;
  }
  for (const LogEntry& entry : start.entries) {
    if (entry.kind == EntryKind::kChange) {
      body.configuration = *Configuration::Decode(*entry.payload);
    }
  }
  const Member* self = body.configuration.Find(body.options.id);
  if (body.guards(kGuardNewTerm) && self != nullptr && self->role == Role::kVoter &&
      body.configuration.voters() == 1) {
    // It will elect itself without a new term, and may have sent entries in this one that it lost.
    ++start.term;
    start.vote = body.options.id;
    update.hard_state = true;
  }
  LibraryEntries entries(start.entries, LibraryEntries::NoBatch());
  raft_snapshot_metadata metadata{};
  raft_event event{.type = RAFT_START};
  event.start.term = start.term;
  event.start.voted_for = start.vote.value();
  event.start.start_index = 1;
  if (start.base) {
    body.base = *start.base;
    metadata = ToLibrary(*start.base);
    event.start.metadata = &metadata;
    event.start.start_index = start.base->index.value() + 1;
  }
  event.start.entries = entries.data();
  event.start.n_entries = entries.size();
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.Finish(update);
  return update;
}

Update RaftCore::Receive(Message message, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.status.ok() || message.to != body.options.id || !message.Valid()) {
    return update;
  }
  switch (message.kind) {
    case MessageKind::kAppend: body.ReceiveAppend(std::move(message), update); break;
    case MessageKind::kAppendResult: body.ReceiveAppendResult(std::move(message), update); break;
    case MessageKind::kVote: body.ReceiveVote(message, update); break;
    case MessageKind::kVoteResult:
      // Outside a candidacy the library looks into the wrong part of a union; all that could count
      // is a higher term, and that of a pre-vote is not one.
      if (body.r.state == RAFT_CANDIDATE ||
          (!message.pre_vote && message.term > body.r.current_term)) {
        body.StepMessage(message, update);
      }
      break;
    case MessageKind::kInstall: body.ReceiveInstall(std::move(message), update); break;
    case MessageKind::kTimeoutNow:
      if (!body.installing) {
        body.StepMessage(message, update);
      }
      break;
  }
  body.Finish(update);
  return update;
}

Update RaftCore::Persisted(Lsn last, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.status.ok() || last.value() <= body.r.last_stored) {
    return update;
  }
  ORRERY_CHECK(last.value() <= body.last());
  raft_event event{.type = RAFT_PERSISTED_ENTRIES};
  event.persisted_entries.index = last.value();
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.Finish(update);
  return update;
}

Update RaftCore::PersistedSnapshot(const SnapshotMeta& meta, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  ORRERY_CHECK(body.installing && meta.index >= body.installing->index);
  if (!body.status.ok()) {
    return update;
  }
  body.installing.reset();
  // What the library should have heard when it began. Who sent it may have been deposed since.
  bool led = body.leader() != ReplicaId();
  Message message;
  message.kind = MessageKind::kInstall;
  message.from = led ? body.leader() : body.installing_from;
  if (led) {
    message.node = NodeOf(body.r.follower_state.current_leader.address);
  }
  message.to = body.options.id;
  message.term = body.r.current_term;
  message.index = meta.index;
  message.index_term = meta.term;
  message.configuration = meta.configuration;
  message.configuration_index = meta.configuration_index;
  body.StepMessage(message, update);
  raft_event event{.type = RAFT_PERSISTED_SNAPSHOT};
  event.persisted_snapshot.metadata = ToLibrary(meta);
  event.persisted_snapshot.last = true;
  body.base = meta;
  ORRERY_CHECK(body.Step(event, update) == 0);
  if (!led) {
    body.ForgetLeader();
    update.messages.clear();
  }
  body.Finish(update);
  return update;
}

void RaftCore::InstallFailed() { body_->installing.reset(); }

Update RaftCore::ConfigurationApplied(Lsn index, const Configuration& configuration, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.status.ok() || body.r.configuration_uncommitted_index != index.value()) {
    return update;
  }
  raft_event event{.type = RAFT_CONFIGURATION};
  event.configuration.index = index.value();
  event.configuration.conf = ToLibrary(configuration);
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.Finish(update);
  return update;
}

Update RaftCore::LogCut(const SnapshotMeta& meta, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.status.ok() || meta.index <= body.base.index) {
    return update;
  }
  ORRERY_CHECK(meta.index.value() <= body.r.commit_index &&
               body.TermOf(meta.index.value()) == meta.term);
  raft_event event{.type = RAFT_SNAPSHOT};
  event.snapshot.metadata = ToLibrary(meta);
  body.base = meta;
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.Finish(update);
  return update;
}

Update RaftCore::Tick(Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.status.ok() || body.now_ms < raft_timeout(&body.r)) {
    return update;
  }
  raft_server* self = body.Self();
  if (body.guards(kGuardStandbyVotes) && (self == nullptr || self->role != RAFT_VOTER)) {
    body.ForgetLeader();  // the library never would, and without that it gives no vote
  }
  if (body.guards(kGuardNewTerm) && body.r.state == RAFT_FOLLOWER && body.LoneVoter() &&
      body.r.last_stored == body.last() && !body.installing) {
    ++body.r.current_term;  // see Start
    body.r.voted_for = body.r.id;
    update.hard_state = true;
  }
  raft_event event{.type = RAFT_TIMEOUT};
  body.r.snapshot.installing = body.installing.has_value();  // then it stays a follower
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.r.snapshot.installing = false;
  body.Finish(update);
  return update;
}

Instant RaftCore::deadline() const {
  return Instant(std::chrono::milliseconds(raft_timeout(&body_->r)));
}

Result<Update> RaftCore::Submit(std::vector<LogEntry> entries, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.leads() || !body.status.ok()) {
    return Error(Code::kNotLeader, "this replica does not lead");
  }
  if (body.r.leader_state.transferee != 0) {
    return Error(Code::kUnavailable, "the leadership is being handed over");
  }
  if (entries.empty()) {
    return update;
  }
  ORRERY_CHECK(body.Submit(std::move(entries), update) == 0);
  body.Finish(update);
  return update;
}

Result<Update> RaftCore::Change(const Configuration& configuration, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.leads() || !body.status.ok()) {
    return Error(Code::kNotLeader, "this replica does not lead");
  }
  if (!body.settled() || changing() || body.r.leader_state.transferee != 0 ||
      body.r.leader_state.promotee_id != 0) {
    return Error(Code::kUnavailable, "another change is under way");
  }
  ORRERY_TRY(Configuration next, body.NextConfiguration(configuration));
  if (next.voters() < body.configuration.voters()) {
    ORRERY_TRY_STATUS(body.CheckFewerVoters(next));
  }
  std::vector<LogEntry> change(1);
  change[0].kind = EntryKind::kChange;
  change[0].payload = std::make_shared<const std::string>(next.Encode());
  ORRERY_CHECK(body.Submit(std::move(change), update) == 0);
  body.Finish(update);
  return update;
}

Result<RaftCore::CatchUpStep> RaftCore::CatchUp(ReplicaId id, Instant now) {
  Body& body = *body_;
  CatchUpStep step;
  body.Begin(now);
  if (!body.leads() || !body.status.ok()) {
    return Error(Code::kNotLeader, "this replica does not lead");
  }
  const Member* member = body.configuration.Find(id);
  if (member == nullptr || member->role != Role::kStandby) {
    return Error(Code::kInvalidArgument, "replica " + id.ToString() + " is no standby");
  }
  int progress = RAFT_CATCH_UP_NONE;
  ORRERY_CHECK(raft_catch_up(&body.r, id.value(), &progress) == 0);
  uint64_t match = body.Match(id);
  // The library looks at it only when its log grows.
  step.caught_up = match == body.last() || (progress == RAFT_CATCH_UP_FINISHED &&
                                            body.last() - match <= body.options.inflight_entries);
  if (body.guards(kGuardOneCatchUp)) {
    if (step.caught_up || progress == RAFT_CATCH_UP_RUNNING) {
      return step;
    }
    if (body.r.leader_state.promotee_id != 0) {
      return Error(Code::kUnavailable, "another standby is being brought up to date");
    }
  }
  raft_event event{.type = RAFT_CATCH_UP};
  event.catch_up.server_id = id.value();
  ORRERY_CHECK(body.Step(event, step.update) == 0);
  body.Finish(step.update);
  return step;
}

Result<Update> RaftCore::Transfer(ReplicaId id, Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  if (!body.leads() || !body.status.ok()) {
    return Error(Code::kNotLeader, "this replica does not lead");
  }
  const Member* member = body.configuration.Find(id);
  if (member == nullptr || member->role != Role::kVoter || id == body.options.id) {
    return Error(Code::kInvalidArgument, "replica " + id.ToString() + " is no other voter");
  }
  if (body.r.leader_state.transferee != 0) {
    return Error(Code::kUnavailable, "the leadership is being handed over");
  }
  if (body.guards(kGuardTransferReady) &&
      (body.Match(id) != body.last() || body.r.last_stored != body.last())) {
    return Error(Code::kUnavailable, "replica " + id.ToString() + " does not have the whole log");
  }
  raft_event event{.type = RAFT_TRANSFER};
  event.transfer.server_id = id.value();
  ORRERY_CHECK(body.Step(event, update) == 0);
  body.Finish(update);
  return update;
}

Update RaftCore::LeaderDied(Instant now) {
  Body& body = *body_;
  Update update;
  body.Begin(now);
  raft_server* self = body.Self();
  bool votes = self != nullptr && self->role == RAFT_VOTER;
  bool asks = body.r.state == RAFT_CANDIDATE && body.r.candidate_state.in_pre_vote;
  if (!votes || !(asks || body.r.state == RAFT_FOLLOWER)) {
    return update;
  }
  uint64_t turn = 1;
  for (const Member& member : body.configuration.members) {
    if (member.role == Role::kVoter && member.id < body.options.id &&
        member.id != body.leader_before) {
      ++turn;
    }
  }
  body.ForgetLeader();
  uint64_t at = body.now_ms + turn * body.r.heartbeat_timeout / 4;
  uint64_t timeout = asks ? body.r.candidate_state.randomized_election_timeout
                          : body.r.follower_state.randomized_election_timeout;
  if (at < raft_timeout(&body.r)) {
    body.r.election_timer_start = at - timeout;
  }
  body.Finish(update);
  return update;
}

const Status& RaftCore::status() const { return body_->status; }

RaftState RaftCore::state() const {
  switch (body_->r.state) {
    case RAFT_LEADER: return RaftState::kLeader;
    case RAFT_CANDIDATE: return RaftState::kCandidate;
    default: return RaftState::kFollower;
  }
}

bool RaftCore::settled() const { return body_->settled(); }
uint64_t RaftCore::term() const { return body_->r.current_term; }
ReplicaId RaftCore::vote() const { return ReplicaId(body_->r.voted_for); }
ReplicaId RaftCore::leader() const { return body_->leader(); }
Lsn RaftCore::commit() const { return Lsn(body_->r.commit_index); }
Lsn RaftCore::last() const { return Lsn(body_->last()); }
Lsn RaftCore::stored() const { return Lsn(body_->r.last_stored); }
uint64_t RaftCore::TermOf(Lsn index) const { return body_->TermOf(index.value()); }
Lsn RaftCore::Match(ReplicaId id) const { return Lsn(body_->Match(id)); }
const Configuration& RaftCore::configuration() const { return body_->configuration; }
bool RaftCore::changing() const { return body_->r.configuration_uncommitted_index != 0; }

Lsn RaftCore::configuration_index() const {
  return Lsn(changing() ? body_->r.configuration_uncommitted_index
                        : body_->r.configuration_committed_index);
}

}  // namespace orrery::replication
