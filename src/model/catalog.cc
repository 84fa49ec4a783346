#include "model/catalog.h"

#include <cinttypes>

#include "types/rid.h"

namespace orrery::model {

using runtime::Task;
using storage::Space;

namespace {

// Records of the catalog space: kind, then an id.
constexpr char kDatabaseKind = 'd';
constexpr char kContainerKind = 'c';
constexpr char kCounterKind = 'n';
constexpr char kKeysKind = 'k';
constexpr char kDroppedKind = 'x';

constexpr uint32_t kOffersMax = 1 << 24;  // their rids have three bytes

std::string RecordKey(char kind, uint32_t id = 0) {
  std::string key(1, kind);
  Encoder(key).U32(id);
  return key;
}

std::string EncodeCounters(const CatalogView& view) {
  std::string out;
  Encoder encoder(out);
  encoder.U32(view.next_database);
  encoder.U32(view.next_container);
  encoder.U32(view.next_offer);
  encoder.U64(view.next_partition);
  return out;
}

std::string EncodeKeys(const AccountKeys& keys) {
  std::string out;
  Encoder encoder(out);
  for (const std::string& key : keys.keys) {
    encoder.Bytes(key);
  }
  return out;
}

std::string EncodeDropped(const std::vector<PartitionId>& partitions) {
  std::string out;
  Encoder encoder(out);
  for (PartitionId id : partitions) {
    encoder.U64(id.value());
  }
  return out;
}

std::vector<PartitionId> PartitionsOf(const Container& container) {
  std::vector<PartitionId> ids;
  for (const auto& range : container.map->ranges()) {
    ids.push_back(range.id);
  }
  for (const auto& range : container.map->retired()) {
    ids.push_back(range.id);
  }
  return ids;
}

Status LoadRecord(CatalogView& view, std::string_view key, std::string_view value) {
  Decoder id(key.substr(1));
  Decoder decoder(value);
  switch (key[0]) {
    case kDatabaseKind: {
      auto database = DecodeDatabase(value);
      if (!database) {
        return database.error();
      }
      auto shared = std::make_shared<const Database>(std::move(*database));
      view.databases[shared->name] = shared;
      return Status::Ok();
    }
    case kContainerKind: {
      auto container = DecodeContainer(value);
      if (!container) {
        return container.error();
      }
      auto shared = std::make_shared<const Container>(std::move(*container));
      view.containers[{shared->database, shared->name}] = shared;
      view.containers_by_id[shared->id] = shared;
      view.containers_by_link[shared->link] = shared;
      return Status::Ok();
    }
    case kCounterKind:
      view.next_database = decoder.U32();
      view.next_container = decoder.U32();
      view.next_offer = decoder.U32();
      view.next_partition = decoder.U64();
      break;
    case kKeysKind:
      for (std::string& account_key : view.keys.keys) {
        account_key = decoder.Bytes();
      }
      break;
    case kDroppedKind: {
      std::vector<PartitionId> partitions;
      while (decoder.ok() && decoder.left() > 0) {
        partitions.emplace_back(decoder.U64());
      }
      view.dropped.emplace_back(ContainerId(id.U32()), std::move(partitions));
      break;
    }
    default: return Status(Code::kCorruption, "catalog record of an unknown kind");
  }
  return decoder.done() ? Status::Ok() : Status(Code::kCorruption, "catalog record is malformed");
}

bool Matches(const std::string& if_match, uint64_t etag, WallTime time) {
  return if_match.empty() || if_match == "*" || if_match == EtagText(etag, time);
}

Status EtagDiffers() {
  return Status(
      Code::kPreconditionFailed,
      "Operation cannot be performed because one of the specified precondition is not met.");
}

}  // namespace

std::string EtagText(uint64_t etag, WallTime time) {
  char text[64];
  auto seconds = static_cast<uint32_t>(time.seconds());
  std::snprintf(text, sizeof(text), "\"%08" PRIx32 "-%04x-%04x-%04x-%08" PRIx32 "%04x\"",
                static_cast<uint32_t>(etag >> 32), static_cast<unsigned>(etag >> 16 & 0xFFFF),
                static_cast<unsigned>(etag & 0xFFFF),
                static_cast<unsigned>(time.micros >> 16 & 0xFFFF), seconds,
                static_cast<unsigned>(time.micros & 0xFFFF));
  return text;
}

// A copy of the view to change, and the records that the change writes.
struct Catalog::Draft {
  Draft(const CatalogView& from, WallTime now, uint64_t term)
      : view(std::make_shared<CatalogView>(from)), now(now), term(term) {
    set.time = now;
  }
  void Put(std::shared_ptr<const Database> database) {
    set.Put(Space::kCatalog, RecordKey(kDatabaseKind, database->id.value()),
            EncodeDatabase(*database));
    view->databases[database->name] = std::move(database);
  }
  void Put(const std::shared_ptr<const Container>& container) {
    set.Put(Space::kCatalog, RecordKey(kContainerKind, container->id.value()),
            EncodeContainer(*container));
    view->containers[{container->database, container->name}] = container;
    view->containers_by_id[container->id] = container;
    view->containers_by_link[container->link] = container;
  }
  void PutCounters() { set.Put(Space::kCatalog, RecordKey(kCounterKind), EncodeCounters(*view)); }
  void Drop(const Container& container) {
    std::vector<PartitionId> partitions = PartitionsOf(container);
    set.frees_space = true;
    set.Delete(Space::kCatalog, RecordKey(kContainerKind, container.id.value()));
    set.Put(Space::kCatalog, RecordKey(kDroppedKind, container.id.value()),
            EncodeDropped(partitions));
    view->dropped.emplace_back(container.id, std::move(partitions));
    view->containers_by_id.erase(container.id);
    view->containers_by_link.erase(container.link);
    view->containers.erase({container.database, container.name});
  }

