#include "replication/raft_replica_set.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mutants.h"
#include "replication/raft_host.h"

namespace orrery::replication {

namespace {

constexpr size_t kGatedMax = 10'000;
constexpr Duration kHintDelay = std::chrono::milliseconds(5);
constexpr Duration kEagerTime = std::chrono::seconds(3);
constexpr Duration kEagerPause = std::chrono::milliseconds(10);

}  // namespace

RaftReplicaSet::RaftReplicaSet(GroupId group, ReplicaId self, RaftHost& host,
                               runtime::Worker& worker)
    : group_(group),
      self_(self),
      host_(host),
      worker_(worker),
      store_(host.store()),
      options_(host.options().set),
      cache_(options_.cache_bytes) {
  TakeRecord(store_.Record(group));
}

RaftReplicaSet::~RaftReplicaSet() = default;

Instant RaftReplicaSet::Now() const {
  return (quiet_ ? quiet_since_ : host_.clock().Now()) - quiet_total_;
}

void RaftReplicaSet::Wake() {
  if (quiet_) {
    Instant now = host_.clock().Now();
    last_activity_ = now;
    ask_at_ = now + options_.election_timeout;
    quiet_ = false;
    quiet_total_ += std::chrono::duration_cast<Duration>(now - quiet_since_);
  }
  host_.Schedule(*this);
}

void RaftReplicaSet::Start(std::vector<LogEntry> heads, bool eager) {
  RaftOptions options{.id = self_,
                      .node = host_.self(),
                      .election_timeout = options_.election_timeout,
                      .heartbeat = options_.heartbeat,
                      .inflight_entries = static_cast<uint32_t>(options_.inflight_entries),
                      .seed = static_cast<uint32_t>(host_.random().Next()),
                      .guards = host_.options().guards};
  core_ = std::make_unique<RaftCore>(options);
  RaftStart start;
  if (auto log = store_.Log(group_)) {
    if (log->hard) {
      start.term = log->hard->term;
      start.vote = ReplicaId(log->hard->vote);
    }
    if (log->base) {
      auto configuration = Configuration::Decode(log->base->configuration);
      if (!configuration) {
        return Fail(configuration.error().ToString());
      }
      base_ = {log->base->index, log->base->term, *configuration, log->base->configuration_index};
      start.base = base_;
      NoteMembership(base_.configuration);
    }
  }
  cache_.Reset(Lsn(base_.index.value() + heads.size()));
  log_last_ = cache_.last();
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].kind == EntryKind::kChange) {
      auto configuration = Configuration::Decode(*heads[i].payload);
      if (!configuration) {
        return Fail(configuration.error().ToString());
      }
      changes_.emplace_back(Lsn(base_.index.value() + 1 + i), *configuration);
    }
  }
  start.entries = std::move(heads);
  started_ = last_activity_ = host_.clock().Now();
  life_ = host_.random().Next();
  ask_at_ = started_ + options_.election_timeout;
  if (eager) {
    eager_until_ = last_activity_ + kEagerTime;
  }
  if (host_.options().observer != nullptr) {
    host_.options().observer->OnStarted(group_, applied());
  }
  Handle(core_->Start(std::move(start), Now()));
  host_.Schedule(*this);
}

void RaftReplicaSet::Stop() {
  stopped_ = true;
  settled_ = false;
  FailWaiting();
}

void RaftReplicaSet::Fail(const std::string& why) {
  log::Error("a replica takes no part in its group any more",
             {{"group", group_.ToString()}, {"replica", self_.ToString()}, {"why", why}});
  Stop();
}

Instant RaftReplicaSet::deadline() const {
  if (stopped_ || core_ == nullptr) {
    return Instant::max();
  }
  if (quiet_) {
    return read_round_ ? read_round_->started + options_.heartbeat : Instant::max();
  }
  Instant at = core_->deadline() + quiet_total_;
  if (hint_at_ != Instant()) {
    at = std::min(at, hint_at_);
  }
  if (eager_until_ != Instant()) {
    at = std::min(at, next_eager_);
  }
  return core_->leads() ? at : std::min(at, ask_at_);
}

