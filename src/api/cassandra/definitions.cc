// Statements that define keyspaces, tables and types: changes of the catalog.
#include "api/cassandra/definition_parts.h"
#include "api/cassandra/failures.h"
#include "base/bytes.h"
#include "cql/schema_document.h"
#include "cql/system_tables.h"
#include "cql/table_options.h"

namespace orrery::cassandra {

using runtime::Task;

namespace {

constexpr Duration kTruncateTime = std::chrono::minutes(1);

}  // namespace

Response Service::Changed(const SchemaChange& change, int version) {
  events_.Publish();
  return MakeSchemaChange(change, version);
}

Task<Response> Service::Define(const cql::Statement& statement, Execution& execution) {
  if (options_.catch_up) {
    co_await options_.catch_up();
  }
  auto run = [&](const auto& what) { return Do(what, execution); };
  Response response = co_await std::visit(run, statement);
  for (int tries = 1; execution.overtaken && tries < kTriesMax; ++tries) {
    execution.overtaken = false;
    response = co_await std::visit(run, statement);
  }
  co_return response;
}

template <typename T>
Task<Response> Service::Do(const T&, Execution& execution) {
  constexpr bool kFunction =
      std::is_same_v<T, cql::CreateFunction> || std::is_same_v<T, cql::DropFunction> ||
      std::is_same_v<T, cql::CreateAggregate> || std::is_same_v<T, cql::DropAggregate>;
  co_return Refused(kFunction ? "User-defined functions are disabled in cassandra.yaml - set "
                                "user_defined_functions_enabled=true to enable"
                              : "The statement is not supported yet.",
                    execution.version);
}

// --- Keyspaces -----------------------------------------------------------------------------------

Task<Response> Service::PutKeyspace(const cql::Keyspace& keyspace, std::string if_match,
                                    SchemaChange change, Execution& execution) {
  model::change::DefineDatabase define{.name = keyspace.name,
                                       .definition = cql::KeyspaceToDocument(keyspace),
                                       .creates = if_match.empty(),
                                       .if_match = std::move(if_match),
                                       .throughput = {}};
  if (define.creates) {
    define.throughput.manual = keyspace.throughput;
  }
  const bool creates = define.creates;
  auto made = co_await catalog_.DefineDatabase(std::move(define));
  if (made && creates) {
    co_await GrantToCreator(
        {cql::KeyspaceResource(keyspace.name), cql::AllTablesResource(keyspace.name),
         cql::FunctionsResource(keyspace.name)},
        execution.client);
  }
  execution.overtaken = !made && made.error().code() == Code::kPreconditionFailed;
  co_return made ? Changed(std::move(change), execution.version)
                 : Failed(made.error(), {.writes = true}, execution.version);
}

Task<Response> Service::Do(const cql::CreateKeyspace& what, Execution& execution) {
  const int version = execution.version;
  if (cql::IsSystemKeyspace(what.name)) {
    co_return NotModifiable(what.name, version);
  }
  if (schemas_.Get()->schema->FindKeyspace(what.name) != nullptr) {
    if (what.if_not_exists) {
      co_return MakeVoid();
    }
    co_return MakeError({.code = ErrorCode::kAlreadyExists,
                         .message = "Cannot add existing keyspace \"" + what.name + "\"",
                         .keyspace = what.name},
                        version);
  }
  const std::string data_centers[] = {cluster().self.data_center};
  auto keyspace = cql::DefineKeyspace(what, data_centers);
  if (!keyspace) {
    co_return Refuse(keyspace.error(), what.name, "", version);
  }
  if (catalog_.view()->FindDatabase(what.name) != nullptr) {
    co_return MakeError({.code = ErrorCode::kAlreadyExists,
                         .message = "\"" + what.name + "\" is a database of another API",
                         .keyspace = what.name},
                        version);
  }
  SchemaChange change{.change = "CREATED", .target = "KEYSPACE", .keyspace = what.name};
  co_return co_await PutKeyspace(*keyspace, "", std::move(change), execution);
}

Task<Response> Service::Do(const cql::AlterKeyspace& what, Execution& execution) {
  const int version = execution.version;
  if (cql::IsSystemKeyspace(what.name)) {
    co_return NotModifiable(what.name, version);
  }
  auto view = schemas_.Get();
  const cql::Keyspace* before = view->schema->FindKeyspace(what.name);
  auto database = view->catalog->FindDatabase(what.name);
  if (before == nullptr || database == nullptr) {
    co_return what.if_exists ? MakeVoid() : NoKeyspace(what.name, version);
  }
  const std::string data_centers[] = {cluster().self.data_center};
  auto after = cql::AlteredKeyspace(what, *before, data_centers);
  if (!after) {
    co_return Refuse(after.error(), what.name, "", version);
  }
  if (after->throughput != before->throughput) {
    // A database shares its throughput from its beginning, or never.
    if (!database->offer) {
      co_return Refused("The keyspace was created without " + std::string(cql::kThroughputOption) +
                            ": its tables have throughput of their own",
                        version);
    }
    model::ThroughputRequest request;
    request.manual = after->throughput;
    Status changed = co_await catalog_.ReplaceOffer(database->offer->number, request, "");
    if (!changed.ok()) {
      co_return Failed(changed, {.writes = true}, version);
    }
  }
  SchemaChange change{.change = "UPDATED", .target = "KEYSPACE", .keyspace = what.name};
  co_return co_await PutKeyspace(*after, EtagOf(*database), std::move(change), execution);
}

Task<Response> Service::Do(const cql::DropKeyspace& what, Execution& execution) {
  const int version = execution.version;
  if (cql::IsSystemKeyspace(what.name)) {
    co_return NotModifiable(what.name, version);
  }
  if (schemas_.Get()->schema->FindKeyspace(what.name) == nullptr) {
    co_return what.if_exists ? MakeVoid() : NoKeyspace(what.name, version);
  }
  Status dropped = co_await catalog_.DropDatabase(what.name, "");
  if (!dropped.ok()) {
    co_return Failed(dropped, {.writes = true}, version);
  }
  co_return Changed({.change = "DROPPED", .target = "KEYSPACE", .keyspace = what.name}, version);
}

// --- Tables --------------------------------------------------------------------------------------

Task<Response> Service::Do(const cql::CreateTable& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.table, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  const std::string& name = what.table.name;
  auto exists = [&] {
    return MakeError({.code = ErrorCode::kAlreadyExists,
                      .message = "Cannot add already existing table \"" + name +
                                 "\" to keyspace \"" + place.keyspace + "\"",
                      .keyspace = place.keyspace,
                      .name = name},
                     version);
  };
  if (place.found->tables.contains(name)) {
    co_return what.if_not_exists ? MakeVoid() : exists();
  }
  auto table = cql::DefineTable(what, *place.found, NewUuid(random_));
  auto throughput = cql::GivenThroughput(what.with.options);
  if (!table || !throughput) {
    co_return Refuse(!table ? table.error() : throughput.error(), place.keyspace, name, version);
  }
  auto made = co_await catalog_.CreateContainer(place.keyspace, ContainerDefinition(*table),
                                                RequestOf(*throughput));
  if (!made && made.error().code() == Code::kAlreadyExists) {
    co_return what.if_not_exists ? MakeVoid() : exists();
  }
  if (!made) {
    co_return Failed(made.error(), {.writes = true}, version);
  }
  co_await GrantToCreator({cql::TableResource(place.keyspace, name)}, execution.client);
  co_return Changed(
      {.change = "CREATED", .target = "TABLE", .keyspace = place.keyspace, .name = name}, version);
}

Task<Response> Service::PutTable(const cql::Table& table, std::string if_match,
                                 Execution& execution) {
  auto container = schemas_.Get()->ContainerOf(table);
  if (container == nullptr) {
    co_return Refused("unconfigured table " + table.name, execution.version);
  }
  auto put = co_await catalog_.ReplaceContainer(container->link, ContainerDefinition(table),
                                                std::move(if_match));
  execution.overtaken = !put && put.error().code() == Code::kPreconditionFailed;
  if (!put) {
    co_return Failed(put.error(), {.writes = true}, execution.version);
  }
  co_return Changed(
      {.change = "UPDATED", .target = "TABLE", .keyspace = table.keyspace, .name = table.name},
      execution.version);
}

Task<Response> Service::Do(const cql::AlterTable& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.table, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists ? MakeVoid() : std::move(*place.refusal);
  }
  const cql::Table* before = place.view->schema->FindTable(place.keyspace, what.table.name);
  if (before == nullptr) {
    co_return what.if_exists
        ? MakeVoid()
        : Refused("Table '" + place.keyspace + "." + what.table.name + "' doesn't exist", version);
  }
  auto container = place.view->ContainerOf(*before);
  auto after = cql::AlteredTable(what, *before, *place.found, clock_.Wall().micros);
  if (!after || container == nullptr) {
    co_return !after ? Refuse(after.error(), place.keyspace, what.table.name, version)
                     : Refused("unconfigured table " + what.table.name, version);
  }
  std::optional<int32_t> throughput;
  if (const auto* options = std::get_if<cql::TableOptions>(&what.change)) {
    auto given = cql::GivenThroughput(options->options);
    if (!given) {
      co_return Refuse(given.error(), place.keyspace, what.table.name, version);
    }
    throughput = *given;
  }
  if (throughput && !container->offer) {
    co_return Refused("The table shares the throughput of its keyspace", version);
  }
  if (throughput) {
    Status changed =
        co_await catalog_.ReplaceOffer(container->offer->number, RequestOf(throughput), "");
    if (!changed.ok()) {
      co_return Failed(changed, {.writes = true}, version);
    }
  }
  if (Status views = co_await AlterViews(*place.found, *after); !views.ok()) {
    co_return Failed(views, {.writes = true}, version);
  }
  if (*after == *before) {
    co_return Changed({.change = "UPDATED",
                       .target = "TABLE",
                       .keyspace = place.keyspace,
                       .name = what.table.name},
                      version);
  }
  co_return co_await PutTable(*after, EtagOf(*container), execution);
}