  std::shared_ptr<CatalogView> view;
  WallTime now;
  uint64_t term;  // in which the change is evaluated
  storage::WriteSet set;
};

Catalog::Catalog(replication::ReplicaSet& meta, runtime::Worker& worker, const Clock& clock,
                 CatalogLimits limits)
    : meta_(meta), worker_(worker), clock_(clock), limits_(limits), view_(nullptr) {
  SetView(std::make_shared<const CatalogView>());
}

Status Catalog::Load(storage::Engine& state, WallTime last_time) {
  auto view = std::make_shared<CatalogView>();
  auto records = state.NewIterator(storage::Index(Space::kCatalog), "", "");
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    ORRERY_RETURN_IF_ERROR(LoadRecord(*view, records->key(), records->value()));
  }
  ORRERY_RETURN_IF_ERROR(records->status());
  last_time_ = last_time;
  std::lock_guard lock(view_mutex_);
  SetView(std::move(view));
  return Status::Ok();
}

WallTime Catalog::NextTime() {
  last_time_ = {std::max(clock_.Wall().micros, last_time_.micros + 1)};
  return last_time_;
}

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

template <typename F>
auto Catalog::Exclusively(F body) -> std::invoke_result_t<F> {
  auto run = [this, &body]() -> std::invoke_result_t<F> {
    auto guard = co_await latches_.Acquire({partition::Latch{.name = 1}});
    co_return co_await body();
  };
  co_return co_await runtime::OnWorker(worker_, run);
}

Task<Status> Catalog::Publish(Draft draft) {
  Result<Lsn> lsn = co_await meta_.Commit(std::move(draft.set), draft.term);
  std::lock_guard lock(view_mutex_);
  if (!lsn) {
    // Ids that were given out are not given out again: something may still be on its way to them.
    auto kept = std::make_shared<CatalogView>(*view_);
    kept->next_database = draft.view->next_database;
    kept->next_container = draft.view->next_container;
    kept->next_offer = draft.view->next_offer;
    kept->next_partition = draft.view->next_partition;
    SetView(std::move(kept));
    co_return lsn.error();
  }
  SetView(std::move(draft.view));
  co_return Status::Ok();
}

