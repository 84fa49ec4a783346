// Statements that define indexes and views: containers that follow from tables, and the definitions
// of these tables.
#include "api/cassandra/definition_parts.h"
#include "api/cassandra/failures.h"
#include "base/bytes.h"
#include "cql/define.h"
#include "cql/system_tables.h"

namespace orrery::cassandra {

using runtime::Task;

namespace {

// How long a statement waits for what it made to be filled.
constexpr Duration kFillTime = std::chrono::seconds(1);

model::ThroughputRequest SameThroughput(const model::Container& table) {
  model::ThroughputRequest request;
  if (!table.offer) {
    return request;
  }
  (table.offer->autoscale() ? request.autoscale_max : request.manual) = table.offer->spendable();
  return request;
}

}  // namespace

// Nobody else's: whoever is overtaken takes away only what is its own.
Task<Status> Service::CreateEntries(const cql::Table& table, cql::Index& index,
                                    const model::Container& of) {
  std::string number;
  Encoder(number).U64(random_.Next());
  index.container = table.name + "." + index.name + "." + ToHex(number);
  auto made = co_await catalog_.CreateContainer(table.keyspace, IndexDefinition(table, index),
                                                SameThroughput(of));
  co_return made ? Status::Ok() : made.error();
}

Task<> Service::DropEntries(const model::Container& entries) {
  IgnoreError(co_await catalog_.DropContainer(entries.link, ""),
              "DerivedBuilder finds what belongs to no index");
}

Task<Response> Service::Do(const cql::CreateIndex& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.table, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  const cql::Table* before = place.view->schema->FindTable(place.keyspace, what.table.name);
  auto container = before == nullptr ? nullptr : place.view->ContainerOf(*before);
  if (container == nullptr) {
    co_return Refused("Table '" + place.keyspace + "." + what.table.name + "' doesn't exist",
                      version);
  }
  auto after = cql::DefineIndex(what, *before, *place.found);
  if (!after) {
    co_return Refuse(after.error(), place.keyspace, what.table.name, version);
  }
  if (*after == *before) {
    co_return MakeVoid();
  }
  const bool kept = after->derived != before->derived;
  if (kept) {
    Status made = co_await CreateEntries(*after, after->indexes.back(), *container);
    if (!made.ok()) {
      co_return Failed(made, {.writes = true}, version);
    }
  }
  Response response = co_await PutTable(*after, EtagOf(*container), execution);
  if (kept && execution.overtaken) {
    if (auto entries = schemas_.Get()->ContainerOf(*after, after->indexes.back().name)) {
      co_await DropEntries(*entries);
    }
  }
  if (kept && response.opcode != Opcode::kError) {
    IgnoreError(co_await builder_.Build(place.keyspace, after->name, clock_.Now() + kFillTime),
                "it goes on by itself");
  }
  co_return response;
}

Task<Response> Service::Do(const cql::DropIndex& what, Execution& execution) {
  Place place = PlaceOf(what.index, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  auto after = cql::WithoutIndex(what, *place.found);
  if (!after) {
    co_return Refuse(after.error(), place.keyspace, what.index.name, execution.version);
  }
  if (!*after) {
    co_return MakeVoid();
  }
  auto container = place.view->ContainerOf(**after);
  if (container == nullptr) {
    co_return MakeVoid();
  }
  const cql::Table* before = cql::FindIndexedTable(*place.found, what.index.name);
  auto entries = place.view->ContainerOf(*before, what.index.name);
  Response response = co_await PutTable(**after, EtagOf(*container), execution);
  if (response.opcode != Opcode::kError && entries != nullptr) {
    co_await DropEntries(*entries);
  }
  co_return response;
}

// --- Views ---------------------------------------------------------------------------------------

// Writes to the table make rows of the view up to the moment that its number is another one.
Task<Response> Service::TellBase(const cql::Table& base, SchemaChange change,
                                 Execution& execution) {
  for (int tries = 0;; ++tries) {
    auto view = schemas_.Get();
    const cql::Table* now = view->schema->FindTable(base.keyspace, base.name);
    auto container = now == nullptr ? nullptr : view->ContainerOf(*now);
    if (container == nullptr) {
      co_return Refused("unconfigured table " + base.name, execution.version);
    }
    cql::Table after = *now;
    ++after.derived;
    auto put = co_await catalog_.ReplaceContainer(container->link, ContainerDefinition(after),
                                                  EtagOf(*container));
    if (put) {
      co_return Changed(change, execution.version);
    }
    if (put.error().code() != Code::kPreconditionFailed || tries >= kTriesMax) {
      co_return Failed(put.error(), {.writes = true}, execution.version);
    }
  }
}

Task<Response> Service::Do(const cql::CreateView& what, Execution& execution) {
  const int version = execution.version;
  cql::QualifiedName name = what.view;
  if (name.keyspace.empty()) {
    name.keyspace = what.table.keyspace;
  }
  Place place = PlaceOf(name, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  if (!what.table.keyspace.empty() && what.table.keyspace != place.keyspace) {
    co_return Refused("Cannot create a materialized view on a table in a separate keyspace",
                      version);
  }
  auto exists = [&] {
    return MakeError({.code = ErrorCode::kAlreadyExists,
                      .message = "Cannot add already existing table \"" + what.view.name +
                                 "\" to keyspace \"" + place.keyspace + "\"",
                      .keyspace = place.keyspace,
                      .name = what.view.name},
                     version);
  };
  if (place.found->tables.contains(what.view.name)) {
    co_return what.if_not_exists ? MakeVoid() : exists();
  }
  const cql::Table* base = place.view->schema->FindTable(place.keyspace, what.table.name);
  auto of = base == nullptr ? nullptr : place.view->ContainerOf(*base);
  if (of == nullptr) {
    co_return Refused("Base table '" + what.table.name + "' doesn't exist", version);
  }
  auto view = cql::DefineView(what, *base, *place.found, NewUuid(random_));
  if (!view) {
    co_return Refuse(view.error(), place.keyspace, what.view.name, version);
  }
  auto made = co_await catalog_.CreateContainer(place.keyspace, ContainerDefinition(*view),
                                                SameThroughput(*of));
  if (!made) {
    co_return made.error().code() == Code::kAlreadyExists
        ? (what.if_not_exists ? MakeVoid() : exists())
        : Failed(made.error(), {.writes = true}, version);
  }
  SchemaChange change{
      .change = "CREATED", .target = "TABLE", .keyspace = place.keyspace, .name = view->name};
  IgnoreError(co_await builder_.Build(place.keyspace, base->name, clock_.Now() + kFillTime),
              "it goes on by itself");
  co_return Changed(change, version);
}

Task<Response> Service::Do(const cql::AlterView& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.view, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists ? MakeVoid() : std::move(*place.refusal);
  }
  const cql::Table* before = place.view->schema->FindTable(place.keyspace, what.view.name);
  auto container = before == nullptr ? nullptr : place.view->ContainerOf(*before);
  if (container == nullptr || !before->view) {
    co_return what.if_exists
        ? MakeVoid()
        : Refused("Materialized view '" + place.keyspace + "." + what.view.name + "' doesn't exist",
                  version);
  }
  auto after = cql::AlteredView(what, *before);
  if (!after) {
    co_return Refuse(after.error(), place.keyspace, what.view.name, version);
  }
  co_return co_await PutTable(*after, EtagOf(*container), execution);
}

Task<Response> Service::Do(const cql::DropView& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.view, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists && !cql::IsSystemKeyspace(place.keyspace) ? MakeVoid()
                                                                       : std::move(*place.refusal);
  }
  const cql::Table* view = place.view->schema->FindTable(place.keyspace, what.view.name);
  auto container = view == nullptr ? nullptr : place.view->ContainerOf(*view);
  if (container == nullptr || !view->view) {
    co_return what.if_exists
        ? MakeVoid()
        : Refused("Materialized view '" + place.keyspace + "." + what.view.name + "' doesn't exist",
                  version);
  }
  Status dropped = co_await catalog_.DropContainer(container->link, "");
  if (!dropped.ok()) {
    co_return Failed(dropped, {.writes = true}, version);
  }
  const cql::Table* base = place.view->schema->FindTable(place.keyspace, view->view->base);
  SchemaChange change{
      .change = "DROPPED", .target = "TABLE", .keyspace = place.keyspace, .name = view->name};
  if (base == nullptr) {
    co_return Changed(change, version);
  }
  co_return co_await TellBase(*base, std::move(change), execution);
}

// Those of all columns get the new ones before the table has them.
Task<Status> Service::AlterViews(const cql::Keyspace& keyspace, const cql::Table& base) {
  for (const cql::Table* view : cql::ViewsOf(keyspace, base.name)) {
    cql::Table after = cql::ViewAfter(*view, base);
    auto container = schemas_.Get()->ContainerOf(*view);
    if (after == *view || container == nullptr) {
      continue;
    }
    auto put = co_await catalog_.ReplaceContainer(container->link, ContainerDefinition(after), "");
    if (!put) {
      co_return put.error();
    }
  }
  co_return Status::Ok();
}

// --- After TRUNCATE ------------------------------------------------------------------------------

// A write that came between, and one whose batch is still kept, name containers that are gone then:
// what they told these is lost, and so is nothing that the rows do not say.
Task<Status> Service::RenewDerived(const std::string& keyspace, const std::string& name) {
  Status status;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (options_.catch_up) {
      co_await options_.catch_up();
    }
    auto view = schemas_.Get();
    const cql::Table* table = view->schema->FindTable(keyspace, name);
    auto container = table == nullptr ? nullptr : view->ContainerOf(*table);
    if (container == nullptr || view->DerivationOf(container->id) == nullptr) {
      co_return Status::Ok();
    }
    status = co_await RenewViews(*view, *table);
    if (status.ok()) {
      status = co_await RenewIndexes(*view, *table);
    }
    if (status.code() != Code::kPreconditionFailed) {
      break;
    }
  }
  events_.Publish();
  if (status.ok()) {
    IgnoreError(co_await builder_.Build(keyspace, name, clock_.Now() + kFillTime),
                "it goes on by itself");
  }
  co_return status;
}

