#include "model/reshaper.h"

#include <algorithm>

#include "base/kill_point.h"
#include "base/log.h"

namespace orrery::model {

using partition::CutFinder;
using partition::FreezeMark;
using partition::Replica;

namespace {

constexpr Duration kThawInterval = std::chrono::seconds(1);
constexpr Duration kPollPause = std::chrono::milliseconds(2);
constexpr int64_t kGatherSpeed = 1 << 20;  // bytes a second that a move has at the least
constexpr size_t kSliceBytes = 4 << 20;    // of a walk, before it rests
constexpr int kWalkRest = 2;               // times what the slice took
constexpr Duration kWalkRestMost = std::chrono::milliseconds(200);

// A walk over the items of a partition, as they were at one moment.
struct Walk {
  std::shared_ptr<const storage::Snapshot> snapshot;
  storage::KeySpan span;
  std::function<bool(std::string_view epk, int64_t bytes)> visit;  // false: enough
  bool done = false;
};

// Visits the next items.
Status WalkOn(storage::Engine& state, Walk& walk) {
  auto at = state.NewIterator(storage::Index(storage::Space::kItems), walk.span.begin,
                              walk.span.end, walk.snapshot.get(), storage::ReadMode::kPassing);
  size_t bytes = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    if (bytes > kSliceBytes) {
      walk.span.begin = at->key();
      return at->status();
    }
    types::Epk epk;
    if (!storage::ReadItemEpk(at->key(), &epk)) {
      return Status(Code::kCorruption, "the key of an item is malformed");
    }
    size_t size = at->key().size() + at->value().size();
    bytes += size;
    if (!walk.visit(epk, static_cast<int64_t>(size))) {
      break;
    }
  }
  walk.done = true;
  return at->status();
}

// To its end, a slice at a time. In between it rests for longer than it worked: it may take a
// while, but clients should not notice it.
runtime::Task<Status> WalkAll(storage::Engine& state, Walk& walk, runtime::WorkerPool& workers,
                              const Clock& clock, const std::atomic<bool>& stopping) {
  while (!stopping) {
    const Instant begun = clock.Now();
    auto step = [&] { return WalkOn(state, walk); };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(workers, step));
    if (walk.done) {
      co_return Status::Ok();
    }
    co_await runtime::Sleep(std::min(kWalkRest * (clock.Now() - begun), kWalkRestMost));
  }
  co_return Status(Code::kUnavailable, "the node is stopping");
}

bool HoldAll(const FreezePartition::Answer& answer) {
  return answer.holders.size() == answer.voters.size();
}

bool MajorityHolds(const FreezePartition::Answer& answer) {
  return answer.voters.empty() || answer.holders.size() > answer.voters.size() / 2;
}

std::set<NodeId> Nodes(const std::vector<NodeId>& list) { return {list.begin(), list.end()}; }

}  // namespace

Reshaper::Reshaper(Catalog& catalog, storage::Store& store, runtime::WorkerPool& workers,
                   const Clock& clock, partition::ReplicaTable& replicas, ReshaperOptions options)
    : catalog_(catalog),
      store_(store),
      workers_(workers),
      clock_(clock),
      replicas_(replicas),
      options_(options) {}

void Reshaper::Start() { workers_.at(0).Spawn(Run(gate_.Enter())); }

void Reshaper::Stop() {
  stopping_ = true;
  gate_.Close();
}

runtime::Task<> Reshaper::Run(runtime::Gate::Pass pass) {
  while (!stopping_) {
    Look();
    co_await runtime::Sleep(options_.look_interval);
  }
}

void Reshaper::Look() {
  auto view = catalog_.view();
  if (view != looked_at_ || !since_.empty()) {
    looked_at_ = view;
    LookForWork(*view);
  }
  if (clock_.Now() >= next_thaws_) {
    next_thaws_ = clock_.Now() + kThawInterval;
    LookForThaws(*view);
  }
}

// Changes of which this node leads the first parent.
void Reshaper::LookForWork(const CatalogView& view) {
  std::set<PartitionId> names;
  for (const auto& [id, container] : view.containers_by_id) {
    for (const Reshape& reshape : container->reshapes) {
      names.insert(reshape.name());
      Instant since = since_.try_emplace(reshape.name(), clock_.Now()).first->second;
      auto replica = replicas_.Find(reshape.parents.front());
      if (replica == nullptr || !replica->set().leads()) {
        FlushFor(reshape);
        continue;
      }
      if (running_.contains(reshape.name())) {
        continue;
      }
      if (auto pass = gate_.Enter()) {
        running_.insert(reshape.name());
        workers_.at(0).Spawn(
            Drive({container, reshape, since}, std::move(replica), std::move(pass)));
      }
    }
  }
  std::erase_if(since_, [&](const auto& one) { return !names.contains(one.first); });
}

