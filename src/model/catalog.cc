#include "model/catalog.h"

#include "base/log.h"

namespace orrery::model {

using runtime::Task;
using storage::Space;

namespace {

constexpr size_t kOutcomesMax = 1000;
constexpr uint8_t kOutcomesVersion = 1;
// How long a change is tried, and how long it is waited for until it shows here.
constexpr Duration kExecuteMax = std::chrono::seconds(10);
constexpr Duration kShowMax = std::chrono::seconds(5);
constexpr Duration kPauseFirst = std::chrono::milliseconds(10);
constexpr Duration kPauseMax = std::chrono::milliseconds(500);
constexpr Duration kShowPauseFirst = std::chrono::milliseconds(1);
constexpr Duration kShowPauseMax = std::chrono::milliseconds(20);

// Another try may do better.
bool IsOpen(Code code) {
  return code == Code::kNotLeader || code == Code::kUnavailable || code == Code::kUnknownOutcome;
}

}  // namespace

Catalog::Catalog(replication::ReplicaSet& meta, runtime::WorkerPool& workers, const Clock& clock,
                 Random& random, CatalogLimits limits)
    : meta_(meta),
      workers_(workers),
      worker_(workers.at(0)),
      clock_(clock),
      random_(random),
      limits_(limits) {
  SetView(std::make_shared<const CatalogView>());
  meta_.SetListener(this);
}

Status Catalog::Load(storage::Engine& state, WallTime last_time,
                     const std::vector<RecoveredOutcome>& outcomes,
                     const std::vector<std::string>& earlier) {
  state_ = &state;
  auto view = LoadView(state);
  if (!view) {
    return view.error();
  }
  last_time_ = last_time;
  for (const std::string& bytes : earlier) {
    if (!bytes.empty() && !DecodeOutcomes(bytes)) {
      return Status(Code::kCorruption, "malformed outcomes of changes of the catalog");
    }
  }
  for (const RecoveredOutcome& outcome : outcomes) {
    Remember(outcome.id, outcome.lsn, outcome.result);
  }
  std::lock_guard lock(view_mutex_);
  SetView(std::move(*view));
  applied_.store(meta_.applied().value(), std::memory_order_release);
  return Status::Ok();
}

void Catalog::Stop() {
  stopping_ = true;
  gate_.Close();
}

// --- views ---------------------------------------------------------------------------------------

void Catalog::SetView(std::shared_ptr<const CatalogView> view) {
  // Unique in the process, so that no thread takes the view of another catalog for its own.
  static std::atomic<uint64_t> next_version = 1;
  view_ = std::move(view);
  view_version_.store(next_version.fetch_add(1), std::memory_order_release);
}

// Each thread keeps the view it saw last, so that a look-up takes no lock while nothing changes.
std::shared_ptr<const CatalogView> Catalog::view() const {
  struct Cached {
    uint64_t version = 0;
    std::shared_ptr<const CatalogView> view;
  };
  thread_local Cached cached;
  uint64_t version = view_version_.load(std::memory_order_acquire);
  if (cached.version != version) {
    std::lock_guard lock(view_mutex_);
    cached = {view_version_.load(std::memory_order_relaxed), view_};
  }
  return cached.view;
}

partition::Ring Catalog::FindRing(ContainerId container) const {
  auto found = view()->FindContainer(container);
  return found == nullptr ? partition::Ring{} : found->ring();
}

void Catalog::Publish(std::shared_ptr<const CatalogView> next, Lsn lsn) {
  CatalogDifference difference = Compare(*view(), *next);
  // Before the view names them: a request must not find a container without its partitions.
  for (CatalogListener* listener : listeners_) {
    for (const auto& container : difference.created) {
      if (auto database = next->FindDatabase(container->database_name)) {
        listener->OnCreated(container, *database);
      }
    }
    for (const auto& container : difference.changed) {
      auto before = view()->FindContainer(container->id);
      auto database = next->FindDatabase(container->database_name);
      if (before != nullptr && database != nullptr &&
          !std::ranges::equal(before->map->ranges(), container->map->ranges())) {
        listener->OnReshaped(before, container, *database);
      }
    }
    if (!difference.placed.empty()) {
      listener->OnPlaced(*next, difference.placed);
    }
  }
  {
    std::lock_guard lock(view_mutex_);
    SetView(next);
  }
  applied_.store(lsn.value(), std::memory_order_release);
  for (CatalogListener* listener : listeners_) {
    for (const auto& container : difference.changed) {
      if (auto database = next->FindDatabase(container->database_name)) {
        listener->OnChanged(container, *database);
      }
    }
    for (const auto& container : difference.dropped) {
      listener->OnDropped(container->id, PartitionsOf(*container));
    }
    if (!difference.unplaced.empty()) {
      listener->OnUnplaced(difference.unplaced);
    }
    if (difference.nodes) {
      listener->OnNodesChanged(*next);
    }
    if (difference.keys) {
      listener->OnKeysChanged(next->keys);
    }
  }
}

// --- what was applied ----------------------------------------------------------------------------

void Catalog::Remember(const storage::OperationId& id, Lsn lsn, std::string_view result) {
  if (id == storage::OperationId()) {
    return;
  }
  if (outcomes_.insert_or_assign(id, Remembered{lsn, std::string(result)}).second) {
    outcome_order_.push_back(id);
  }
  if (outcome_order_.size() > kOutcomesMax) {
    outcomes_.erase(outcome_order_.front());
    outcome_order_.pop_front();
  }
}

std::string Catalog::Outcomes() const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(kOutcomesVersion);
  encoder.U64(static_cast<uint64_t>(last_time_.micros));
  for (const storage::OperationId& id : outcome_order_) {
    const Remembered& outcome = outcomes_.at(id);
    encoder.U64(id.high);
    encoder.U64(id.low);
    encoder.U64(outcome.lsn.value());
    encoder.Bytes(outcome.result);
  }
  return bytes;
}