Task<Response> Service::Do(const cql::DropTable& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.table, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists&& place.found == nullptr && !cql::IsSystemKeyspace(place.keyspace)
        ? MakeVoid()
        : std::move(*place.refusal);
  }
  const cql::Table* table = place.view->schema->FindTable(place.keyspace, what.table.name);
  auto container = table == nullptr ? nullptr : place.view->ContainerOf(*table);
  if (container == nullptr) {
    co_return what.if_exists
        ? MakeVoid()
        : Refused("Table '" + place.keyspace + "." + what.table.name + "' doesn't exist", version);
  }
  if (table->view) {
    co_return Refused(
        "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
        version);
  }
  if (auto views = cql::ViewsOf(*place.found, table->name); !views.empty()) {
    std::string names;
    for (const cql::Table* view : views) {
      names += (names.empty() ? "" : ", ") + view->name;
    }
    co_return Refused(
        "Cannot drop a table when materialized views still depend on it (" + names + ")", version);
  }
  Status dropped = co_await catalog_.DropContainer(container->link, "");
  if (!dropped.ok()) {
    co_return Failed(dropped, {.writes = true}, version);
  }
  for (const auto& other : place.view->catalog->ContainersOf(container->database)) {
    if (IndexedTable(*other) == table->name) {
      co_await DropEntries(*other);
    }
  }
  co_return Changed(
      {.change = "DROPPED", .target = "TABLE", .keyspace = place.keyspace, .name = what.table.name},
      version);
}