// The heirs begin with a state that is on disk, on each node, while everybody waits: what is
// written before that does not have to be written then.
void Reshaper::FlushFor(const Reshape& reshape) {
  if (reshape.name() <= flushed_) {
    return;
  }
  flushed_ = reshape.name();
  auto here = [this](PartitionId id) { return replicas_.Find(id) != nullptr; };
  if (auto pass = gate_.Enter(); pass && std::ranges::any_of(reshape.parents, here)) {
    auto flush = [](storage::Store& store, runtime::WorkerPool& workers,
                    runtime::Gate::Pass pass) -> runtime::Task<> {
      auto write = [&store] { return store.state().Flush(); };
      IgnoreError(co_await runtime::OnBlocking(workers, write), "it is done when it must be");
    };
    workers_.at(0).Spawn(flush(store_, workers_, std::move(pass)));
  }
}

// Partitions that wait for a change that was called off. A catalog that is older than the change
// says nothing about it.
void Reshaper::LookForThaws(const CatalogView& view) {
  for (const auto& replica : replicas_.All()) {
    if (!replica->is_frozen() || !replica->set().leads() || running_.contains(replica->id())) {
      continue;
    }
    auto container = view.FindContainer(replica->container());
    const partition::PartitionRange* range =
        container == nullptr ? nullptr : container->map->FindId(replica->id());
    if (range == nullptr || &container->map->Find(range->range.min) != range) {
      continue;  // its heirs are there
    }
    if (auto pass = gate_.Enter()) {
      running_.insert(replica->id());
      workers_.at(0).Spawn(Thaw(replica, std::move(pass)));
    }
  }
}

runtime::Task<> Reshaper::Thaw(std::shared_ptr<Replica> replica, runtime::Gate::Pass pass) {
  auto thaw = [this, replica]() -> runtime::Task<Status> {
    Result<Replica::Turn> turn = co_await replica->AcquireAll();
    auto mark = FreezeMark::Decode(replica->frozen());
    if (!turn || !mark) {
      co_return Status::Ok();
    }
    auto view = catalog_.view();
    auto container = view->FindContainer(replica->container());
    // Also of a split: an abort of one that led before may come when the next one has frozen it.
    // The catalog does not take its end any more, so there will be no heirs.
    if (mark->heir.value() >= view->next.partition || container == nullptr ||
        container->map->FindId(mark->heir) != nullptr ||
        std::ranges::find(container->reshapes, mark->heir, &Reshape::name) !=
            container->reshapes.end()) {
      co_return Status::Ok();
    }
    storage::WriteSet set;
    set.frozen = "";
    set.frees_space = true;
    set.time = replica->NextTime();
    Result<Lsn> lsn = co_await replica->Commit(std::move(set), *turn);
    co_return lsn ? Status::Ok() : lsn.error();
  };
  Status status = co_await runtime::OnWorker(replica->worker(), thaw);
  if (!status.ok()) {
    log::Debug("a partition could not go on yet", {{"why", status.ToString()}});
  }
  running_.erase(replica->id());
}

runtime::Task<> Reshaper::Drive(Task task, std::shared_ptr<Replica> replica,
                                runtime::Gate::Pass pass) {
  auto work = [this, &task, &replica] {
    return task.reshape.splits() ? Split(task, *replica) : Merge(task, *replica);
  };
  Status status = co_await runtime::OnWorker(replica->worker(), work);
  replica.reset();
  const PartitionId name = task.reshape.name();
  if (status.ok()) {
    ++(task.reshape.splits() ? counters_.splits : counters_.merges);
    log::Info(task.reshape.splits() ? "a partition is split" : "partitions are merged",
              {{"container", task.container->link},
               {"parent", task.reshape.parents.front().ToString()},
               {"heir", name.ToString()}});
  } else if (status.code() == Code::kForbidden) {
    log::Warning(
        "a change of partitions is called off",
        {{"partition", task.reshape.parents.front().ToString()}, {"why", status.message()}});
    status = co_await catalog_.AbortReshape(task.container->id, name);
    if (status.ok()) {
      ++(task.reshape.splits() ? counters_.splits_called_off : counters_.merges_called_off);
    }
    next_thaws_ = clock_.Now();
  }
  if (!status.ok()) {
    log::Debug("a change of partitions waits", {{"why", status.ToString()}});
    co_await runtime::Sleep(std::chrono::milliseconds(50));
  }
  running_.erase(name);
}