bool Catalog::DecodeOutcomes(std::string_view bytes) {
  Decoder decoder(bytes);
  if (decoder.U8() != kOutcomesVersion) {
    return false;
  }
  last_time_ = std::max(last_time_, WallTime{static_cast<int64_t>(decoder.U64())});
  while (decoder.ok() && decoder.left() > 0) {
    storage::OperationId id{.high = decoder.U64(), .low = decoder.U64()};
    Lsn lsn(decoder.U64());
    std::string_view result = decoder.Bytes();
    if (decoder.ok()) {
      Remember(id, lsn, result);
    }
  }
  return decoder.ok();
}

void Catalog::Break(const Status& why) {
  log::Error("the catalog cannot be followed any more", {{"why", why.ToString()}});
  broken_ = why;
}

void Catalog::OnApplied(Lsn lsn, const storage::WriteSetView& set) {
  last_time_ = std::max(last_time_, set.time);
  Remember(set.id, lsn, set.result);
  Applied applied{.lsn = lsn};
  Status status = set.ForEach([&applied](const storage::WriteSetChange& change) {
    if (change.space == Space::kCatalog) {
      applied.records.push_back(
          {std::string(change.key), std::optional<std::string>(change.value)});
    }
  });
  if (!status.ok()) {
    Break(status);
  }
  if (!broken_.ok()) {
    return;
  }
  if (loading_) {
    while_loading_.push_back(std::move(applied));
    return;
  }
  if (applied.records.empty()) {
    applied_.store(lsn.value(), std::memory_order_release);
    return;
  }
  auto next = std::make_shared<CatalogView>(*view());
  for (const RecordChange& record : applied.records) {
    if (status = ApplyRecord(*next, record.key, record.value); !status.ok()) {
      Break(status);
      return;
    }
  }
  Publish(std::move(next), lsn);
}

void Catalog::OnReplaced() {
  outcomes_.clear();
  outcome_order_.clear();
  if (const std::string& extra = meta_.extra(); !extra.empty() && !DecodeOutcomes(extra)) {
    log::Warning("a snapshot of the catalog came with malformed outcomes of changes");
  }
  broken_ = Status::Ok();
  ++load_number_;
  while_loading_ = {{.lsn = meta_.applied(), .records = {}}};
  if (loading_) {
    return;
  }
  if (auto pass = gate_.Enter()) {
    loading_ = true;
    worker_.Spawn(Reload(std::move(pass)));
  }
}