void RaftReplicaSet::Tick() {
  if (stopped_) {
    return;
  }
  if (quiet_) {
    if (!read_round_ || host_.clock().Now() < deadline()) {
      return;
    }
    Wake();  // the question of a read was lost, or nobody agrees that this one leads
  }
  if (!store_.healthy()) {
    return Fail("the log of this node has failed");
  }
  Instant now = host_.clock().Now();
  if (eager_until_ != Instant() && now >= next_eager_) {
    next_eager_ = now + kEagerPause;
    if (now >= eager_until_ || core_->leader() != ReplicaId() || core_->leads()) {
      eager_until_ = Instant();
    } else {
      Handle(core_->LeaderDied(Now()));
    }
  }
  if (Now() >= core_->deadline()) {
    Handle(core_->Tick(Now()));
  }
  if (hint_at_ != Instant() && now >= hint_at_) {
    SendHint();
  }
  if (core_->leads()) {
    Reconcile();
    StepTransfer();
    if (read_round_ && now - read_round_->started >= options_.heartbeat) {
      // Somebody did not hear it, or the answer was lost: ask again.
      for (ReadWait& wait : std::exchange(read_round_, std::nullopt)->waits) {
        read_queue_.push_back(std::move(wait));
      }
      StartReadRound();
    }
    if (check_index_ != Lsn() && now >= check_until_) {
      JudgeHashes();
    }
    MaybeQuiet();
  } else if (now >= ask_at_) {
    Ask();
  }
  host_.Schedule(*this);
}

// Proposals ---------------------------------------------------------------------------------------

runtime::Task<Result<Lsn>> RaftReplicaSet::Commit(storage::WriteSet set, uint64_t term) {
  ORRERY_CHECK(worker_.IsCurrent());
  if (!leads() || term != core_->term()) {
    co_return Error(Code::kNotLeader, "evaluated in term " + std::to_string(term));
  }
  LogEntry entry{.frees_space = set.frees_space,
                 .payload = std::make_shared<const std::string>(set.Encode())};
  if (Status room = store_.CheckRoom(entry.bytes(), entry.frees_space); !room.ok()) {
    co_return Error(room);
  }
  if (queued_bytes_ + entry.bytes() > options_.queue_bytes_max && queued_bytes_ > 0) {
    co_return Error(Code::kUnavailable, "too many writes wait for the quorum");
  }
  Wake();
  last_activity_ = host_.clock().Now();
  auto start = [this, &entry, term](std::function<void(Result<Lsn>)> resume) {
    queued_bytes_ += entry.bytes();
    queue_.push_back({std::move(entry), term, std::move(resume)});
    if (!flush_scheduled_) {
      flush_scheduled_ = true;
      worker_.Post([self = shared_from_this()] {
        self->flush_scheduled_ = false;
        self->FlushProposals();
      });
    }
  };
  co_return co_await runtime::SuspendHere<Result<Lsn>>(std::move(start));
}

bool RaftReplicaSet::Gather(const Crowd& crowd, size_t here, bool& waits,
                            void (RaftReplicaSet::*then)()) {
  const Duration pause = crowd.Patience(here, host_.clock().Now());
  if (pause == Duration::zero()) {
    return false;
  }
  if (!waits) {
    waits = true;
    auto later = [](std::shared_ptr<RaftReplicaSet> self, Duration pause, bool& waits,
                    void (RaftReplicaSet::*then)()) -> runtime::Task<> {
      co_await runtime::Sleep(pause);
      waits = false;
      (self.get()->*then)();
    };
    worker_.Spawn(later(shared_from_this(), pause, waits, then));
  }
  return true;
}