// Split -------------------------------------------------------------------------------------------

runtime::Task<Status> Reshaper::Split(const Task& task, Replica& replica) {
  if (replica.frozen().empty()) {
    types::Epk cut = task.reshape.cut;
    const bool known = !cut.empty();
    Status frozen = co_await FreezeAt(task, replica, cut);
    if (frozen.code() == Code::kUnavailable && !known && !cut.empty()) {
      // Where it is cut is known now: then any number of changes can be told apart.
      frozen = co_await FreezeAt(task, replica, cut);
    }
    ORRERY_CO_RETURN_IF_ERROR(frozen);
  }
  co_return co_await FinishSplit(task, replica);
}

// What a state of the partition really holds.
runtime::Task<Result<storage::Totals>> Reshaper::Count(
    const Task& task, Replica& replica, std::shared_ptr<const storage::Snapshot> state) {
  storage::Totals all;
  Walk walk{.snapshot = std::move(state),
            .span = storage::ItemSpan(task.container->id, replica.range().range)};
  walk.visit = [&](std::string_view, int64_t bytes) {
    all.bytes += bytes;
    all.items += 1;
    return true;
  };
  ORRERY_CO_TRY_STATUS(co_await WalkAll(replica.state(), walk, workers_, clock_, stopping_));
  co_return all;
}

// Where the partition is cut, and what lies before that place in a state of so much.
runtime::Task<Result<CutFinder::Cut>> Reshaper::FindCut(
    const Task& task, Replica& replica, storage::Totals totals, types::Epk given,
    std::shared_ptr<const storage::Snapshot> state) {
  const types::EpkRange& range = replica.range().range;
  types::Epk middle = types::MiddleOf(task.container->key, range);
  CutFinder finder(totals.bytes, middle);
  storage::Totals before;  // a place that was given
  Walk walk{.snapshot = std::move(state), .span = storage::ItemSpan(task.container->id, range)};
  walk.visit = [&](std::string_view epk, int64_t bytes) {
    if (given.empty()) {
      return task.container->is_table() ? finder.Add(types::TokenEpk(types::TokenOf(epk)), bytes)
                                        : finder.Add(epk, bytes);
    }
    before.bytes += epk < given ? bytes : 0;
    before.items += epk < given ? 1 : 0;
    return epk < given;
  };
  ORRERY_CO_TRY_STATUS(co_await WalkAll(replica.state(), walk, workers_, clock_, stopping_));
  if (!given.empty()) {
    co_return CutFinder::Cut{given, before};
  }
  if (std::optional<CutFinder::Cut> cut = finder.Finish()) {
    co_return *cut;
  }
  bool full = static_cast<double>(totals.bytes) >= options_.partition_bytes / 2;
  if (full || middle <= range.min) {
    co_return Error(Code::kForbidden, "one logical partition holds nearly all of it");
  }
  co_return finder.Middle();
}

// `place`: where it is cut; if it is empty, that is looked for and filled in. kUnavailable: too
// much has changed meanwhile.
runtime::Task<Status> Reshaper::FreezeAt(const Task& task, Replica& replica, types::Epk& place) {
  storage::Totals totals;
  uint64_t term = 0;
  std::shared_ptr<const storage::Snapshot> state;
  {
    Result<Replica::Turn> turn = co_await replica.AcquireAll();
    if (!turn) {
      co_return turn.error();
    }
    term = turn->term;
    totals = replica.totals();
    state = replica.state().NewSnapshot();
    replica.BeginWatch(options_.watched_max, place);
  }
  // Writes of a table do not look at what is there, and are counted as if nothing had been.
  Result<storage::Totals> counted = totals;
  if (task.container->is_table()) {
    counted = co_await Count(task, replica, state);
  }
  Result<CutFinder::Cut> cut =
      counted ? co_await FindCut(task, replica, *counted, place, std::move(state))
              : Error(counted.error());
  // What is on disk now does not have to be written while everybody waits.
  auto flush = [&replica] { return replica.state().Flush(); };
  IgnoreError(co_await runtime::OnBlocking(workers_, flush), "it is done when it must be");
  Result<Replica::Turn> turn = co_await replica.AcquireAll();
  Result<storage::Totals> changed = replica.EndWatch(cut ? cut->place : types::Epk());
  place = cut ? cut->place : place;
  if (!cut || !turn || !changed) {
    co_return !cut ? cut.error() : !turn ? turn.error() : changed.error();
  }
  if (turn->term != term) {
    co_return Status(Code::kUnavailable, "the leader has changed meanwhile");
  }
  storage::Totals now = replica.totals();
  now.bytes += counted->bytes - totals.bytes;
  now.items += counted->items - totals.items;
  storage::Totals left{cut->left.bytes + changed->bytes, cut->left.items + changed->items};
  KillPoint("split.begun");
  FreezeMark mark{.heir = task.reshape.name(),
                  .cut = cut->place,
                  .left = left,
                  .right = {now.bytes - left.bytes, now.items - left.items}};
  storage::WriteSet set;
  set.frozen = mark.Encode();
  set.frees_space = true;
  if (task.container->is_table()) {
    if (Result<int64_t> horizon = co_await replica.horizon().Read(); !horizon) {
      co_return horizon.error();
    }
    replica.horizon().AddForHeir(set, cut->place);
  }
  set.time = replica.NextTime();
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  co_return lsn ? Status::Ok() : lsn.error();
}