Task<> Catalog::Reload(runtime::Gate::Pass pass) {
  Result<std::shared_ptr<CatalogView>> loaded = Error(Code::kInternal);
  uint64_t number = 0;
  do {
    number = load_number_;
    auto load = [this] { return LoadView(*state_); };
    loaded = co_await runtime::OnBlocking(workers_, load);
  } while (number != load_number_);  // another snapshot came meanwhile
  loading_ = false;
  std::vector<Applied> meanwhile = std::exchange(while_loading_, {});
  Status status = loaded ? broken_ : loaded.error();
  // The records may have been read with a part of these; the last change of each decides.
  for (const Applied& applied : meanwhile) {
    for (const RecordChange& record : applied.records) {
      if (status.ok()) {
        status = ApplyRecord(**loaded, record.key, record.value);
      }
    }
  }
  if (!status.ok()) {
    Break(status);
    co_return;
  }
  Publish(std::move(*loaded), meanwhile.back().lsn);
}

void Catalog::OnLeading(bool leads) {
  // A new leader has applied all that it will ever find in its log.
  doubtful_ = doubtful_ && !leads;
}

// --- changes -------------------------------------------------------------------------------------

WallTime Catalog::NextTime() {
  last_time_ = {std::max(clock_.Wall().micros, last_time_.micros + 1)};
  return last_time_;
}

Task<Result<ChangeResult>> Catalog::EvaluateHere(const CatalogChange& change) {
  auto guard = co_await latches_.Acquire({partition::Latch{.name = 1}});
  if (!meta_.leads()) {
    co_return Error(Code::kNotLeader, "this node does not lead the catalog");
  }
  if (!broken_.ok()) {
    co_return Error(broken_);
  }
  if (loading_) {
    co_return Error(Code::kUnavailable, "the catalog is being read");
  }
  ORRERY_CO_TRY_STATUS(co_await Settle());
  if (auto found = outcomes_.find(change.id); found != outcomes_.end()) {
    ORRERY_CO_TRY(ChangeOutcome outcome, ChangeOutcome::Decode(found->second.result));
    co_return ResultOf(outcome, found->second.lsn);
  }
  uint64_t term = meta_.term();
  auto view = this->view();
  CatalogCounters next = view->next;
  next.RaiseTo(given_);
  ClusterHealth health = health_ ? health_() : ClusterHealth();
  EvaluationInput input{.view = *view,
                        .next = next,
                        .limits = limits_,
                        .now = NextTime(),
                        .health = health,
                        .random = random_};
  Result<Evaluated> evaluated = Evaluate(change, input);
  if (evaluated && !evaluated->set.empty()) {
    co_return co_await Commit(std::move(*evaluated), term);
  }
  // It says something about the catalog: it must not come from an old leader.
  ORRERY_CO_TRY_STATUS(co_await meta_.ReadBarrier());
  if (!evaluated) {
    co_return Error(evaluated.error());
  }
  co_return ResultOf(evaluated->outcome, applied());
}

Task<Status> Catalog::Settle() {
  if (!doubtful_) {
    co_return Status::Ok();
  }
  storage::WriteSet nothing;
  nothing.time = NextTime();
  Result<Lsn> lsn = co_await meta_.Commit(std::move(nothing), meta_.term());
  if (!lsn) {
    co_return Status(lsn.error().code() == Code::kNotLeader ? Code::kNotLeader : Code::kUnavailable,
                     lsn.error().message());
  }
  doubtful_ = false;
  co_return Status::Ok();
}

Task<Result<ChangeResult>> Catalog::Commit(Evaluated evaluated, uint64_t term) {
  given_.RaiseTo(evaluated.next);
  Result<Lsn> lsn = co_await meta_.Commit(std::move(evaluated.set), term);
  if (!lsn) {
    doubtful_ = doubtful_ || lsn.error().code() == Code::kUnknownOutcome;
    co_return Error(lsn.error());
  }
  co_return ResultOf(evaluated.outcome, *lsn);
}

