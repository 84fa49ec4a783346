#include "model/partition_host.h"

#include "base/kill_point.h"
#include "base/log.h"
#include "model/container_kind.h"
#include "model/items.h"
#include "model/throughput.h"
#include "replication/local_replica_set.h"

namespace orrery::model {

using partition::Replica;
using partition::RequestUnits;
using runtime::Task;

PartitionHost::PartitionHost(Catalog& catalog, storage::Store& store, runtime::WorkerPool& workers,
                             const Clock& clock, partition::ReplicaTable& replicas,
                             HostOptions options)
    : catalog_(catalog),
      store_(store),
      workers_(workers),
      clock_(clock),
      replicas_(replicas),
      options_(options),
      services_{.state = store.state(),
                .workers = workers,
                .clock = clock,
                .staleness = options.staleness} {}

PartitionHost::Share PartitionHost::ShareOf(const Container& container, const Database& database,
                                            PartitionId partition) const {
  if (!container.offer) {
    return {.units = RequestUnits(static_cast<double>(database.offer->spendable())),
            .governed = true};
  }
  // While splits are pending, partitions have what they can have.
  RequestUnits most(static_cast<double>(catalog_.limits().partition_throughput));
  return {.units = std::min(model::ShareOf(*container.offer, *container.map, partition), most),
          .governed = container.offer->chosen || options_.strict,
          .buckets = container.offer->buckets};
}

std::shared_ptr<partition::Budget> PartitionHost::BudgetOf(const Container& container,
                                                           const Database& database,
                                                           const partition::PartitionRange& range,
                                                           const Share& share) {
  if (container.offer) {
    auto own = std::make_shared<partition::Budget>(share.units, options_.burst);
    own->governor().SetBuckets(share.buckets, clock_.Now());
    own->SetOwner({container.id, range});
    return own;
  }
  auto& shared = shared_budgets_[database.id];
  if (shared == nullptr) {
    shared = std::make_shared<partition::Budget>(share.units, options_.burst);
  } else {
    // The offer may have changed while no container used it.
    shared->governor().SetShare(share.units, clock_.Now());
  }
  return shared;
}

std::shared_ptr<Replica> PartitionHost::MakeReplica(
    const std::shared_ptr<const Container>& container, const Database& database,
    const partition::PartitionRange& range, std::shared_ptr<replication::ReplicaSet> set,
    const std::vector<std::string>& outcomes) {
  Share share = ShareOf(*container, database, range.id);
  GroupId group(range.id.value());
  auto replica = std::make_shared<Replica>(
      container->id, range, container, BudgetOf(*container, database, range, share), share.governed,
      workers_.at(range.id.value()), std::move(set), services_);
  replica->SetLimits(StorageLimitsOf(*container, catalog_.limits()));
  replica->Remember({}, replica->applied(), "", store_.Record(group).time);
  for (const std::string& earlier : outcomes) {
    if (!earlier.empty() && !replica->DecodeOutcomes(earlier)) {
      log::Error("malformed outcomes of operations", {{"group", group.ToString()}});
    }
  }
  if (auto recovered = outcomes_.extract(group); !recovered.empty()) {
    for (const RecoveredOutcome& outcome : recovered.mapped()) {
      replica->Remember(outcome.id, outcome.lsn, outcome.result, outcome.time, outcome.settled);
    }
  }
  return replica;
}

void PartitionHost::Inherit(PartitionId heir, std::string outcomes) {
  std::lock_guard lock(inherited_mutex_);
  inherited_[heir] = std::move(outcomes);
}

// Those that are not there yet.
std::vector<std::shared_ptr<Replica>> PartitionHost::MakeReplicas(
    const std::shared_ptr<const Container>& container, const Database& database) {
  std::vector<std::shared_ptr<Replica>> made;
  for (const partition::PartitionRange& range : container->map->ranges()) {
    if (replicas_.Find(range.id) != nullptr) {
      continue;
    }
    std::vector<std::string> outcomes;
    {
      std::lock_guard lock(inherited_mutex_);
      if (auto inherited = inherited_.extract(range.id)) {
        outcomes.push_back(std::move(inherited.mapped()));
      }
    }
    auto set = std::make_shared<replication::LocalReplicaSet>(GroupId(range.id.value()), store_,
                                                              workers_.at(range.id.value()));
    made.push_back(MakeReplica(container, database, range, std::move(set), outcomes));
  }
  return made;
}

Status PartitionHost::Load(RecoveredOutcomes outcomes) {
  outcomes_ = std::move(outcomes);
  if (raft_ != nullptr) {
    return Status::Ok();  // Follow() makes what placements name
  }
  auto view = catalog_.view();
  std::vector<std::shared_ptr<Replica>> all;
  std::vector<GroupId> ended;  // whose heirs are there
  for (const auto& [id, container] : view->containers_by_id) {
    for (const partition::PartitionRange& range : container->map->retired()) {
      if (GroupId group(range.id.value()); store_.Record(group) != storage::ReplicaRecord()) {
        ended.push_back(group);
      }
    }
    auto database = view->FindDatabase(container->database_name);
    if (database == nullptr) {
      return Status(Code::kCorruption, "container " + container->link + " is in no database");
    }
    for (auto& replica : MakeReplicas(container, *database)) {
      all.push_back(std::move(replica));
    }
  }
  replicas_.Add(all);
  outcomes_.clear();
  return ended.empty() ? Status::Ok() : store_.Forget(ended);
}

void PartitionHost::Start() {
  if (raft_ != nullptr) {
    workers_.at(0).Spawn(Follow(gate_.Enter()));
  } else {
    for (const auto& [container, partitions] : catalog_.view()->dropped) {
      workers_.at(0).Spawn(Clear(container, partitions, gate_.Enter()));
    }
  }
  workers_.at(0).Spawn(Sweep(gate_.Enter()));
  workers_.at(0).Spawn(CountSizes(gate_.Enter()));
}

void PartitionHost::Stop() {
  stopping_ = true;
  gate_.Close();
}

void PartitionHost::OnCreated(const std::shared_ptr<const Container>& container,
                              const Database& database) {
  if (raft_ != nullptr) {
    changed_ = true;
    return;
  }
  replicas_.Add(MakeReplicas(container, database));
}

// The heirs are there before anybody can look for them; the parents go when nobody is on them.
void PartitionHost::OnReshaped(const std::shared_ptr<const Container>& before,
                               const std::shared_ptr<const Container>& after,
                               const Database& database) {
  if (raft_ != nullptr) {
    changed_ = true;
    return;
  }
  replicas_.Add(MakeReplicas(after, database));
  std::vector<PartitionId> parents;
  for (const partition::PartitionRange& range : before->map->ranges()) {
    if (after->map->Find(range.range.min).id != range.id) {
      parents.push_back(range.id);
    }
  }
  if (auto pass = gate_.Enter()) {
    workers_.at(0).Spawn(Retire(std::move(parents), std::move(pass)));
  }
}

Task<> PartitionHost::Retire(std::vector<PartitionId> parents, runtime::Gate::Pass pass) {
  std::vector<std::weak_ptr<Replica>> leaving;
  std::vector<GroupId> groups;
  for (PartitionId id : parents) {
    leaving.push_back(replicas_.Find(id));
    groups.emplace_back(id.value());
  }
  replicas_.Remove(parents);
  co_await WaitUntilUnused(std::move(leaving));
  if (stopping_) {
    co_return;  // the next start does it
  }
  KillPoint("parents.left");
  auto forget = [this, &groups] { return store_.Forget(groups); };
  if (Status status = co_await runtime::OnBlocking(workers_, forget); !status.ok()) {
    log::Warning("the log of a partition that was split or merged could not be deleted",
                 {{"why", status.ToString()}});
  }
}

void PartitionHost::OnChanged(const std::shared_ptr<const Container>& container,
                              const Database& database) {
  for (const partition::PartitionRange& range : container->map->ranges()) {
    if (auto replica = replicas_.Find(range.id)) {
      Share share = ShareOf(*container, database, range.id);
      replica->SetSchema(container);
      replica->SetGoverned(share.governed);
      replica->SetLimits(StorageLimitsOf(*container, catalog_.limits()));
      replica->governor().SetShare(share.units, clock_.Now());
      replica->governor().SetBuckets(share.buckets, clock_.Now());
    }
  }
}

void PartitionHost::OnDropped(ContainerId container, const std::vector<PartitionId>& partitions) {
  if (raft_ != nullptr) {
    changed_ = true;
    return;
  }
  if (auto pass = gate_.Enter()) {
    {
      std::lock_guard lock(inherited_mutex_);
      std::erase_if(inherited_, [&](const auto& one) {
        return std::ranges::find(partitions, one.first) != partitions.end();
      });
    }
    workers_.at(0).Spawn(Clear(container, partitions, std::move(pass)));
  } else {
    replicas_.Remove(partitions);
  }
}

// Until no operation is on any of them. REQUIRES: nobody can find them any more.
Task<> PartitionHost::WaitUntilUnused(std::vector<std::weak_ptr<Replica>> leaving) {
  for (const auto& replica : leaving) {
    for (int tries = 0; !replica.expired() && !stopping_; ++tries) {
      // Each worker's cached table keeps replicas alive until its next look-up.
      for (size_t i = 0; i < workers_.size(); ++i) {
        workers_.at(i).Post([this] { replicas_.Find(PartitionId(0)); });
      }
      co_await runtime::Sleep(std::chrono::milliseconds(1 << std::min(tries, 4)));
    }
  }
}

// Removes the data of a dropped container: first nobody can find its replicas, then the last
// operation on them ends, then the keys go, and only then the catalog forgets that there is
// something to clear.
Task<> PartitionHost::Clear(ContainerId container, std::vector<PartitionId> partitions,
                            runtime::Gate::Pass pass) {
  std::vector<std::weak_ptr<Replica>> leaving;
  for (PartitionId id : partitions) {
    leaving.push_back(replicas_.Find(id));
  }
  replicas_.Remove(partitions);
  co_await WaitUntilUnused(std::move(leaving));
  if (stopping_) {
    co_return;  // the next start goes on
  }
  auto clear = [this, container, &partitions]() -> Status {
    storage::Batch batch;
    storage::KeySpan items = storage::ItemSpan(container, {});
    storage::KeySpan unique = storage::UniqueSpan(container, {});
    batch.DeleteRange(storage::Index(storage::Space::kItems), items.begin, items.end);
    batch.DeleteRange(storage::Index(storage::Space::kIndex), unique.begin, unique.end);
    ORRERY_RETURN_IF_ERROR(store_.state().Write(batch, storage::WriteMode::kNoLog));
    std::vector<GroupId> groups;
    for (PartitionId id : partitions) {
      groups.emplace_back(id.value());
    }
    ORRERY_RETURN_IF_ERROR(store_.Forget(groups));
    return store_.CutLog();
  };
  Status status = co_await runtime::OnBlocking(workers_, clear);
  if (status.ok()) {
    status = co_await catalog_.Cleared(container);
  }
  if (!status.ok()) {
    log::Warning("could not clear a dropped container; the next start tries again",
                 {{"why", status.ToString()}});
  }
}

Task<> PartitionHost::Sweep(runtime::Gate::Pass pass) {
  while (!stopping_) {
    for (const auto& replica : replicas_.All()) {
      if (stopping_) {
        break;
      }
      auto schema = replica->schema();
      if (static_cast<const Container&>(*schema).default_ttl) {
        co_await SweepReplica(replica);
      }
    }
    for (Duration waited{}; waited < options_.sweep_interval && !stopping_;
         waited += std::chrono::milliseconds(50)) {
      co_await runtime::Sleep(std::chrono::milliseconds(50));
    }
  }
}

// One partition at a time, as the leaders of large ones want it.
Task<> PartitionHost::CountSizes(runtime::Gate::Pass pass) {
  while (!stopping_) {
    // By id: a walk takes long, and nobody should wait for it who wants to destroy another replica.
    std::vector<PartitionId> ids;
    for (const auto& replica : replicas_.All()) {
      int64_t limit = replica->sizes().limit();
      if (limit > 0 && replica->totals().bytes >= limit / 4) {
        ids.push_back(replica->id());
      }
    }
    for (PartitionId id : ids) {
      auto replica = replicas_.Find(id);
      auto count = [this, replica]() -> Task<> {
        if (replica->sizes().WantsWalk()) {
          co_await replica->sizes().Walk(
              [this, replica] { return stopping_ || replicas_.Find(replica->id()) != replica; });
        }
      };
      if (replica != nullptr && !stopping_) {
        co_await runtime::OnWorker(replica->worker(), count);
      }
    }
    for (Duration waited{}; waited < options_.sweep_interval && !stopping_;
         waited += std::chrono::milliseconds(50)) {
      co_await runtime::Sleep(std::chrono::milliseconds(50));
    }
  }
}

Task<> PartitionHost::SweepReplica(std::shared_ptr<Replica> replica) {
  DeleteItems expired;
  do {
    auto schema = replica->schema();
    expired.target = {.container = replica->container(),
                      .partition = replica->id(),
                      .generation = replica->range().generation,
                      .schema_version = schema->version};
    expired.id = {};
    partition::Reply reply = co_await replica->Execute(expired);
    if (!reply.status.ok()) {
      co_return;
    }
    expired.after = std::move(reply.body);
  } while (!expired.after.empty() && !stopping_);
}

}  // namespace orrery::model