Task<Response> Service::Do(const cql::Truncate& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.table, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  const cql::Table* table = place.view->schema->FindTable(place.keyspace, what.table.name);
  auto container = table == nullptr ? nullptr : place.view->ContainerOf(*table);
  if (container == nullptr) {
    co_return Refused("unconfigured table " + what.table.name, version);
  }
  if (table->view) {
    co_return Refused(
        "Cannot TRUNCATE materialized view directly; must truncate base table instead", version);
  }
  const Instant end = clock_.Now() + kTruncateTime;
  Status status = co_await TruncateContainer(*container, end);
  // Whatever is gone by now, what follows from the rest is made anew.
  Status renewed = co_await RenewDerived(place.keyspace, table->name);
  status = status.ok() ? renewed : status;
  co_return status.ok() ? MakeVoid()
                        : MakeError(ErrorCode::kTruncateError, status.message(), version);
}

Task<Status> Service::TruncateContainer(const model::Container& container, Instant end) {
  partition::Ring ring = container.ring();
  types::Epk at;
  for (int moved = 0; at < types::EpkRange().max;) {
    if (clock_.Now() >= end) {
      co_return Status(Code::kTimeout, "It takes too long: there are rows left.");
    }
    const partition::PartitionRange range = ring.map->Find(at);
    rows::TruncateRows truncate;
    partition::Reply reply = co_await router_.ExecuteAt(ring, range, truncate);
    const Code code = reply.status.code();
    if (code == Code::kMoved || code == Code::kSchemaChanged) {
      auto next = co_await router_.LookAgain(ring, ++moved);
      if (!next || next->map == nullptr) {
        co_return Status(Code::kUnavailable, "The partitions are being changed.");
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
    if (reply.body.empty()) {
      at = range.range.max;
    }
  }
  co_return Status::Ok();
}

// --- User types ----------------------------------------------------------------------------------

Task<Response> Service::Do(const cql::CreateType& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.type, execution, schemas_.Get());
  if (place.refusal) {
    co_return std::move(*place.refusal);
  }
  if (place.found->types.contains(what.type.name) && what.if_not_exists) {
    co_return MakeVoid();
  }
  auto type = cql::DefineType(what, *place.found);
  if (!type) {
    co_return Refuse(type.error(), place.keyspace, what.type.name, version);
  }
  cql::Keyspace after = *place.found;
  after.types.insert_or_assign(what.type.name, *type);
  auto database = place.view->catalog->FindDatabase(place.keyspace);
  SchemaChange change{
      .change = "CREATED", .target = "TYPE", .keyspace = place.keyspace, .name = what.type.name};
  co_return co_await PutKeyspace(after, EtagOf(*database), std::move(change), execution);
}

Task<Response> Service::Do(const cql::AlterType& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.type, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists ? MakeVoid() : std::move(*place.refusal);
  }
  if (!place.found->types.contains(what.type.name) && what.if_exists) {
    co_return MakeVoid();
  }
  auto after = cql::AlteredType(what, *place.found);
  if (!after) {
    co_return Refuse(after.error(), place.keyspace, what.type.name, version);
  }
  auto database = place.view->catalog->FindDatabase(place.keyspace);
  SchemaChange change{
      .change = "UPDATED", .target = "TYPE", .keyspace = place.keyspace, .name = what.type.name};
  co_return co_await PutKeyspace(*after, EtagOf(*database), std::move(change), execution);
}

Task<Response> Service::Do(const cql::DropType& what, Execution& execution) {
  const int version = execution.version;
  Place place = PlaceOf(what.type, execution, schemas_.Get());
  if (place.refusal) {
    co_return what.if_exists && !cql::IsSystemKeyspace(place.keyspace) ? MakeVoid()
                                                                       : std::move(*place.refusal);
  }
  auto allowed = cql::CheckDropType(what, *place.found);
  if (!allowed) {
    co_return Refuse(allowed.error(), place.keyspace, what.type.name, version);
  }
  if (!place.found->types.contains(what.type.name)) {
    co_return MakeVoid();
  }
  cql::Keyspace after = *place.found;
  after.types.erase(what.type.name);
  auto database = place.view->catalog->FindDatabase(place.keyspace);
  SchemaChange change{
      .change = "DROPPED", .target = "TYPE", .keyspace = place.keyspace, .name = what.type.name};
  co_return co_await PutKeyspace(after, EtagOf(*database), std::move(change), execution);
}

}  // namespace orrery::cassandra
