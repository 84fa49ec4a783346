#include "api/cassandra/derived_builder.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "model/catalog_evaluate.h"
#include "runtime/when_all.h"
#include "storage/keys.h"

namespace orrery::cassandra {

using partition::Reply;
using runtime::Task;

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);
constexpr Duration kBuildTime = std::chrono::hours(24);
constexpr uint32_t kPageRows = 500;
constexpr size_t kAtOnce = 16;
constexpr int kTriesMax = 20;
constexpr Duration kPause = std::chrono::milliseconds(200);  // when something is not available
// After that whoever made the container of an index has put the index into its table, or never
// will.
constexpr Duration kOrphanAge = std::chrono::minutes(10);

// Whether it can be filled: one whose entries are nowhere never finds anything.
bool Building(const SchemaView& view, const cql::Table& table, const cql::Index& index) {
  return index.state == cql::IndexState::kBuilding &&
         view.ContainerOf(table, index.name) != nullptr;
}

bool Building(const SchemaView& view, const cql::Table& table) {
  return std::ranges::any_of(table.indexes,
                             [&](const cql::Index& index) { return Building(view, table, index); });
}

// Whether a table has the index whose entries these are. What cannot be read may have it.
bool HasIndex(const SchemaView& view, const model::Container& entries) {
  const std::string name = IndexedTable(entries);
  const cql::Table* table = view.schema->FindTable(entries.database_name, name);
  if (table == nullptr) {
    return view.catalog->containers.contains({entries.database, name});
  }
  return std::ranges::any_of(table->indexes, [&](const cql::Index& index) {
    return IndexContainerName(*table, index) == entries.name;
  });
}

// The views of a table that are not ready.
std::vector<std::shared_ptr<const model::Container>> ViewsToBuild(const SchemaView& view,
                                                                  const cql::Table& table) {
  std::vector<std::shared_ptr<const model::Container>> found;
  for (const auto& [name, other] : view.schema->FindKeyspace(table.keyspace)->tables) {
    if (other.view && other.view->base == table.name && !other.view->ready) {
      if (auto container = view.ContainerOf(other)) {
        found.push_back(std::move(container));
      }
    }
  }
  return found;
}

bool MayComeBack(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kUnknownOutcome;
}

// Of what one write is to do.
bool TooMuch(Code code) { return code == Code::kInvalidArgument || code == Code::kTooLarge; }

}  // namespace

DerivedBuilder::DerivedBuilder(model::Catalog& catalog, const SchemaCache& schemas,
                               partition::Router& router, partition::ReplicaTable& replicas,
                               BatchKeeper& batches, runtime::WorkerPool& workers,
                               const Clock& clock)
    : catalog_(catalog),
      schemas_(schemas),
      router_(router),
      replicas_(replicas),
      batches_(batches),
      workers_(workers),
      clock_(clock) {}

void DerivedBuilder::Start() { workers_.at(0).Spawn(Loop(gate_.Enter())); }

void DerivedBuilder::Stop() {
  stopping_ = true;
  gate_.Close();
}

Task<> DerivedBuilder::Loop(runtime::Gate::Pass pass) {
  while (!stopping_) {
    co_await Look();
    co_await runtime::Sleep(kInterval);
  }
}

bool DerivedBuilder::Leads(const model::Container& table) const {
  auto replica = replicas_.Find(table.map->ranges().front().id);
  return replica != nullptr && replica->set().leads();
}

Task<> DerivedBuilder::Look() {
  auto view = schemas_.Get();
  if (view->schema == looked_at_) {
    co_return;
  }
  bool all = true;
  for (const auto& [name, keyspace] : view->schema->keyspaces) {
    for (const auto& [table_name, table] : keyspace.tables) {
      auto container = view->ContainerOf(table);
      if (stopping_ || container == nullptr ||
          (!Building(*view, table) && ViewsToBuild(*view, table).empty())) {
        continue;
      }
      all = false;
      if (!Leads(*container)) {
        continue;
      }
      Status built = co_await Build(name, table_name, clock_.Now() + kBuildTime);
      if (!built.ok()) {
        log::Debug("an index or view cannot be filled yet",
                   {{"table", name + "." + table_name}, {"why", built.ToString()}});
      }
    }
  }
  if (co_await DropOrphans(*view) && all) {
    looked_at_ = view->schema;
  }
}

