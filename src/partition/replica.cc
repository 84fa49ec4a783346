#include "partition/replica.h"

#include "base/mutants.h"

namespace orrery::partition {

namespace {

// Every write holds it shared: who holds it exclusively is alone.
constexpr uint64_t kWholePartition = 0;
// How long a replica waits for what the client has seen, before the leader is asked.
constexpr Duration kSessionWait = std::chrono::milliseconds(20);
// For a leader whose budget is another's: how long it waits for units, how often it looks, and when
// the client should try again if none came.
constexpr Duration kSliceWait = std::chrono::milliseconds(100);
constexpr Duration kSlicePoll = std::chrono::milliseconds(2);
constexpr Duration kNoSlicePause = std::chrono::milliseconds(50);

}  // namespace

Replica::Replica(ContainerId container, PartitionRange range, std::shared_ptr<const Schema> schema,
                 std::shared_ptr<Budget> budget, bool governed, runtime::Worker& worker,
                 std::shared_ptr<replication::ReplicaSet> set, const ReplicaServices& services)
    : container_(container),
      range_(std::move(range)),
      services_(services),
      worker_(worker),
      set_(std::move(set)),
      budget_(std::move(budget)),
      governed_(governed),
      schema_(std::move(schema)),
      schema_version_(schema_->version),
      sizes_(GroupId(range_.id.value()), storage::ItemSpan(container_, range_.range),
             services_.state, services_.workers, *set_),
      horizon_(container_, range_.range, services_.state, services_.workers, *set_) {
  set_->SetListener(this);
}

Status Replica::CheckTarget(const Operation& operation) const {
  const Target& target = operation.target;
  if (target.generation != range_.generation) {
    return Status(Code::kMoved,
                  "the partition is at generation " + std::to_string(range_.generation));
  }
  // Alone, a read is right all the same: heirs write the state that it reads.
  if (is_frozen() && !operation.runs_frozen() && (operation.writes() || set_->replicated())) {
    return Status(Code::kMoved, "the partition is being split or merged");
  }
  if (target.schema_version != schema_version_.load(std::memory_order_acquire)) {
    return Status(Code::kSchemaChanged, "the container's definition has changed");
  }
  if (operation.writes() && !set_->leads()) {
    return Status(Code::kNotLeader, "this replica does not lead");
  }
  return Status::Ok();
}

// Whether a replica that is a little behind, as this one may be, may answer a read. In a session
// whose token does not come with the request only the leader surely has what the session wrote:
// clients do not send it where they rely on the account's default.
bool Replica::AnyReplica(const Operation& operation) const {
  switch (operation.level) {
    case ReadLevel::kStrong: return false;
    case ReadLevel::kBounded: return set_->Within(services_.staleness);
    case ReadLevel::kSession: return operation.session_token() > Lsn();
    case ReadLevel::kPrefix:
    case ReadLevel::kEventual: return true;
  }
  return false;
}

runtime::Task<Reply> Replica::Execute(Operation& operation) {
  if (Status fit = CheckTarget(operation); !fit.ok()) {
    co_return MakeReply(std::move(fit), RequestUnits());
  }
  if (set_->replicated() && (!operation.writes() || operation.session_token() > applied())) {
    Status ready = operation.writes() ? co_await ReachSession(operation.session_token())
                                      : co_await PrepareRead(operation);
    if (!ready.ok()) {
      co_return MakeReply(std::move(ready), RequestUnits());
    }
  }
  RequestUnits least = operation.least_price();
  requests_.fetch_add(1, std::memory_order_relaxed);
  Payer payer = Payer::kNobody;
  Duration wait = Duration::zero();
  bool bucket_full = false;
  // What the system does by itself is on nobody's account.
  if (least > RequestUnits() && governed_.load(std::memory_order_relaxed)) {
    payer = Payer::kSlice;
    if (OwnsBudget()) {
      payer = Payer::kGovernor;
      wait =
          budget_->governor().Reserve(least, services_.clock.Now(), operation.claim, &bucket_full);
    } else if (set_->leads()) {
      bool taken = co_await TakeSlice(least, operation.claim.priority);
      wait = taken ? Duration::zero() : kNoSlicePause;
    } else if (!UsesSlices(operation)) {
      co_return MakeReply(Status(Code::kNotLeader, "only the leader weighs it"), {});
    } else if (!budget_->Take(least, services_.clock.Now())) {
      Borrow();
      co_return MakeReply(Status(Code::kNotLeader, "nothing is borrowed for reads here"), {});
    }
  }
  if (wait > Duration::zero()) {
    throttled_.fetch_add(1, std::memory_order_relaxed);
    auto ms = static_cast<uint32_t>((wait.count() + 999) / 1000);
    Reply reply = MakeReply(Status::Throttled(ms), PriceOfThrottled());
    reply.body.assign(bucket_full ? 1 : 0, '\1');
    co_return reply;
  }
  if (operation.runs_anywhere() || worker_.IsCurrent()) {
    co_return co_await RunAdmitted(operation, least, payer);
  }
  auto run = [this, &operation, least, payer] { return RunAdmitted(operation, least, payer); };
  co_return co_await runtime::OnWorker(worker_, run);
}

bool Replica::MayServe(const Operation& operation) {
  if (set_->leads()) {
    return true;
  }
  if (operation.writes() || !AnyReplica(operation)) {
    return false;
  }
  if (!governed_.load(std::memory_order_relaxed)) {
    return true;
  }
  if (!UsesSlices(operation)) {
    return false;
  }
  if (budget_->HasSlice(services_.clock.Now())) {
    return true;
  }
  Borrow();
  return false;
}

bool Replica::UsesSlices(const Operation& operation) const {
  return operation.claim.priority == Priority::kHigh &&
         !budget_->governor().bucketed(operation.claim);
}

bool Replica::OwnsBudget() const {
  if (!services_.borrow) {
    return true;
  }
  PartitionId owner = budget_->owner_id();
  return owner == range_.id ? set_->leads() : services_.leads_here(owner);
}

void Replica::Borrow() {
  auto ask = budget_->BeginBorrow(services_.clock.Now());
  if (!ask) {
    return;
  }
  auto borrow = [](std::shared_ptr<Budget> budget, const ReplicaServices& services,
                   Budget::Ask ask) -> runtime::Task<> {
    RequestUnits granted = co_await services.borrow(budget->owner(), ask);
    budget->EndBorrow(granted, services.clock.Now());
  };
  worker_.Spawn(borrow(budget_, services_, *ask));
}

// A leader cannot send anyone elsewhere: it waits a little for units.
runtime::Task<bool> Replica::TakeSlice(RequestUnits least, Priority priority) {
  Instant until = services_.clock.Now() + kSliceWait;
  while (!budget_->Take(least, services_.clock.Now(), priority)) {
    if (services_.clock.Now() >= until) {
      co_return false;
    }
    Borrow();
    co_await runtime::Sleep(kSlicePoll);
  }
  co_return true;
}

// A follower may have applied an entry before the leader has. What the client has seen is
// committed, so it is applied here after the barrier, if this replica still leads: a token that is
// not reached then is one that nobody can reach, and the operation refuses it.
runtime::Task<Status> Replica::ReachSession(Lsn token) {
  if (token <= applied() || Active(Mutant::kIgnoreSession)) {
    co_return Status::Ok();
  }
  co_return co_await set_->ReadBarrier();
}

runtime::Task<Status> Replica::PrepareRead(const Operation& operation) {
  const bool bounded = operation.level == ReadLevel::kBounded;
  if (operation.level == ReadLevel::kStrong ||
      (bounded && set_->leads() && !set_->Within(services_.staleness))) {
    co_return co_await set_->ReadBarrier();
  }
  if (set_->leads()) {
    co_return co_await ReachSession(operation.session_token());
  }
  if (!(co_await set_->WaitApplied(operation.session_token(), kSessionWait)).ok() ||
      !AnyReplica(operation)) {
    co_return Status(Code::kNotLeader, "only the leader is sure to be new enough");
  }
  co_return Status::Ok();
}

runtime::Task<Reply> Replica::RunAdmitted(Operation& operation, RequestUnits least, Payer payer) {
  const uint64_t damage = services_.state.damage_met();
  const uint64_t installs = set_->installs();
  Reply reply = co_await operation.Run(*this);
  if (!operation.writes() && (installs % 2 != 0 || set_->installs() != installs)) {
    reply = MakeReply(Status(Code::kNotLeader, "a snapshot is being taken in here"), {});
  }
  if (reply.status.code() == Code::kCorruption && services_.state.damage_met() != damage &&
      co_await set_->ReportDamage(reply.status)) {
    reply = MakeReply(Status(Code::kNotLeader, "the state here is damaged"), reply.charge);
  }
  auto charge = static_cast<uint64_t>(reply.charge.hundredths());
  uint64_t before = charge_hundredths_.fetch_add(charge, std::memory_order_relaxed);
  if (charge > 0 && hot_keys_.Picks(before, charge)) {
    hot_keys_.Add(operation.logical_partition(), charge, services_.clock.Now());
  }
  if (payer == Payer::kGovernor) {
    budget_->governor().Settle(reply.charge - least, services_.clock.Now(), operation.claim);
  } else if (payer == Payer::kSlice) {
    budget_->Settle(reply.charge - least, services_.clock.Now());
  }
  co_return reply;
}

runtime::Task<Result<std::string>> Replica::Read(storage::Space space, std::string_view key,
                                                 const storage::Snapshot* snapshot) {
  std::string value;
  Status status = services_.state.Get(storage::Index(space), key, &value,
                                      storage::ReadMode::kMemoryOnly, snapshot);
  if (status.code() == Code::kWouldBlock) {
    auto get = [this, space, key = std::string(key), snapshot, &value] {
      return services_.state.Get(storage::Index(space), key, &value, storage::ReadMode::kMayWait,
                                 snapshot);
    };
    status = co_await runtime::OnBlocking(services_.workers, std::move(get));
  }
  if (!status.ok()) {
    co_return Error(std::move(status));
  }
  co_return value;
}

WallTime Replica::NextTime(int64_t count) {
  int64_t from = std::max(services_.clock.Wall().micros, last_time_.micros + 1);
  last_time_ = {from + count - 1};
  return last_time_;
}

const Replica::Outcome* Replica::Recall(const storage::OperationId& id) const {
  return Active(Mutant::kForgetOutcomes) ? nullptr : outcomes_.Recall(id);
}

Status Replica::CheckNotEnded(const Operation& operation) const {
  return outcomes_.Refuses(operation.id) && !Active(Mutant::kRunEnded)
             ? Status(Code::kUnknownOutcome, "the operation has ended")
             : Status::Ok();
}

void Replica::Remember(const storage::OperationId& id, Lsn lsn, std::string_view result,
                       WallTime time, uint64_t settled) {
  last_time_ = std::max(last_time_, time);
  outcomes_.Remember(id, settled, lsn, result, time);
}

runtime::Task<Result<Replica::Turn>> Replica::Acquire(const Operation& operation,
                                                      std::vector<Latch> latches) {
  latches.push_back({.name = kWholePartition, .exclusive = false});
  Turn turn;
  turn.guard = co_await latches_.Acquire(std::move(latches));
  ORRERY_CO_TRY_STATUS(CheckTarget(operation));
  ORRERY_CO_TRY_STATUS(CheckNotEnded(operation));
  turn.term = set_->term();
  co_return turn;
}

runtime::Task<Result<Replica::Turn>> Replica::AcquireAll() {
  Turn turn;
  turn.guard = co_await latches_.Acquire({{.name = kWholePartition}});
  if (!set_->leads()) {
    co_return Error(Code::kNotLeader, "this replica does not lead");
  }
  turn.term = set_->term();
  co_return turn;
}

runtime::Task<Status> Replica::Confirm(const Turn& turn, ReadLevel level) {
  if (level == ReadLevel::kStrong || !set_->Within(services_.staleness)) {
    ORRERY_CO_RETURN_IF_ERROR(co_await set_->ReadBarrier());
  }
  // Others may have led in between.
  co_return set_->term() == turn.term ? Status::Ok()
                                      : Status(Code::kNotLeader, "the leader has changed");
}

void Replica::BeginWatch(size_t places_max, types::Epk cut) {
  watch_ = ChangeWatch{.places_max = places_max, .cut = std::move(cut)};
}

Result<storage::Totals> Replica::EndWatch(std::string_view cut) {
  std::optional<ChangeWatch> watch = std::exchange(watch_, std::nullopt);
  if (!watch || watch->spoiled) {
    return Error(Code::kUnavailable, "too much has changed meanwhile");
  }
  storage::Totals before;
  for (const auto& [place, totals] : watch->changes) {
    if (place < cut) {
      before.bytes += totals.bytes;
      before.items += totals.items;
    }
  }
  return before;
}

// What one WriteSet changes is in one logical partition, but for the deletes of expired items.
void Replica::Note(const storage::WriteSetView& set) {
  if (set.change == storage::Totals() || watch_->spoiled) {
    return;
  }
  std::optional<types::Epk> noted;
  Status status = set.ForEach([&](const storage::WriteSetChange& change) {
    types::Epk place;
    if (change.space != storage::Space::kItems) {
      return;
    }
    watch_->spoiled |= !storage::ReadItemEpk(change.key, &place);
    if (!watch_->cut.empty()) {
      place = place < watch_->cut ? types::Epk() : watch_->cut;
    }
    watch_->spoiled |= noted && *noted != place;
    noted = std::move(place);
  });
  storage::Totals& totals = watch_->changes[noted.value_or(types::Epk())];
  totals.bytes += set.change.bytes;
  totals.items += set.change.items;
  const bool many = watch_->cut.empty() && watch_->changes.size() > watch_->places_max;
  watch_->spoiled |= !status.ok() || many;
  if (watch_->spoiled) {
    watch_->changes.clear();
  }
}

void Replica::OnFrozen(const std::string& why) {
  frozen_ = why;
  is_frozen_.store(!why.empty(), std::memory_order_release);
}

runtime::Task<Result<Lsn>> Replica::Commit(storage::WriteSet set, const Turn& turn) {
  return set_->Commit(std::move(set), turn.term);
}

void Replica::OnApplied(Lsn lsn, const storage::WriteSetView& set) {
  Remember(set.id, lsn, set.result, set.time, set.settled);
  if (watch_) {
    Note(set);
  }
}

void Replica::OnReplaced() { DecodeOutcomes(set_->extra()); }

std::string Replica::Outcomes() const { return outcomes_.Encode(last_time_); }

std::string Replica::JoinOutcomes(std::string_view a, std::string_view b) {
  return OutcomeMemory::Join(a, b);
}

bool Replica::DecodeOutcomes(std::string_view bytes) {
  std::optional<WallTime> time = outcomes_.Decode(bytes);
  last_time_ = std::max(last_time_, time.value_or(WallTime()));
  return time.has_value();
}

Reply Replica::MakeReply(Status status, RequestUnits charge) const {
  Reply reply{
      .status = std::move(status), .charge = charge, .lsn = applied(), .partition = range_.id};
  if (reply.status.code() == Code::kNotLeader) {
    reply.leader = set_->leader_node();
  }
  return reply;
}

ReplicaStats Replica::stats() const {
  return {requests_.load(std::memory_order_relaxed), throttled_.load(std::memory_order_relaxed),
          charge_hundredths_.load(std::memory_order_relaxed)};
}

void Replica::SetLimits(const StorageLimits& limits) {
  sizes_.SetLimit(limits.logical_partition);
  bytes_max_.store(limits.all, std::memory_order_relaxed);
}

std::shared_ptr<const Schema> Replica::schema() const {
  std::lock_guard lock(schema_mutex_);
  return schema_;
}

void Replica::SetSchema(std::shared_ptr<const Schema> schema) {
  std::lock_guard lock(schema_mutex_);
  schema_version_.store(schema->version, std::memory_order_release);
  schema_ = std::move(schema);
}

}  // namespace orrery::partition