Result<ChangeResult> Catalog::ResultOf(const ChangeOutcome& outcome, Lsn lsn) const {
  auto view = this->view();
  ChangeResult result{.lsn = lsn};
  switch (outcome.kind) {
    case ChangeKind::kCreateDatabase:
    case ChangeKind::kDefineDatabase:
      result.database = view->FindDatabase(DatabaseId(outcome.id));
      break;
    case ChangeKind::kCreateContainer:
    case ChangeKind::kReplaceContainer:
    case ChangeKind::kRenewContainer:
      result.container = view->FindContainer(ContainerId(outcome.id));
      break;
    case ChangeKind::kChangeKeys: result.keys = view->keys; break;
    case ChangeKind::kAddNode: {
      NodeId node(outcome.id);
      auto meta = view->FindPlacement(GroupId(0));
      const PlacedReplica* replica = meta == nullptr ? nullptr : meta->Find(node);
      Joined joined{.cluster = view->cluster,
                    .node = node,
                    .meta_replica = replica == nullptr ? ReplicaId() : replica->replica};
      for (const auto& [id, record] : view->nodes) {
        joined.nodes.push_back(*record);
      }
      result.joined = std::move(joined);
      break;
    }
    default: break;
  }
  return result;
}

Task<Result<ChangeResult>> Catalog::Try(const CatalogChange& change, bool here) {
  if (here) {
    auto run = [this, &change] { return EvaluateHere(change); };
    co_return co_await runtime::OnWorker(worker_, run);
  }
  if (!forward_) {
    co_return Error(Code::kNotLeader, "this node does not lead the catalog");
  }
  ORRERY_CO_TRY(std::string answer, co_await forward_(change.Encode()));
  co_return DecodeAnswer(answer);
}

Task<Result<ChangeResult>> Catalog::Execute(CatalogChange change) {
  if (change.id == storage::OperationId()) {
    change.id.high = random_.Next();
    change.id.low = random_.Next();
  }
  const Instant began = clock_.Now();
  Duration waited{};  // counts also if the clock stands still
  Duration pause = kPauseFirst;
  bool maybe_done = false;
  for (;;) {
    bool here = meta_.leads();
    Result<ChangeResult> result = co_await Try(change, here);
    if (result) {
      if (!here) {
        co_await WaitApplied(result->lsn);
      }
      co_return result;
    }
    Code code = result.error().code();
    maybe_done = maybe_done || code == Code::kUnknownOutcome;
    Duration elapsed = std::max(waited, clock_.Now() - began);
    if (!IsOpen(code) || !forward_ || stopping_ || elapsed + pause > kExecuteMax) {
      if (IsOpen(code) && maybe_done) {
        co_return Error(Code::kUnknownOutcome, result.error().message());
      }
      co_return result;
    }
    co_await runtime::Sleep(pause);
    waited += pause;
    pause = std::min(2 * pause, kPauseMax);
  }
}

Task<> Catalog::WaitApplied(Lsn lsn) {
  Duration pause = kShowPauseFirst;
  for (Duration waited{}; applied() < lsn && waited < kShowMax && !stopping_; waited += pause) {
    pause = std::min(2 * pause, kShowPauseMax);
    co_await runtime::Sleep(pause);
  }
}

Task<std::string> Catalog::HandleForwarded(std::string bytes) {
  Result<CatalogChange> change = CatalogChange::Decode(bytes);
  if (change && change->id == storage::OperationId()) {
    change = Error(Code::kInvalidArgument, "change of the catalog has no id");
  }
  if (!change) {
    co_return EncodeAnswer(Error(change.error()));
  }
  Result<ChangeResult> result = co_await Try(*change, true);
  co_return EncodeAnswer(result);
}

// --- each change ---------------------------------------------------------------------------------

Task<Status> Catalog::ExecuteStatus(CatalogChange::What what) {
  CatalogChange wanted{.id = {}, .what = std::move(what)};
  Result<ChangeResult> result = co_await Execute(std::move(wanted));
  co_return result ? Status::Ok() : result.error();
}

Catalog::Change<Database> Catalog::CreateDatabase(std::string name, ThroughputRequest throughput) {
  CatalogChange wanted{.id = {}, .what = change::CreateDatabase{std::move(name), throughput}};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  if (result.database == nullptr) {
    co_return Error(Code::kNotFound, "The database was made and dropped again.");
  }
  co_return result.database;
}

