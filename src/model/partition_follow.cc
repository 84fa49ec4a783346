// PartitionHost on a cluster: replicas are where placements say.
#include <algorithm>
#include <set>

#include "base/kill_point.h"
#include "base/log.h"
#include "base/mutants.h"
#include "model/partition_host.h"

namespace orrery::model {

using partition::Replica;
using replication::Configuration;
using replication::RaftReplicaSet;
using replication::Role;
using runtime::Task;

namespace {

constexpr Duration kFollowPause = std::chrono::milliseconds(10);
constexpr int kFollowEvery = 50;  // pauses, when nothing was said to have changed
// How long a parent whose heirs are there waits for the last entries of its log.
constexpr Duration kBehindMax = std::chrono::seconds(1);

storage::ReplicaIdentity IdentityOf(const PlacedReplica& placed, ContainerId container,
                                    const partition::PartitionRange& range) {
  return {.id = placed.replica,
          .generation = range.generation,
          .spans = storage::PartitionSpans(container, range.range)};
}

}  // namespace

Configuration ConfigurationOf(const std::vector<PlacedReplica>& members) {
  Configuration configuration;
  for (const PlacedReplica& member : members) {
    configuration.members.push_back(
        {member.replica, member.node, member.voter ? Role::kVoter : Role::kStandby});
  }
  return configuration;
}

storage::LogBase FoundingBase(const Placement& placement, Lsn applied) {
  Lsn index = std::max(Lsn(1), applied);
  return {.index = index,
          .term = 1,
          .configuration = ConfigurationOf(placement.founders).Encode(),
          .configuration_index = index};
}

void PartitionHost::SetCluster(NodeId self, replication::RaftHost* raft, Replace replace,
                               Borrow borrow) {
  self_ = self;
  raft_ = raft;
  replace_ = std::move(replace);
  services_.borrow = std::move(borrow);
  services_.leads_here = [this](PartitionId partition) {
    auto replica = replicas_.Find(partition);
    return replica != nullptr && replica->set().leads();
  };
}

// The throughput of a database belongs to the leader of its first partition that shares it.
void PartitionHost::FollowOwners(const CatalogView& view) {
  std::map<DatabaseId, partition::BudgetOwner> owners;
  for (const auto& [id, container] : view.containers_by_id) {
    auto database = view.FindDatabase(container->database_name);
    if (container->offer || database == nullptr) {
      continue;
    }
    for (const partition::PartitionRange& range : container->map->ranges()) {
      auto [owner, first] = owners.try_emplace(database->id, partition::BudgetOwner{id, range});
      if (range.id < owner->second.range.id) {
        owner->second = {id, range};
      }
    }
  }
  for (const auto& [database, owner] : owners) {
    if (auto shared = shared_budgets_.find(database); shared != shared_budgets_.end()) {
      shared->second->SetOwner(owner);
    }
  }
}

// One that never had a base has promised nothing: it may begin again under its id.
bool LostPromises(const storage::GroupLog& log) {
  return log.broken() && !log.discarding && log.base.has_value();
}

void PartitionHost::OnPlaced(const CatalogView& next, const std::vector<GroupId>& groups) {
  changed_ = true;
}

void PartitionHost::OnUnplaced(const std::vector<GroupId>& groups) { changed_ = true; }

std::map<GroupId, PartitionHost::Wanted> PartitionHost::WantedHere(const CatalogView& view) const {
  std::map<GroupId, Wanted> wanted;
  for (const auto& [id, container] : view.containers_by_id) {
    for (const partition::PartitionRange& range : container->map->ranges()) {
      GroupId group(range.id.value());
      auto placement = view.FindPlacement(group);
      const PlacedReplica* placed = placement == nullptr ? nullptr : placement->Find(self_);
      if (placement == nullptr) {
        continue;
      }
      Wanted one{placement, placed != nullptr ? *placed : PlacedReplica(), container,
                 view.FindDatabase(container->database_name), range};
      auto stored = store_.Log(group);
      if (stored && !stored->broken() && stored->identity.id != one.placed.replica) {
        // It should go, but until the others have removed it they may need its vote.
        one.placed = {stored->identity.id, self_};
        one.leaving = true;
      }
      if (!stored && (placed == nullptr || !placement->origin)) {
        // A founder that was moved away, or replaced here, before it ever existed: without it the
        // others may have no majority to move anything.
        auto founder = std::ranges::find(placement->founders, self_, &PlacedReplica::node);
        if (founder != placement->founders.end() && founder->replica != one.placed.replica &&
            founder->replica > store_.Ended(group)) {
          one.placed = *founder;
          one.leaving = true;
        }
      }
      if (one.placed.replica != ReplicaId()) {
        wanted[group] = std::move(one);
      }
    }
  }
  for (const auto& [group, heir] : EndsHere(view)) {
    // It runs until it has applied its last entry.
    PartitionId id(group.value());
    for (const auto& [_, container] : view.containers_by_id) {
      if (const partition::PartitionRange* range = container->map->FindId(id)) {
        wanted[group] = {heir,      {store_.Log(group)->identity.id, self_},
                         container, view.FindDatabase(container->database_name),
                         *range,    true};
        break;
      }
    }
  }
  return wanted;
}

PartitionHost::Ends PartitionHost::EndsHere(const CatalogView& view) const {
  Ends ends;
  for (const auto& [group, placement] : view.placements) {
    if (!placement->origin) {
      continue;
    }
    for (const Origin::Parent& parent : placement->origin->parents) {
      if (auto log = store_.Log(parent.group); log && !log->broken()) {
        ends[parent.group] = placement;
      }
    }
  }
  return ends;
}

Task<> PartitionHost::Follow(runtime::Gate::Pass pass) {
  for (int quiet = 0; !stopping_; ++quiet) {
    if (changed_.exchange(false) || quiet >= kFollowEvery) {
      quiet = 0;
      if (co_await FollowOnce()) {
        continue;  // clients wait for the heirs
      }
    }
    co_await runtime::Sleep(kFollowPause);
  }
}

// True: heirs can begin at once.
Task<bool> PartitionHost::FollowOnce() {
  auto view = catalog_.view();
  std::map<GroupId, Wanted> wanted = WantedHere(*view);
  Ends ends = EndsHere(*view);
  for (const auto& set : raft_->All()) {
    GroupId group = set->group();
    if (group == GroupId(0) || ends.contains(group)) {
      continue;
    }
    auto placement = view->FindPlacement(group);
    if (placement != nullptr) {
      set->worker().Post(
          [set, desired = ConfigurationOf(placement->members)] { set->SetPlacement(desired); });
    }
    auto found = wanted.find(group);
    bool here = found != wanted.end() && !found->second.leaving &&
                found->second.placed.replica == set->replica();
    // A replica that should go is still a member until the others have removed it.
    bool dropped = placement == nullptr && group.value() < view->next.partition;
    // One that never got a snapshot has promised nothing: it can go at once. But a founder that is
    // not replaced here counts for a majority, with a snapshot: see WantedHere.
    auto needed = [&] {
      auto log = store_.Log(group);
      return log && (log->base || (placement != nullptr && placement->Find(self_) == nullptr &&
                                   placement->founds(set->replica())));
    };
    if (!here && (dropped || set->gone() || !needed() || Active(Mutant::kLeaveEarly))) {
      co_await Destroy(group, set->gone());
      if (found != wanted.end() && found->second.leaving) {
        wanted.erase(found);  // another may come in its place
      }
      changed_ = true;
    }
  }
  for (GroupId group : store_.RaftGroups()) {
    // Left by an earlier process. A catalog that does not know the group yet says nothing about it.
    bool known = group.value() < view->next.partition || Active(Mutant::kReturnUnderId);
    if (group != GroupId(0) && known && !wanted.contains(group) && raft_->Find(group) == nullptr) {
      co_await Destroy(group);
    }
  }
  for (const auto& [group, one] : wanted) {
    if (stopping_) {
      co_return false;
    }
    if (const auto& origin = one.placement->origin;
        origin && !ends.contains(group) && std::ranges::any_of(origin->parents, [&](const auto& p) {
          return ends.contains(p.group);
        })) {
      continue;  // its keys are still its parents'
    }
    if (raft_->Find(group) == nullptr && !co_await Adopt(group, one)) {
      changed_ = true;  // again, soon
    }
  }
  bool begun = false;
  std::set<GroupId> done;
  for (const auto& [group, heir] : ends) {
    if (stopping_ || !done.insert(group).second) {
      continue;  // one call is for all parents, and all of their heirs
    }
    for (const Origin::Parent& parent : heir->origin->parents) {
      done.insert(parent.group);
    }
    begun |= co_await Succeed(*view, *heir->origin);
  }
  FollowOwners(*view);
  FollowLeaders(*view);
  co_return begun;
}

// The heirs of these parents that begin here.
std::vector<storage::Heir> PartitionHost::HeirsHere(const CatalogView& view, const Origin& origin,
                                                    const std::string& outcomes) const {
  std::vector<storage::Heir> heirs;
  for (const auto& [id, container] : view.containers_by_id) {
    for (const partition::PartitionRange& range : container->map->ranges()) {
      GroupId group(range.id.value());
      auto placement = view.FindPlacement(group);
      if (placement == nullptr || !placement->origin ||
          placement->origin->parents != origin.parents) {
        continue;
      }
      auto founder = std::ranges::find(placement->founders, self_, &PlacedReplica::node);
      if (founder == placement->founders.end()) {
        continue;
      }
      heirs.push_back({.group = group,
                       .identity = IdentityOf(*founder, id, range),
                       .base = FoundingBase(*placement, placement->origin->record.applied),
                       .hard = {.term = 1},
                       .record = placement->origin->record,
                       .outcomes = outcomes});
    }
  }
  return heirs;
}

// The parents end here and their heirs begin, with what is there. Parents that are behind have
// nothing that others need: the catalog knows that a majority has all of it. True: they begin.
Task<bool> PartitionHost::Succeed(const CatalogView& view, const Origin& origin) {
  bool whole = true;
  std::string outcomes;
  std::vector<GroupId> here;
  for (const Origin::Parent& parent : origin.parents) {
    auto set = raft_->Find(parent.group);
    if (set == nullptr) {
      auto log = store_.Log(parent.group);
      if (log && !log->broken()) {
        changed_ = true;  // it is not running yet
        co_return false;
      }
      whole = false;
      continue;
    }
    here.push_back(parent.group);
    auto finish = [&set, &parent] { return set->FinishAt(parent.lsn, parent.term); };
    Status status = co_await runtime::OnWorker(set->worker(), finish);
    if (status.code() == Code::kNotFound) {
      Instant since = behind_.try_emplace(parent.group, clock_.Now()).first->second;
      if (clock_.Now() - since < kBehindMax) {
        changed_ = true;
        co_return false;
      }
      whole = false;
    } else if (!status.ok()) {
      changed_ = true;
      co_return false;
    } else if (auto replica = replicas_.Find(PartitionId(parent.group.value()))) {
      auto read = [&replica]() -> Task<std::string> { co_return replica->Outcomes(); };
      std::string some = co_await runtime::OnWorker(set->worker(), read);
      outcomes = Replica::JoinOutcomes(outcomes, some);
    }
  }
  for (GroupId group : here) {
    behind_.erase(group);
    co_await (whole ? Detach(group) : Destroy(group));
  }
  changed_ = true;
  if (!whole || stopping_) {
    co_return false;
  }
  KillPoint("heirs.detached");
  auto reshape = [&] { return store_.Reshape(here, HeirsHere(view, origin, outcomes)); };
  Status status = co_await runtime::OnBlocking(workers_, reshape);
  KillPoint("heirs.begun");
  if (!status.ok()) {
    log::Warning("the heirs of a partition cannot begin yet", {{"why", status.ToString()}});
  }
  co_return status.ok();
}

// The first of a placement leads while it is well, so that leaders are spread as sets are: it asks
// for it, one group at a time, because nobody should notice. A node whose disk is full gives away
// what it leads: it would refuse all writes.
void PartitionHost::FollowLeaders(const CatalogView& view) {
  Instant now = clock_.Now();
  bool asked = false;
  for (const auto& set : raft_->All()) {
    auto placement = view.FindPlacement(set->group());
    bool gives = set->leads() && store_.disk_full();
    bool wants = !set->leads() && store_.accepts(false) && set->group() != GroupId(0) &&
                 placement != nullptr && placement->members.front().replica == set->replica();
    auto known = misled_.find(set->group());
    if (!gives && !wants) {
      misled_.erase(set->group());
    } else if (known == misled_.end() || known->second.here != gives) {
      misled_[set->group()] = {gives, now};
      if (gives) {
        set->worker().Post([set] { set->TransferAway(); });
      }
    } else if (!asked && now - known->second.since >= options_.return_after) {
      asked = true;
      known->second.since = now;  // if it does not succeed, again after as long
      set->worker().Post([set, gives] { gives ? set->TransferAway() : set->AskToLead(); });
    }
  }
}

// Makes a replica that should be here. False: not now.
Task<bool> PartitionHost::Adopt(GroupId group, const Wanted& wanted) {
  if (wanted.database == nullptr) {
    co_return false;
  }
  if (wanted.leaving && !store_.Log(group) && wanted.placed.replica <= store_.Ended(group)) {
    co_return true;  // it has left
  }
  if (auto log = store_.Log(group);
      log && LostPromises(*log) && log->identity.id == wanted.placed.replica) {
    // What it had promised is lost with it: another one, with a new id, takes its place.
    log::Error("a replica is broken and is made anew",
               {{"group", group.ToString()}, {"why", log->damage}});
    co_await replace_(group, wanted.placed.replica);
    co_return true;
  }
  if (!wanted.leaving && !store_.Log(group) && wanted.placed.replica <= store_.Ended(group)) {
    // It was here and went, by a catalog that was older: its id is spent.
    co_await replace_(group, wanted.placed.replica);
    co_return false;
  }
  bool fresh = false;
  auto prepare = [&] { return Prepare(group, wanted, &fresh); };
  Result<std::vector<storage::LogEntry>> heads = co_await runtime::OnBlocking(workers_, prepare);
  if (!heads) {
    log::Warning("a replica cannot be made yet",
                 {{"group", group.ToString()}, {"why", heads.error().ToString()}});
    co_return false;
  }
  auto read = [this, group]() -> Result<std::vector<std::string>> {
    ORRERY_TRY(std::string extra, store_.Extra(group));
    ORRERY_TRY(std::string cut, store_.Outcomes(group));
    return std::vector{std::move(extra), std::move(cut)};
  };
  Result<std::vector<std::string>> outcomes = co_await runtime::OnBlocking(workers_, read);
  if (!outcomes) {
    log::Warning("a replica cannot be made yet",
                 {{"group", group.ToString()}, {"why", outcomes.error().ToString()}});
    co_return false;
  }
  StartReplica(group, wanted, std::move(*heads), *outcomes, fresh);
  co_return true;
}

// What is in the store of it, or its birth.
Result<std::vector<storage::LogEntry>> PartitionHost::Prepare(GroupId group, const Wanted& wanted,
                                                              bool* fresh) {
  auto log = store_.Log(group);
  if (log && log->base && wanted.placement->origin && !wanted.leaving) {
    // An heir of which nobody has written anything yet.
    *fresh = log->last == log->base->index &&
             wanted.placement->founders.front().replica == wanted.placed.replica;
  }
  if (log && (log->identity.id != wanted.placed.replica || log->broken())) {
    Status status = store_.Discard(group);
    if (!status.ok()) {
      return Error(status);
    }
    log.reset();
  }
  if (!log) {
    std::optional<storage::LogBase> base;
    storage::HardState hard;
    if (wanted.placement->founds(wanted.placed.replica) && !wanted.placement->origin) {
      base = FoundingBase(*wanted.placement, store_.Record(group).applied);
      hard.term = 1;
      *fresh = wanted.placement->founders.front().replica == wanted.placed.replica;
    }
    auto identity = IdentityOf(wanted.placed, wanted.container->id, wanted.range);
    Status status = store_.Found(group, identity, base, hard);
    if (!status.ok()) {
      return Error(status);
    }
  }
  return store_.ReadHeads(group);
}

void PartitionHost::StartReplica(GroupId group, const Wanted& wanted,
                                 std::vector<storage::LogEntry> heads,
                                 const std::vector<std::string>& outcomes, bool fresh) {
  log::Info("a replica begins", {{"group", group.ToString()},
                                 {"replica", wanted.placed.replica.ToString()},
                                 {"leaving", wanted.leaving ? "yes" : "no"}});
  runtime::Worker& worker = workers_.at(wanted.range.id.value());
  auto set = std::make_shared<RaftReplicaSet>(group, wanted.placed.replica, *raft_, worker);
  // The newest definition: it may have changed while the store was busy.
  auto view = catalog_.view();
  auto container = view->FindContainer(wanted.container->id);
  auto replica = MakeReplica(container != nullptr ? container : wanted.container, *wanted.database,
                             wanted.range, set, outcomes);
  if (wanted.placement->founds(wanted.placed.replica)) {
    set->SetFounder();
  }
  if (view->FindPlacement(group) != nullptr) {
    set->SetPlacement(ConfigurationOf(wanted.placement->members));
  }
  replicas_.Add({replica});
  raft_->Insert(set);
  worker.Post([set, heads = std::move(heads), fresh] { set->Start(heads, fresh); });
}

// First nobody can find it, then the last operation on it ends.
Task<> PartitionHost::Detach(GroupId group) {
  PartitionId partition(group.value());
  if (auto set = raft_->Find(group)) {
    raft_->Remove(group);
    auto detach = [set]() -> Task<> {
      set->Stop();
      set->SetListener(nullptr);
      co_return;
    };
    co_await runtime::OnWorker(set->worker(), detach);
    while (set->taking_in()) {
      co_await runtime::Sleep(std::chrono::milliseconds(1));
    }
  }
  std::vector<std::weak_ptr<Replica>> leaving{replicas_.Find(partition)};
  replicas_.Remove({partition});
  co_await WaitUntilUnused(std::move(leaving));
}

// Then its keys and its log go.
Task<> PartitionHost::Destroy(GroupId group, bool for_good) {
  log::Info("a replica that is not needed here any more is deleted", {{"group", group.ToString()}});
  co_await Detach(group);
  if (stopping_) {
    co_return;
  }
  auto discard = [this, group, for_good] { return store_.Discard(group, for_good); };
  Status status = co_await runtime::OnBlocking(workers_, discard);
  if (!status.ok()) {
    log::Warning("a replica could not be deleted; it will be tried again",
                 {{"group", group.ToString()}, {"why", status.ToString()}});
  }
}

}  // namespace orrery::model