runtime::Task<Status> Reshaper::FinishSplit(const Task& task, Replica& replica) {
  auto mark = FreezeMark::Decode(replica.frozen());
  if (!mark || mark->heir != task.reshape.name() || mark->cut.empty()) {
    co_return Status(Code::kUnavailable, "another change is under way");
  }
  Instant until = clock_.Now() + options_.holders_wait;
  Result<FreezePartition::Answer> end = FreezePartition::Look(replica);
  while (!stopping_ && (!end || !HoldAll(*end)) && clock_.Now() < until) {
    co_await runtime::Sleep(kPollPause);
    end = FreezePartition::Look(replica);
  }
  if (!end || !MajorityHolds(*end)) {
    co_return end ? Status(Code::kUnavailable, "too few replicas have all of it") : end.error();
  }
  KillPoint("split.frozen");
  change::FinishReshape finish{.container = task.container->id,
                               .name = task.reshape.name(),
                               .cut = mark->cut,
                               .parents = {end->end},
                               .heirs = {end->record, end->record},
                               .nodes = end->voters};
  finish.heirs[0].totals = mark->left;
  finish.heirs[1].totals = mark->right;
  if (!replica.set().replicated()) {
    auto found = [&] {
      return store_.FoundLocal({{GroupId(task.reshape.heirs[0].value()), finish.heirs[0]},
                                {GroupId(task.reshape.heirs[1].value()), finish.heirs[1]}});
    };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(workers_, found));
    inherit_(task.reshape.heirs[0], end->outcomes);
    inherit_(task.reshape.heirs[1], end->outcomes);
    KillPoint("split.founded");
  }
  Status status = co_await catalog_.FinishReshape(std::move(finish));
  KillPoint("split.finished");
  co_return status;
}

// Merge -------------------------------------------------------------------------------------------

runtime::Task<Status> Reshaper::Merge(const Task& task, Replica& left) {
  const PartitionId name = task.reshape.name();
  if (left.frozen().empty()) {
    // Before anybody has to wait: the replicas of both on the same nodes.
    Result<FreezePartition::Answer> right = co_await AskRight(task, false);
    Result<FreezePartition::Answer> here = FreezePartition::Look(left);
    if (!right || !here) {
      co_return right ? here.error() : right.error();
    }
    if (Nodes(right->voters) != Nodes(here->voters)) {
      co_return co_await Gather(task, right->record.totals.bytes);
    }
    ORRERY_CO_RETURN_IF_ERROR(co_await WaitForAll(task, left));
    auto flush = [this] { return store_.state().Flush(); };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(workers_, flush));
  }
  KillPoint("merge.begun");
  ORRERY_CO_RETURN_IF_ERROR(co_await FreezePartition::Freeze(left, name));
  KillPoint("merge.left_frozen");
  Instant until = clock_.Now() + options_.freeze_max;
  while (!stopping_ && clock_.Now() < until) {
    Result<FreezePartition::Answer> right = co_await AskRight(task, true);
    Result<FreezePartition::Answer> here = FreezePartition::Look(left);
    if (right && here && right->frozen && HoldAll(*right) && HoldAll(*here) &&
        Nodes(right->voters) == Nodes(here->voters)) {
      KillPoint("merge.frozen");
      co_return co_await FinishMerge(task, *here, *right);
    }
    co_await runtime::Sleep(kPollPause);
  }
  co_return Status(stopping_ ? Code::kUnavailable : Code::kForbidden,
                   "the replicas of the two are not all up to date");
}