Status Catalog::NumberOffer(Draft& draft, Offer& offer) {
  if (draft.view->next_offer >= kOffersMax) {
    return Status(Code::kForbidden, "The account has made as many offers as it can name.");
  }
  offer.number = draft.view->next_offer++;
  return Status::Ok();
}

Result<Offer> Catalog::MakeOffer(const ThroughputRequest& throughput, WallTime now) const {
  Offer offer{.time = now, .etag = static_cast<uint64_t>(now.micros)};
  if (throughput.manual && throughput.autoscale_max) {
    return Error(Code::kInvalidArgument,
                 "Only one of manual throughput and autoscale settings may be given.");
  }
  if (throughput.autoscale_max) {
    offer.autoscale_max = *throughput.autoscale_max;
    if (offer.autoscale_max < limits_.autoscale_min || offer.autoscale_max % 1000 != 0 ||
        offer.autoscale_max > limits_.throughput_max) {
      return Error(Code::kInvalidArgument, "The autoscale maximum throughput must be between " +
                                               std::to_string(limits_.autoscale_min) + " and " +
                                               std::to_string(limits_.throughput_max) +
                                               " in increments of 1000.");
    }
    return offer;
  }
  offer.manual = throughput.manual.value_or(limits_.default_throughput);
  offer.chosen = throughput.manual.has_value();
  if (offer.manual < limits_.throughput_min || offer.manual % 100 != 0 ||
      offer.manual > limits_.throughput_max) {
    return Error(Code::kInvalidArgument, "The offer should have valid throughput values between " +
                                             std::to_string(limits_.throughput_min) + " and " +
                                             std::to_string(limits_.throughput_max) +
                                             " inclusive in increments of 100.");
  }
  return offer;
}

Catalog::Change<Database> Catalog::CreateDatabase(std::string name, ThroughputRequest throughput) {
  using R = Result<std::shared_ptr<const Database>>;
  auto body = [this, &name, &throughput]() -> Task<R> {
    Draft draft(*view(), NextTime(), meta_.term());
    ORRERY_CO_TRY_STATUS(CheckResourceName(name));
    if (draft.view->FindDatabase(name) != nullptr) {
      co_return Error(Code::kAlreadyExists,
                      "Resource with specified id, name, or unique index already exists.");
    }
    if (draft.view->databases.size() + draft.view->containers.size() >= limits_.resources_max) {
      co_return Error(Code::kForbidden,
                      "The account has reached its limit of databases and containers.");
    }
    Database made{.id = DatabaseId(draft.view->next_database++),
                  .name = name,
                  .time = draft.now,
                  .etag = static_cast<uint64_t>(draft.now.micros)};
    made.rid = types::DatabaseRid(made.id);
    if (throughput.manual || throughput.autoscale_max) {
      ORRERY_CO_TRY(made.offer, MakeOffer(throughput, draft.now));
      ORRERY_CO_TRY_STATUS(NumberOffer(draft, *made.offer));
    }
    auto database = std::make_shared<const Database>(std::move(made));
    draft.Put(database);
    draft.PutCounters();
    ORRERY_CO_TRY_STATUS(co_await Publish(std::move(draft)));
    co_return database;
  };
  co_return co_await Exclusively(body);
}

Task<Status> Catalog::DropDatabase(std::string name, std::string if_match) {
  auto body = [this, &name, &if_match]() -> Task<Status> {
    Draft draft(*view(), NextTime(), meta_.term());
    auto database = draft.view->FindDatabase(name);
    if (database == nullptr) {
      co_return Status(Code::kNotFound, "Resource Not Found.");
    }
    if (!Matches(if_match, database->etag, database->time)) {
      co_return EtagDiffers();
    }
    auto containers = draft.view->ContainersOf(database->id);
    for (const auto& container : containers) {
      draft.Drop(*container);
    }
    draft.set.Delete(Space::kCatalog, RecordKey(kDatabaseKind, database->id.value()));
    draft.view->databases.erase(name);
    Status status = co_await Publish(std::move(draft));
    for (const auto& container : containers) {
      if (status.ok() && listener_ != nullptr) {
        listener_->OnDropped(container->id, PartitionsOf(*container));
      }
    }
    co_return status;
  };
  co_return co_await Exclusively(body);
}