// While some are on their way, others gather until they are as many; then, for a moment, until most
// of those are back that were answered. Who waits waits for no more than one and a half rounds.
void RaftReplicaSet::FlushProposals() {
  if (stopped_ || queue_.empty() || transfer_to_ != ReplicaId() ||
      queue_.size() < waiting_.size() ||
      (waiting_.empty() &&
       Gather(writers_, queue_.size(), writers_gather_, &RaftReplicaSet::FlushProposals))) {
    return;
  }
  writers_.Begin(queue_.size() + waiting_.size(), host_.clock().Now());
  std::vector<Proposal> proposals(std::make_move_iterator(queue_.begin()),
                                  std::make_move_iterator(queue_.end()));
  queue_.clear();
  std::vector<LogEntry> entries;
  entries.reserve(proposals.size());
  for (const Proposal& proposal : proposals) {
    entries.push_back(proposal.entry);
  }
  // All were evaluated in one term: losing the leadership empties the queue.
  Result<Update> update = leads() && proposals.front().term == core_->term()
                              ? core_->Submit(std::move(entries), Now())
                              : Error(Code::kNotLeader, "this replica does not lead");
  Lsn index = update ? update->first_entry : Lsn();
  for (Proposal& proposal : proposals) {
    if (update) {
      if (Active(Mutant::kAcknowledgeEarly)) {
        proposal.resume(index);
        proposal.resume = [](Result<Lsn>) {};
      }
      waiting_.push_back({index, proposal.entry.bytes(), std::move(proposal.resume)});
      index = Lsn(index.value() + 1);
    } else {
      queued_bytes_ -= proposal.entry.bytes();
      proposal.resume(Error(update.error()));
    }
  }
  if (update) {
    Handle(std::move(*update));
  }
}

void RaftReplicaSet::FailWaiting() {
  auto queued = std::exchange(queue_, {});
  auto submitted = std::exchange(waiting_, {});
  auto reads = std::exchange(read_queue_, {});
  if (read_round_) {
    for (ReadWait& wait : std::exchange(read_round_, std::nullopt)->waits) {
      reads.push_back(std::move(wait));
    }
  }
  queued_bytes_ = 0;
  transfer_to_ = ReplicaId();
  for (Proposal& proposal : queued) {
    proposal.resume(Error(Code::kNotLeader, "this replica does not lead any more"));
  }
  for (Waiting& waiting : submitted) {
    waiting.resume(
        Error(Code::kUnknownOutcome, "the leadership was lost before the write was known to hold"));
  }
  for (ReadWait& wait : reads) {
    wait.resume(Status(Code::kNotLeader, "this replica does not lead any more"));
  }
}

// What the core says ------------------------------------------------------------------------------

void RaftReplicaSet::Handle(Update update) {
  if (stopped_) {
    return;
  }
  auto self = shared_from_this();
  if (update.hard_state || !update.entries.empty()) {
    Persist(update);
  }
  if (update.state_changed) {
    term_.store(core_->term(), std::memory_order_release);
    if (core_->leads()) {
      barrier_ = core_->last();
      told_commit_.clear();
      contacts_.clear();
      wrong_.clear();
    } else {
      reading_.clear();
      catching_up_.clear();
      Publish();  // first: who waited tries again at once, and must not find a leader here
      FailWaiting();
    }
  }
  SendAll(std::move(update.messages));
  if (update.install && !installing_) {
    installing_ = true;
    worker_.Spawn(Install(self, std::move(*update.install), heard_from_.node));
  }
  if (update.commit_changed) {
    if (core_->leads()) {
      hint_at_ = host_.clock().Now() + kHintDelay;
    }
    NoteCommitted(core_->commit());
    CommitChanges();
    ScheduleApply();
  }
  Publish();
  host_.Schedule(*this);
}