// All replicas of both must take part: with one that is dead nobody has to wait in vain. While
// there are writes one or the other is always a little behind, so each counts that held all once.
runtime::Task<Status> Reshaper::WaitForAll(const Task& task, Replica& left) {
  std::set<NodeId> of_left;
  std::set<NodeId> of_right;
  const Instant until = clock_.Now() + options_.freeze_max;
  while (!stopping_) {
    Result<FreezePartition::Answer> right = co_await AskRight(task, false);
    Result<FreezePartition::Answer> here = FreezePartition::Look(left);
    if (right && here) {
      of_left.insert(here->holders.begin(), here->holders.end());
      of_right.insert(right->holders.begin(), right->holders.end());
      if (std::ranges::includes(of_left, Nodes(here->voters)) &&
          std::ranges::includes(of_right, Nodes(right->voters))) {
        co_return Status::Ok();
      }
    }
    if (clock_.Now() >= until) {
      co_return Status(Code::kForbidden, "the replicas of the two are not all there");
    }
    co_await runtime::Sleep(kPollPause);
  }
  co_return Status(Code::kUnavailable, "the node is stopping");
}

// Has the replicas of the right one move to where those of the left one are.
runtime::Task<Status> Reshaper::Gather(const Task& task, int64_t bytes) {
  auto view = catalog_.view();
  auto left = view->FindPlacement(GroupId(task.reshape.parents[0].value()));
  auto right = view->FindPlacement(GroupId(task.reshape.parents[1].value()));
  if (left == nullptr || right == nullptr) {
    co_return Status(Code::kUnavailable, "the placement of the partitions is not known here");
  }
  PlacementChange change{.group = GroupId(task.reshape.parents[1].value()), .epoch = right->epoch};
  bool same = left->members.size() == right->members.size();
  for (const PlacedReplica& member : left->members) {
    const PlacedReplica* there = right->Find(member.node);
    same &= there != nullptr && there->voter == member.voter;
    change.members.push_back({.replica = there != nullptr ? there->replica : ReplicaId(),
                              .node = member.node,
                              .voter = member.voter});
  }
  if (!same) {
    ORRERY_CO_RETURN_IF_ERROR(co_await catalog_.SetPlacements({std::move(change)}));
  }
  Duration most = options_.gather_max + bytes / kGatherSpeed * std::chrono::seconds(1);
  bool late = clock_.Now() - task.since > most;
  co_return Status(late ? Code::kForbidden : Code::kUnavailable,
                   "the replicas of the two are on different nodes");
}

runtime::Task<Result<FreezePartition::Answer>> Reshaper::AskRight(const Task& task, bool freeze) {
  FreezePartition ask;
  ask.name = task.reshape.name();
  ask.freeze = freeze;
  const partition::PartitionRange* range = task.container->map->FindId(task.reshape.parents[1]);
  partition::Ring ring = catalog_.FindRing(task.container->id);
  if (range == nullptr || ring.map == nullptr) {
    co_return Error(Code::kUnavailable, "the container has changed meanwhile");
  }
  partition::Reply reply = co_await router_->ExecuteAt(ring, *range, ask);
  if (!reply.status.ok()) {
    co_return Error(reply.status);
  }
  co_return FreezePartition::Answer::Decode(reply.body);
}

runtime::Task<Status> Reshaper::FinishMerge(const Task& task, const FreezePartition::Answer& left,
                                            const FreezePartition::Answer& right) {
  storage::ReplicaRecord heir;
  heir.applied = Lsn(std::max(left.record.applied, right.record.applied).value() + 1);
  heir.totals = {left.record.totals.bytes + right.record.totals.bytes,
                 left.record.totals.items + right.record.totals.items};
  heir.time = std::max(left.record.time, right.record.time);
  if (left.voters.empty()) {
    auto found = [&] { return store_.FoundLocal({{GroupId(task.reshape.name().value()), heir}}); };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(workers_, found));
    inherit_(task.reshape.name(), Replica::JoinOutcomes(left.outcomes, right.outcomes));
    KillPoint("merge.founded");
  }
  change::FinishReshape finish{.container = task.container->id,
                               .name = task.reshape.name(),
                               .parents = {left.end, right.end},
                               .heirs = {heir},
                               .nodes = left.voters};
  Status status = co_await catalog_.FinishReshape(std::move(finish));
  KillPoint("merge.finished");
  co_return status;
}

}  // namespace orrery::model
