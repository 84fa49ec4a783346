// RaftReplicaSet: reads: who may answer them, and how new what is here surely is.
#include <algorithm>

#include "base/mutants.h"
#include "replication/raft_host.h"
#include "replication/raft_replica_set.h"

namespace orrery::replication {

namespace {

constexpr Duration kPollPause = std::chrono::milliseconds(2);

}  // namespace

runtime::Task<Status> RaftReplicaSet::ReadBarrier() {
  if (!worker_.IsCurrent()) {
    auto self = shared_from_this();
    co_return co_await runtime::OnWorker(worker_, [self] { return self->ReadBarrier(); });
  }
  if (!leads()) {
    co_return Status(Code::kNotLeader, "this replica does not lead");
  }
  if (options_.lease_reads) {  // nobody renews the lease of a group that sleeps
    last_activity_ = host_.clock().Now();
    if (quiet_) {
      Wake();
    }
  }
  if (Active(Mutant::kReadHere) || (HasLease() && applied() >= core_->commit())) {
    co_return Status::Ok();
  }
  auto start = [this](std::function<void(Status)> resume) {
    read_queue_.push_back({Lsn(), std::move(resume)});
    if (!read_round_ && !std::exchange(read_posted_, true)) {
      worker_.Post([self = shared_from_this()] {
        self->read_posted_ = false;
        self->StartReadRound();
      });
    }
  };
  co_return co_await runtime::SuspendHere<Status>(std::move(start));
}

// Asks the others whether the term is still this one; all reads that wait share the question.
void RaftReplicaSet::StartReadRound() {
  if (stopped_ || read_round_ || read_queue_.empty() ||
      Gather(readers_, read_queue_.size(), readers_gather_, &RaftReplicaSet::StartReadRound)) {
    return;
  }
  if (!leads()) {
    for (ReadWait& wait : std::exchange(read_queue_, {})) {
      wait.resume(Status(Code::kNotLeader, "this replica does not lead any more"));
    }
    return;
  }
  ReadRound round{.number = next_round_++, .started = host_.clock().Now()};
  for (ReadWait& wait : std::exchange(read_queue_, {})) {
    wait.index = std::max(wait.index, core_->commit());
    round.waits.push_back(std::move(wait));
  }
  readers_.Begin(round.waits.size(), round.started);
  read_round_ = std::move(round);
  if (HasLease()) {
    return ConfirmReads();
  }
  std::string body;
  Encoder encoder(body);
  encoder.U64(core_->term());
  encoder.U64(read_round_->number);
  for (const Member& member : core_->configuration().members) {
    if (member.role == Role::kVoter && member.id != self_) {
      SendSmall(member.id, member.node, FrameKind::kProbe, body);
    }
  }
  host_.Schedule(*this);
  std::string own = body;
  Encoder(own).Bool(true);
  OnProbeAck(self_, Decoder(own));
}

void RaftReplicaSet::OnProbeAck(ReplicaId from, Decoder body) {
  uint64_t term = body.U64();
  uint64_t number = body.U64();
  bool agrees = body.Bool();
  if (!body.ok() || !agrees || !read_round_ || number != read_round_->number ||
      term != core_->term() || !core_->leads()) {
    return;
  }
  const Configuration& configuration = core_->configuration();
  const Member* member = configuration.Find(from);
  auto& acks = read_round_->acks;
  if (member == nullptr || member->role != Role::kVoter ||
      std::ranges::find(acks, from) != acks.end()) {
    return;
  }
  acks.push_back(from);
  if (acks.size() <= configuration.voters() / 2) {
    return;
  }
  NoteFresh(read_round_->started);
  ConfirmReads();
}

// This replica led when the round began: what was committed then is all that they must see.
void RaftReplicaSet::ConfirmReads() {
  for (ReadWait& wait : std::exchange(read_round_, std::nullopt)->waits) {
    read_waits_.push_back(std::move(wait));
  }
  readers_.End(read_queue_.size(), host_.clock().Now());
  WakeReaders();
  StartReadRound();
}

void RaftReplicaSet::WakeReaders() {
  std::vector<ReadWait> ready;
  std::erase_if(read_waits_, [&](ReadWait& wait) {
    if (wait.index > applied() && !Active(Mutant::kReadUnapplied)) {
      return false;
    }
    ready.push_back(std::move(wait));
    return true;
  });
  for (ReadWait& wait : ready) {
    wait.resume(Status::Ok());
  }
}

runtime::Task<Status> RaftReplicaSet::WaitApplied(Lsn lsn, Duration longest) {
  Instant until = host_.clock().Now() + longest;
  while (applied() < lsn && !Active(Mutant::kIgnoreSession)) {
    if (host_.clock().Now() >= until) {
      co_return Status(Code::kSessionNotReached,
                       "this replica has not yet applied " + lsn.ToString());
    }
    co_await runtime::Sleep(kPollPause);
  }
  co_return Status::Ok();
}

// Contacts ----------------------------------------------------------------------------------------

// A time of this process, as no other process of this replica would write it.
uint64_t RaftReplicaSet::OwnStamp() const {
  return static_cast<uint64_t>(host_.clock().Now().time_since_epoch().count()) + life_;
}

bool RaftReplicaSet::KeepsPromise(const Message& message) const {
  switch (message.kind) {
    // It may have promised before it was restarted.
    case MessageKind::kVote: return host_.clock().Now() >= started_ + options_.election_timeout;
    // Late, it brings at most a newer term, and with that the leader would be forgotten.
    case MessageKind::kVoteResult: return core_->leader() == ReplicaId();
    default: return true;
  }
}

void RaftReplicaSet::AppendStamps(const Message& message, Encoder& encoder) const {
  if (message.kind == MessageKind::kAppend) {
    auto contact = contacts_.find(message.to);
    encoder.U64(static_cast<uint64_t>(host_.clock().Now().time_since_epoch().count()));
    encoder.U64(contact == contacts_.end() ? 0 : contact->second.proved);
    // Not that of the message, which may have waited longer than the proof.
    encoder.U64(core_->commit().value());
  } else if (message.kind == MessageKind::kAppendResult) {
    // It may have waited, and the newest stamp be that of another leader.
    uint64_t heard = stamp_term_ == message.term ? heard_stamp_ : 0;
    encoder.U64(options_.lease_reads ? heard : 0);
    encoder.U64(heard);
    encoder.U64(OwnStamp());
  }
}

void RaftReplicaSet::OnStamps(const Message& message, Decoder& decoder) {
  if (message.kind == MessageKind::kAppend && message.term >= core_->term()) {
    uint64_t stamp = decoder.U64();
    uint64_t proved = decoder.U64();
    Lsn commit(decoder.U64());
    eager_until_ = Instant();  // somebody leads
    heard_stamp_ = message.term == stamp_term_ ? std::max(heard_stamp_, stamp) : stamp;
    stamp_term_ = message.term;
    if (!decoder.ok()) {
      return;  // an older node
    }
    NoteCommitted(commit);
    Instant asked(Duration(static_cast<int64_t>(proved - life_)));
    if (Active(Mutant::kFreshWhenHeard)) {
      asked = host_.clock().Now();
    }
    if (!proof_ && proved != 0 && asked >= started_ && asked <= host_.clock().Now()) {
      proof_ = {asked, commit};
    }
    TakeProof();
  } else if (message.kind == MessageKind::kAppendResult && message.term == core_->term() &&
             core_->leads() && core_->configuration().Find(message.from) != nullptr) {
    auto instant = [](uint64_t stamp) { return Instant(Duration(static_cast<int64_t>(stamp))); };
    Contact& contact = contacts_[message.from];
    contact.promised = std::max(contact.promised, instant(decoder.U64()));
    contact.answered = std::max(contact.answered, instant(decoder.U64()));
    if (uint64_t own = decoder.U64(); decoder.ok() && contact.asked == 0) {
      contact.asked = own;
      contact.asked_at = host_.clock().Now();
    }
    ProveContacts();
  }
}

// The newest time of which a majority of the voters, this one among them, has what `time` says.
Instant RaftReplicaSet::QuorumTime(Instant Contact::* time) const {
  std::vector<Instant> times;
  for (const Member& member : core_->configuration().members) {
    if (member.role == Role::kVoter) {
      auto found = contacts_.find(member.id);
      times.push_back(member.id == self_         ? Instant::max()
                      : found == contacts_.end() ? Instant()
                                                 : found->second.*time);
    }
  }
  std::ranges::sort(times, std::greater());
  return times.empty() ? Instant() : times[times.size() / 2];
}

void RaftReplicaSet::ProveContacts() {
  if (!leads()) {
    return;  // others may have acknowledged more than is committed here
  }
  Instant quorum = std::min(QuorumTime(&Contact::answered), host_.clock().Now());
  NoteFresh(quorum);
  for (auto& [id, contact] : contacts_) {
    if (contact.asked != 0 && contact.asked_at < quorum) {
      contact.proved = std::exchange(contact.asked, 0);
    }
  }
}

// Everything that was acknowledged before this time is applied here.
void RaftReplicaSet::NoteFresh(Instant at) {
  int64_t micros = at.time_since_epoch().count();
  if (micros > fresh_.load(std::memory_order_relaxed)) {
    fresh_.store(micros, std::memory_order_release);
  }
}

void RaftReplicaSet::NoteCommitted(Lsn lsn) {
  if (lsn.value() > committed_.load(std::memory_order_relaxed)) {
    committed_.store(lsn.value(), std::memory_order_release);
  }
}

void RaftReplicaSet::TakeProof() {
  if (proof_ && applied() >= proof_->commit) {
    NoteFresh(proof_->asked);
    proof_.reset();
  }
}

bool RaftReplicaSet::Within(const Staleness& bound) const {
  Instant fresh(Duration(fresh_.load(std::memory_order_acquire)));
  uint64_t committed = committed_.load(std::memory_order_acquire);
  return fresh != Instant() && host_.clock().Now() - fresh <= bound.time &&
         applied().value() + bound.versions >= committed;
}

bool RaftReplicaSet::HasLease() const {
  if (!options_.lease_reads || !leads() || !core_->leads() || no_lease_term_ == core_->term() ||
      transfer_to_ != ReplicaId()) {
    return false;
  }
  Instant quorum = QuorumTime(&Contact::promised);
  Duration lease = options_.election_timeout * 9 / 10;
  return quorum == Instant::max() || host_.clock().Now() < quorum + lease;
}

}  // namespace orrery::replication