// Tells other threads, and the listener, how it stands.
void RaftReplicaSet::Publish() {
  term_.store(core_->term(), std::memory_order_release);
  NodeId node;
  if (const Member* leader = core_->configuration().Find(core_->leader())) {
    node = core_->leads() ? NodeId() : leader->node;
  } else if (core_->leader() == heard_from_.id) {
    node = heard_from_.node;  // it became a member after the configuration that is known here
  }
  leader_node_.store(node.value(), std::memory_order_relaxed);
  bool leads = !stopped_ && core_->leads() &&
               ((core_->settled() && applied() >= barrier_) || Active(Mutant::kLeadUnsettled));
  bool changed = leads != settled_.exchange(leads, std::memory_order_acq_rel);
  if (core_->leads() && host_.options().observer != nullptr) {
    host_.options().observer->OnLeading(group_, core_->term());
  }
  if (changed && listener_ != nullptr) {
    listener_->OnLeading(leads);
  }
}

void RaftReplicaSet::Persist(Update& update) {
  storage::AppendRequest request{.group = group_};
  InFlight append{.number = next_append_++,
                  .hard = update.hard_state && !Active(Mutant::kForgetVote)};
  if (update.hard_state && !Active(Mutant::kForgetVote)) {
    request.hard = storage::HardState{core_->term(), core_->vote().value()};
    ++hard_in_flight_;
  }
  if (!update.entries.empty()) {
    request.first = update.first_entry;
    if (update.first_entry <= log_last_ && !Active(Mutant::kNoTruncate)) {
      request.truncate_from = update.first_entry;
      Lsn kept(update.first_entry.value() - 1);
      for (InFlight& earlier : appends_) {
        earlier.last = std::min(earlier.last, kept);  // the rest of it is gone
      }
      std::erase_if(changes_, [&](const auto& change) { return change.first > kept; });
    }
    cache_.Put(update.first_entry, update.entries);
    log_last_ = Lsn(update.first_entry.value() + update.entries.size() - 1);
    append.last = log_last_;
    for (size_t i = 0; i < update.entries.size(); ++i) {
      if (update.entries[i].kind == EntryKind::kChange) {
        auto configuration = Configuration::Decode(*update.entries[i].payload);
        ORRERY_CHECK(configuration.has_value());
        changes_.emplace_back(Lsn(update.first_entry.value() + i), std::move(*configuration));
      }
    }
    request.entries = std::move(update.entries);
  }
  appends_.push_back(append);
  auto done = [weak = weak_from_this(), number = append.number](const Status& status) {
    if (auto self = weak.lock()) {
      self->OnPersisted(number, status);
    }
  };
  store_.Append(std::move(request), &worker_, std::move(done));
}

void RaftReplicaSet::OnPersisted(uint64_t number, const Status& status) {
  if (stopped_) {
    return;
  }
  if (!status.ok()) {
    // Others may still be on their way: what a log that has failed refuses is told at once.
    return Fail(status.ToString());
  }
  ORRERY_CHECK(!appends_.empty() && appends_.front().number == number);
  InFlight append = appends_.front();
  appends_.pop_front();
  if (append.hard && --hard_in_flight_ == 0) {
    for (Message& message : std::exchange(gated_, {})) {
      SendNow(std::move(message));
    }
  }
  if (append.last > core_->stored()) {
    Handle(core_->Persisted(append.last, Now()));
    StepTransfer();
    ScheduleApply();
  }
}

// Messages of an update leave only when its term and vote are durable.
void RaftReplicaSet::SendAll(std::vector<Message> messages) {
  for (Message& message : messages) {
    if (hard_in_flight_ == 0 || Active(Mutant::kSendEarly)) {
      SendNow(std::move(message));
    } else if (gated_.size() < kGatedMax) {
      gated_.push_back(std::move(message));
    }
  }
}

RaftView RaftReplicaSet::view() const {
  RaftView view{.replica = self_, .applied = applied()};
  if (core_ == nullptr) {
    return view;
  }
  view.leads = leads();
  view.term = core_->term();
  view.configuration = core_->configuration();
  view.changing = core_->changing();
  view.commit = core_->commit();
  if (core_->leads()) {
    for (const Member& member : view.configuration.members) {
      view.match.emplace_back(member.id,
                              member.id == self_ ? core_->stored() : core_->Match(member.id));
    }
  }
  return view;
}

}  // namespace orrery::replication