Catalog::Change<Container> Catalog::CreateContainer(std::string database_name,
                                                    types::Document definition,
                                                    ThroughputRequest throughput) {
  using R = Result<std::shared_ptr<const Container>>;
  auto body = [&]() -> Task<R> {
    Draft draft(*view(), NextTime(), meta_.term());
    auto database = draft.view->FindDatabase(database_name);
    if (database == nullptr) {
      co_return Error(Code::kOwnerNotFound, "Owner resource does not exist");
    }
    Container made;
    ORRERY_CO_TRY(made.definition, NormalizeContainer(definition.root()));
    made.name = made.definition.Get("id").string();
    if (draft.view->containers.contains({database->id, made.name})) {
      co_return Error(Code::kAlreadyExists,
                      "Resource with specified id, name, or unique index already exists.");
    }
    if (draft.view->databases.size() + draft.view->containers.size() >= limits_.resources_max) {
      co_return Error(Code::kForbidden,
                      "The account has reached its limit of databases and containers.");
    }
    made.id = ContainerId(draft.view->next_container++);
    made.database = database->id;
    made.database_name = database->name;
    made.rid = types::ContainerRid(made.database, made.id);
    made.time = draft.now;
    made.etag = static_cast<uint64_t>(draft.now.micros);
    ORRERY_CO_TRY_STATUS(made.ReadDefinition());
    size_t parts = 1;
    bool shares = database->offer && !throughput.manual && !throughput.autoscale_max;
    if (!shares) {
      ORRERY_CO_TRY(made.offer, MakeOffer(throughput, draft.now));
      ORRERY_CO_TRY_STATUS(NumberOffer(draft, *made.offer));
      parts = partition::PartitionCount(made.offer->spendable(), limits_.partition_throughput);
    }
    made.map = std::make_shared<const partition::PartitionMap>(
        partition::PartitionMap::Even(made.key, parts, PartitionId(draft.view->next_partition)));
    draft.view->next_partition += parts;
    auto container = std::make_shared<const Container>(std::move(made));
    draft.Put(container);
    draft.PutCounters();
    // Before the view names them: a request must not find a container without its partitions.
    if (listener_ != nullptr) {
      listener_->OnCreated(container, *database);
    }
    Status status = co_await Publish(std::move(draft));
    if (!status.ok()) {
      if (listener_ != nullptr) {
        listener_->OnAbandoned(PartitionsOf(*container));
      }
      co_return Error(status);
    }
    co_return container;
  };
  co_return co_await Exclusively(body);
}

Catalog::Change<Container> Catalog::ReplaceContainer(std::string link, types::Document definition,
                                                     std::string if_match) {
  using R = Result<std::shared_ptr<const Container>>;
  auto body = [&]() -> Task<R> {
    Draft draft(*view(), NextTime(), meta_.term());
    auto before = draft.view->FindContainer(link);
    if (before == nullptr) {
      co_return Error(Code::kNotFound, "Resource Not Found.");
    }
    if (!Matches(if_match, before->etag, before->time)) {
      co_return Error(EtagDiffers());
    }
    Container after = *before;
    ORRERY_CO_TRY(after.definition, NormalizeContainer(definition.root()));
    after.name = after.definition.Get("id").string();
    ORRERY_CO_TRY_STATUS(after.ReadDefinition());
    ORRERY_CO_TRY_STATUS(CheckContainerChange(*before, after));
    after.version = before->version + 1;
    after.time = draft.now;
    after.etag = static_cast<uint64_t>(draft.now.micros);
    auto container = std::make_shared<const Container>(std::move(after));
    draft.Put(container);
    auto database = draft.view->FindDatabase(container->database_name);
    ORRERY_CO_TRY_STATUS(co_await Publish(std::move(draft)));
    if (listener_ != nullptr) {
      listener_->OnChanged(container, *database);
    }
    co_return container;
  };
  co_return co_await Exclusively(body);
}