Task<bool> DerivedBuilder::DropOrphans(const SchemaView& view) {
  bool none = true;
  for (const auto& [id, container] : view.catalog->containers_by_id) {
    if (IndexedTable(*container).empty() || HasIndex(view, *container)) {
      continue;
    }
    none = false;
    if (Leads(*container) && clock_.Wall().micros - container->time.micros > kOrphanAge.count()) {
      IgnoreError(co_await catalog_.DropContainer(container->link, ""), "it is looked for again");
    }
  }
  co_return none;
}

Task<Status> DerivedBuilder::Build(std::string keyspace, std::string table, Instant end) {
  auto view = schemas_.Get();
  const cql::Table* found = view->schema->FindTable(keyspace, table);
  auto container = found == nullptr ? nullptr : view->ContainerOf(*found);
  if (container == nullptr) {
    co_return Status::Ok();
  }
  const auto views = ViewsToBuild(*view, *found);
  if (!Building(*view, *found) && views.empty()) {
    co_return Status::Ok();
  }
  if (!views.empty()) {
    // The number of the table may be that of writes that know nothing of them.
    auto raise = [](cql::Table& base) { ++base.derived; };
    ORRERY_CO_RETURN_IF_ERROR(co_await Put(*container, raise));
    auto now = schemas_.Get()->catalog->FindContainer(container->id);
    container = now == nullptr ? container : now;
  }
  ORRERY_CO_RETURN_IF_ERROR(co_await Settle(*container));
  ORRERY_CO_RETURN_IF_ERROR(co_await RefreshAll(*container, end));
  ORRERY_CO_RETURN_IF_ERROR(co_await MarkReady(*container, *found));
  for (const auto& each : views) {
    auto ready = [](cql::Table& table) { table.view->ready = true; };
    ORRERY_CO_RETURN_IF_ERROR(co_await Put(*each, ready));
  }
  co_return Status::Ok();
}

// What was evaluated with an older definition stands before this entry in the log of its partition,
// whoever leads it.
Task<Status> DerivedBuilder::Settle(const model::Container& table) {
  for (const partition::PartitionRange& range : table.map->ranges()) {
    rows::EndBatch nothing;
    nothing.epk = range.range.min;
    Reply reply = co_await router_.Execute(table.ring(), nothing.epk, nothing);
    if (!reply.status.ok()) {
      co_return reply.status;
    }
  }
  co_return Status::Ok();
}

Task<Status> DerivedBuilder::RefreshAll(const model::Container& table, Instant end) {
  partition::Ring ring = table.ring();
  types::Epk at;
  std::string after;
  for (int moved = 0; at < types::EpkRange().max;) {
    if (stopping_ || clock_.Now() >= end) {
      co_return Status(Code::kTimeout, "there are rows left");
    }
    const partition::PartitionRange range = ring.map->Find(at);
    rows::ReadRows read;
    read.range = {at, types::EpkRange().max};
    read.rows_max = kPageRows;
    read.after = after;
    Reply reply = co_await router_.ExecuteAt(ring, range, read);
    const Code code = reply.status.code();
    if (code == Code::kMoved || code == Code::kSchemaChanged) {
      auto next = co_await router_.LookAgain(ring, ++moved);
      if (!next || next->map == nullptr) {
        co_return Status(Code::kUnavailable, "the partitions are being changed");
      }
      ring = std::move(*next);
      continue;
    }
    if (code == Code::kThrottled) {
      co_await runtime::Sleep(std::chrono::milliseconds(reply.status.retry_after_ms()));
      continue;
    }
    if (!reply.status.ok()) {
      co_return reply.status;
    }
    auto page = rows::RowPage::Decode(reply.body);
    if (!page) {
      co_return page.error();
    }
    ORRERY_CO_RETURN_IF_ERROR(co_await RefreshPage(table.id, *page));
    after = page->last;
    if (after.empty()) {
      at = range.range.max;
    } else if (!storage::ReadItemEpk(after, &at)) {
      co_return Status(Code::kInternal, "the key of a row is malformed");
    }
  }
  co_return Status::Ok();
}