Task<Status> Service::RenewViews(const SchemaView& view, const cql::Table& base) {
  for (const cql::Table* each :
       cql::ViewsOf(*view.schema->FindKeyspace(base.keyspace), base.name)) {
    auto container = view.ContainerOf(*each);
    if (container == nullptr) {
      continue;
    }
    cql::Table after = *each;
    after.view->ready = false;
    auto put = co_await catalog_.RenewContainer(container->link, ContainerDefinition(after),
                                                EtagOf(*container));
    if (!put && put.error().code() != Code::kNotFound) {
      co_return put.error();
    }
  }
  co_return Status::Ok();
}

// Writes know of all of it from the moment that the number of the table is another one.
Task<Status> Service::RenewIndexes(const SchemaView& view, const cql::Table& base) {
  auto container = view.ContainerOf(base);
  cql::Table after = base;
  ++after.derived;
  for (cql::Index& index : after.indexes) {
    if (index.state == cql::IndexState::kScanned) {
      continue;
    }
    Status made = co_await CreateEntries(after, index, *container);
    if (!made.ok()) {
      co_return made;
    }
    index.state = cql::IndexState::kBuilding;
  }
  auto put = co_await catalog_.ReplaceContainer(container->link, ContainerDefinition(after),
                                                EtagOf(*container));
  const bool overtaken = !put && put.error().code() == Code::kPreconditionFailed;
  auto now = schemas_.Get();
  for (const cql::Index& index : base.indexes) {
    auto entries = put         ? view.ContainerOf(base, index.name)
                   : overtaken ? now->ContainerOf(after, index.name)
                               : nullptr;
    if (entries != nullptr) {
      co_await DropEntries(*entries);
    }
  }
  co_return put ? Status::Ok() : put.error();
}

}  // namespace orrery::cassandra