Task<Status> Catalog::DropContainer(std::string link, std::string if_match) {
  auto body = [&]() -> Task<Status> {
    Draft draft(*view(), NextTime(), meta_.term());
    auto container = draft.view->FindContainer(link);
    if (container == nullptr) {
      co_return Status(Code::kNotFound, "Resource Not Found.");
    }
    if (!Matches(if_match, container->etag, container->time)) {
      co_return EtagDiffers();
    }
    draft.Drop(*container);
    Status status = co_await Publish(std::move(draft));
    if (status.ok() && listener_ != nullptr) {
      listener_->OnDropped(container->id, PartitionsOf(*container));
    }
    co_return status;
  };
  co_return co_await Exclusively(body);
}

Task<Status> Catalog::ReplaceOffer(uint32_t number, ThroughputRequest throughput,
                                   std::string if_match) {
  auto body = [&]() -> Task<Status> {
    Draft draft(*view(), NextTime(), meta_.term());
    auto made = MakeOffer(throughput, draft.now);
    if (!made) {
      co_return made.error();
    }
    made->number = number;
    std::vector<std::shared_ptr<const Container>> changed;
    for (const auto& [name, database] : draft.view->databases) {
      if (database->offer && database->offer->number == number) {
        if (!Matches(if_match, database->offer->etag, database->offer->time)) {
          co_return EtagDiffers();
        }
        Database after = *database;
        after.offer = *made;
        draft.Put(std::make_shared<const Database>(std::move(after)));
        changed = draft.view->ContainersOf(database->id);
        break;
      }
    }
    for (const auto& [id, container] : draft.view->containers_by_id) {
      if (container->offer && container->offer->number == number) {
        if (!Matches(if_match, container->offer->etag, container->offer->time)) {
          co_return EtagDiffers();
        }
        uint64_t room = container->map->ranges().size() * limits_.partition_throughput;
        if (made->spendable() > room) {
          co_return Status(Code::kNotSupported,
                           "Throughput above " + std::to_string(room) +
                               " RU/s needs a partition split, which is not supported yet.");
        }
        Container after = *container;
        after.offer = *made;
        changed = {std::make_shared<const Container>(std::move(after))};
        draft.Put(changed[0]);
        break;
      }
    }
    if (draft.set.empty()) {
      co_return Status(Code::kNotFound, "Resource Not Found.");
    }
    auto next = draft.view;
    Status status = co_await Publish(std::move(draft));
    for (const auto& container : changed) {
      if (status.ok() && listener_ != nullptr) {
        listener_->OnChanged(container, *next->FindDatabase(container->database_name));
      }
    }
    co_return status;
  };
  co_return co_await Exclusively(body);
}

Task<Result<AccountKeys>> Catalog::ChangeKeys(std::function<void(AccountKeys&)> change) {
  auto body = [&]() -> Task<Result<AccountKeys>> {
    Draft draft(*view(), NextTime(), meta_.term());
    change(draft.view->keys);
    AccountKeys keys = draft.view->keys;
    if (keys.keys != view()->keys.keys) {
      draft.set.Put(Space::kCatalog, RecordKey(kKeysKind), EncodeKeys(keys));
      ORRERY_CO_TRY_STATUS(co_await Publish(std::move(draft)));
    }
    co_return keys;
  };
  co_return co_await Exclusively(body);
}

Task<Status> Catalog::Cleared(ContainerId container) {
  auto body = [&]() -> Task<Status> {
    Draft draft(*view(), NextTime(), meta_.term());
    std::erase_if(draft.view->dropped,
                  [&](const auto& dropped) { return dropped.first == container; });
    draft.set.frees_space = true;
    draft.set.Delete(Space::kCatalog, RecordKey(kDroppedKind, container.value()));
    co_return co_await Publish(std::move(draft));
  };
  co_return co_await Exclusively(body);
}

}  // namespace orrery::model