Task<Status> DerivedBuilder::RefreshPage(ContainerId table, const rows::RowPage& page) {
  for (size_t at = 0; at < page.partitions.size(); at += kAtOnce) {
    std::vector<Task<Status>> tasks;
    for (size_t i = at; i < std::min(at + kAtOnce, page.partitions.size()); ++i) {
      tasks.push_back(Refresh(table, page.partitions[i]));
    }
    for (const Status& status : co_await runtime::WhenAll(std::move(tasks))) {
      ORRERY_CO_RETURN_IF_ERROR(status);
    }
  }
  co_return Status::Ok();
}

Task<Status> DerivedBuilder::Refresh(ContainerId table, const rows::RowPage::Partition& partition) {
  Status all = co_await RefreshRows(table, partition.key, partition.rows);
  if (!TooMuch(all.code())) {
    co_return all;
  }
  for (const rows::RowPage::Row& row : partition.rows) {
    Status alone = co_await RefreshRows(table, partition.key, std::span(&row, 1));
    if (TooMuch(alone.code())) {
      // It is not found by the index.
      log::Warning("a row cannot be indexed", {{"why", alone.message()}});
    } else {
      ORRERY_CO_RETURN_IF_ERROR(alone);
    }
  }
  co_return Status::Ok();
}

Task<Status> DerivedBuilder::RefreshRows(ContainerId table, std::string_view partition_key,
                                         std::span<const rows::RowPage::Row> rows) {
  for (int tries = 1;; ++tries) {
    rows::WriteRows write;
    write.partition_key = partition_key;
    write.epk = types::CassandraEpk(write.partition_key);
    for (const rows::RowPage::Row& row : rows) {
      rows::RowChange& change = write.changes.emplace_back();
      change.action = rows::RowAction::kRefresh;
      change.key = row.key;
    }
    BatchKeeper::Written written = co_await batches_.Write(table, write);
    const Code code = written.status.code();
    const bool throttled = code == Code::kThrottled;
    if (!throttled && (!MayComeBack(code) || tries >= kTriesMax || stopping_)) {
      co_return written.status;
    }
    co_await runtime::Sleep(throttled
                                ? std::chrono::milliseconds(written.status.retry_after_ms())
                                : std::chrono::duration_cast<std::chrono::milliseconds>(kPause));
  }
}

Task<Status> DerivedBuilder::MarkReady(const model::Container& container, const cql::Table& built) {
  auto ready = [&](cql::Table& table) {
    for (cql::Index& index : table.indexes) {
      // Not one that was made again under the same name.
      auto same = [&](const cql::Index& other) { return other == index; };
      if (Building(*schemas_.Get(), table, index) && std::ranges::any_of(built.indexes, same)) {
        index.state = cql::IndexState::kReady;
      }
    }
  };
  return Put(container, ready);
}

Task<Status> DerivedBuilder::Put(const model::Container& table,
                                 std::function<void(cql::Table&)> change) {
  // Others may change the definition at the same time.
  for (int tries = 0; tries < kTriesMax; ++tries) {
    auto view = schemas_.Get();
    auto container = view->catalog->FindContainer(table.id);
    const cql::Table* now = view->schema->FindTable(table.database_name, table.name);
    if (container == nullptr || now == nullptr || view->ContainerOf(*now) != container) {
      co_return Status::Ok();
    }
    cql::Table after = *now;
    change(after);
    if (after == *now) {
      co_return Status::Ok();
    }
    auto done =
        co_await catalog_.ReplaceContainer(container->link, ContainerDefinition(after),
                                           model::EtagText(container->etag, container->time));
    if (done || done.error().code() != Code::kPreconditionFailed) {
      co_return done ? Status::Ok() : done.error();
    }
  }
  co_return Status(Code::kUnavailable, "the table is changed all the time");
}

}  // namespace orrery::cassandra