Catalog::Change<Database> Catalog::DefineDatabase(change::DefineDatabase change) {
  CatalogChange wanted{.id = {}, .what = std::move(change)};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  if (result.database == nullptr) {
    co_return Error(Code::kNotFound, "The database was made and dropped again.");
  }
  co_return result.database;
}

Task<Status> Catalog::DropDatabase(std::string name, std::string if_match) {
  change::DropDatabase drop{std::move(name), std::move(if_match)};
  co_return co_await ExecuteStatus(std::move(drop));
}

Catalog::Change<Container> Catalog::CreateContainer(std::string database,
                                                    types::Document definition,
                                                    ThroughputRequest throughput) {
  CatalogChange wanted{
      .id = {},
      .what = change::CreateContainer{std::move(database), std::move(definition), throughput}};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  if (result.container == nullptr) {
    co_return Error(Code::kNotFound, "The container was made and dropped again.");
  }
  co_return result.container;
}

Catalog::Change<Container> Catalog::ReplaceContainer(std::string link, types::Document definition,
                                                     std::string if_match) {
  CatalogChange wanted{.id = {},
                       .what = change::ReplaceContainer{std::move(link), std::move(definition),
                                                        std::move(if_match)}};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  if (result.container == nullptr) {
    co_return Error(Code::kNotFound, "The container was replaced and dropped again.");
  }
  co_return result.container;
}

Catalog::Change<Container> Catalog::RenewContainer(std::string link, types::Document definition,
                                                   std::string if_match) {
  CatalogChange wanted{
      .id = {},
      .what = change::RenewContainer{std::move(link), std::move(definition), std::move(if_match)}};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  if (result.container == nullptr) {
    co_return Error(Code::kNotFound, "The container was made anew and dropped again.");
  }
  co_return result.container;
}

Task<Status> Catalog::DropContainer(std::string link, std::string if_match) {
  change::DropContainer drop{std::move(link), std::move(if_match)};
  co_return co_await ExecuteStatus(std::move(drop));
}

Task<Status> Catalog::ReplaceOffer(uint32_t number, ThroughputRequest throughput,
                                   std::string if_match) {
  change::ReplaceOffer replace{number, throughput, std::move(if_match)};
  co_return co_await ExecuteStatus(std::move(replace));
}

Task<Status> Catalog::ReplaceOffer(change::ReplaceOffer change) {
  co_return co_await ExecuteStatus(std::move(change));
}

Task<Result<AccountKeys>> Catalog::ChangeKeys(std::vector<KeyChange> keys) {
  CatalogChange wanted{.id = {}, .what = change::ChangeKeys{std::move(keys)}};
  ORRERY_CO_TRY(ChangeResult result, co_await Execute(std::move(wanted)));
  co_return result.keys.value_or(AccountKeys());
}

Task<Status> Catalog::Cleared(ContainerId container) {
  change::Cleared cleared{container};
  co_return co_await ExecuteStatus(std::move(cleared));
}

Task<Status> Catalog::ChangeNode(change::ChangeNode node) {
  co_return co_await ExecuteStatus(std::move(node));
}

Task<Status> Catalog::SetPlacements(std::vector<PlacementChange> placements) {
  change::SetPlacements set{std::move(placements)};
  co_return co_await ExecuteStatus(std::move(set));
}

Task<Status> Catalog::BeginReshape(ContainerId container, std::vector<PartitionId> parents,
                                   types::Epk cut) {
  change::BeginReshape begin{container, std::move(parents), std::move(cut)};
  co_return co_await ExecuteStatus(std::move(begin));
}

Task<Status> Catalog::FinishReshape(change::FinishReshape change) {
  co_return co_await ExecuteStatus(std::move(change));
}

Task<Status> Catalog::AbortReshape(ContainerId container, PartitionId name) {
  change::AbortReshape abort{container, name};
  co_return co_await ExecuteStatus(std::move(abort));
}

Task<Status> Catalog::PauseBalancer(bool paused) {
  change::PauseBalancer pause{paused};
  co_return co_await ExecuteStatus(std::move(pause));
}

Task<Status> Catalog::PutRoles(types::Document roles, std::string if_match) {
  change::PutRoles put{std::move(roles), std::move(if_match)};
  co_return co_await ExecuteStatus(std::move(put));
}

}  // namespace orrery::model
