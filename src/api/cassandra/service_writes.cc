// Writes: of one statement, and of batches.
#include <algorithm>
#include <set>

#include "api/cassandra/failures.h"
#include "api/cassandra/row_values.h"
#include "api/cassandra/service.h"
#include "base/kill_point.h"
#include "cql/value.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {

using partition::Reply;
using partition::RequestUnits;
using runtime::Task;

namespace {

constexpr size_t kBatchBytesWarned = 5 * 1024;
constexpr size_t kPartitionsWarned = 10;
constexpr size_t kAtOnce = 64;  // partitions that one batch writes to side by side

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

// A batch of counters has nothing else in it, and the others have none. `first_counts`: whether its
// first statement counts.
Status CheckKinds(bool counts, bool first_counts, BatchRequest::Type type) {
  if (type == BatchRequest::Type::kCounter && !counts) {
    return Invalid("Cannot include non-counter statement in a counter batch");
  }
  if (type == BatchRequest::Type::kLogged && counts) {
    return Invalid("Cannot include a counter statement in a logged batch");
  }
  if (counts != first_counts) {
    return Invalid("Counter and non-counter mutations cannot exist in the same batch");
  }
  return Status::Ok();
}

}  // namespace

Task<Service::Written> Service::Write(const PartitionWrite& write) {
  rows::WriteRows operation;
  operation.partition_key = write.write.partition_key;
  operation.epk = types::CassandraEpk(operation.partition_key);
  operation.changes = write.write.changes;
  operation.conditions = write.write.conditions;
  Reply reply = co_await router_.Execute(write.container->ring(), operation.epk, operation);
  Written written{.status = reply.status, .charge = reply.charge, .answer = {}};
  if (reply.status.ok()) {
    auto answer = rows::WriteAnswer::Decode(reply.body);
    if (!answer) {
      written.status = answer.error();
    } else {
      written.answer = std::move(*answer);
    }
  }
  co_return written;
}

Status Service::Gather(const WritePlan& plan, const SchemaView& view, const Binding& binding,
                       const WritePlan::Defaults& defaults, std::vector<PartitionWrite>& writes) {
  auto container = view.ContainerOf(plan.table());
  if (container == nullptr) {
    return Invalid("unconfigured table " + plan.table().name);
  }
  auto bound = plan.Bind(binding, defaults);
  if (!bound) {
    return bound.error();
  }
  for (BoundWrite& write : *bound) {
    auto same = [&](const PartitionWrite& other) {
      return other.container->id == container->id &&
             other.write.partition_key == write.partition_key;
    };
    auto found = std::ranges::find_if(writes, same);
    if (found == writes.end()) {
      writes.push_back({&plan, std::move(write), container});
      continue;
    }
    auto& changes = found->write.changes;
    auto& conditions = found->write.conditions;
    std::ranges::move(write.changes, std::back_inserter(changes));
    std::ranges::move(write.conditions, std::back_inserter(conditions));
    if (changes.size() > rows::kChangesMax) {
      return Status(Code::kTooLarge, "Batch too large");
    }
  }
  return Status::Ok();
}

// The first column tells whether it was done; if not, the others show what was there.
Result<Response> Service::ConditionAnswer(const std::vector<PartitionWrite>& writes,
                                          const rows::WriteAnswer& answer,
                                          Execution& execution) const {
  const WritePlan& plan = *writes.front().plan;
  const cql::Table& table = plan.table();
  std::vector<ColumnSpec> specs{{table.keyspace, table.name, "[applied]", cql::TypeId::kBoolean}};
  RowValues values(table);
  const bool many = writes.front().write.conditions.size() > 1;
  std::vector<const cql::Column*> shown;
  ORRERY_TRY_STATUS(values.BeginPartition(writes.front().write.partition_key));
  std::vector<std::vector<std::optional<std::string>>> rows;
  for (const rows::SeenRow& seen : answer.seen) {
    if (seen.static_row) {
      ORRERY_TRY_STATUS(values.SetStatic(*seen.static_row, answer.now, seen.deleted));
    }
    bool exists = false;
    if (seen.row) {
      ORRERY_TRY(cql::LiveRow live, cql::ReadRow(*seen.row, answer.now, seen.deleted));
      exists = live.exists();
    }
    if (exists) {
      ORRERY_TRY_STATUS(values.SetRow(seen.key, *seen.row, answer.now, seen.deleted));
    } else {
      values.SetNoRow();
    }
    if (!exists && !(seen.static_row && table.has_static())) {
      continue;
    }
    auto& row = rows.emplace_back();
    for (const RowValues::Value& value : values.values()) {
      row.emplace_back(value);
    }
  }
  if (!rows.empty()) {
    shown = plan.ShownColumns();
    if (many) {
      shown.clear();
      for (const cql::Column& column : table.columns) {
        shown.push_back(&column);
      }
    }
    for (const cql::Column* column : shown) {
      specs.push_back({table.keyspace, table.name, column->name, column->type});
    }
  }
  EncodedColumns encoded(specs, execution.version);
  RowsWriter writer(encoded, {.skip_metadata = false, .new_metadata_id = {}});
  if (rows.empty()) {
    writer.Cell(cql::BooleanBytes(answer.applied));
    writer.EndRow();
  }
  for (const auto& row : rows) {
    writer.Cell(cql::BooleanBytes(false));
    for (const cql::Column* column : shown) {
      writer.CellOrNull(row[static_cast<size_t>(column - table.columns.data())]);
    }
    writer.EndRow();
  }
  return writer.Finish();
}

Task<Response> Service::WriteAll(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                 Execution& execution) {
  RequestUnits charge;
  Status status;
  rows::WriteAnswer answer;
  for (size_t at = 0; at < writes.size() && status.ok(); at += kAtOnce) {
    std::vector<Written> done;
    if (writes.size() == 1) {
      done.push_back(co_await Write(writes[0]));
    } else {
      std::vector<Task<Written>> tasks;
      for (size_t i = at; i < std::min(at + kAtOnce, writes.size()); ++i) {
        tasks.push_back(Write(writes[i]));
      }
      done = co_await runtime::WhenAll(std::move(tasks));
    }
    for (Written& each : done) {
      charge += each.charge;
      if (!each.status.ok() && status.ok()) {
        status = each.status;
      }
      answer = std::move(each.answer);
    }
  }
  Response response;
  if (!status.ok()) {
    response = Failed(status, attempt, execution.version);
  } else if (attempt.conditional) {
    auto made = ConditionAnswer(writes, answer, execution);
    response = made ? std::move(*made) : Failed(made.error(), attempt, execution.version);
  } else {
    response = MakeVoid();
  }
  AddCharge(response, charge);
  co_return response;
}

Task<Response> Service::RunWrite(const Compiled& compiled, const WritePlan& plan,
                                 Execution& execution) {
  const Attempt attempt{.consistency = execution.parameters.consistency,
                        .writes = true,
                        .conditional = plan.conditional(),
                        .write_type = plan.counts() ? "COUNTER" : "SIMPLE"};
  cql::FunctionContext functions = NewContext();
  const Binding binding{execution.values, functions};
  std::vector<PartitionWrite> writes;
  Status gathered = Gather(plan, *schemas_.Get(), binding,
                           {.timestamp = execution.parameters.timestamp, .ttl = {}}, writes);
  if (!gathered.ok()) {
    co_return Failed(gathered, attempt, execution.version);
  }
  co_return co_await WriteAll(std::move(writes), attempt, execution);
}

Task<Response> Service::RunBatchText(const Compiled& compiled, const BatchPlan& plan,
                                     Execution& execution) {
  cql::FunctionContext functions = NewContext();
  const Binding binding{execution.values, functions};
  WritePlan::Defaults defaults{.timestamp = execution.parameters.timestamp, .ttl = {}};
  auto read = [&](const std::optional<cql::Term>& term, auto& to, size_t bytes) -> Status {
    if (!term) {
      return Status::Ok();
    }
    auto bound = term->Bind(binding.values, binding.context);
    if (!bound) {
      return bound.error();
    }
    if (bound->has_value() && bound->bytes().size() == bytes) {
      to = bytes == 8 ? cql::ReadBigint(bound->bytes()) : cql::ReadInt(bound->bytes());
    }
    return Status::Ok();
  };
  Status status = read(plan.timestamp, defaults.timestamp, 8);
  std::optional<int64_t> ttl;
  if (status.ok()) {
    status = read(plan.ttl, ttl, 4);
  }
  if (ttl) {
    defaults.ttl = static_cast<int32_t>(*ttl);
  }
  std::vector<BatchPart> parts;
  for (const WritePlan& write : plan.writes) {
    parts.push_back({&write, execution.values});
  }
  const auto type = static_cast<BatchRequest::Type>(plan.kind);
  if (!status.ok()) {
    co_return Failed(status, {}, execution.version);
  }
  co_return co_await RunParts(parts, type, defaults, execution);
}

Task<Response> Service::RunParts(const std::vector<BatchPart>& parts, BatchRequest::Type type,
                                 const WritePlan::Defaults& defaults, Execution& execution) {
  Attempt attempt{.consistency = execution.parameters.consistency,
                  .writes = true,
                  .conditional = false,
                  .write_type = type == BatchRequest::Type::kLogged    ? "BATCH"
                                : type == BatchRequest::Type::kCounter ? "COUNTER"
                                                                       : "UNLOGGED_BATCH"};
  cql::FunctionContext functions = NewContext();
  auto view = schemas_.Get();
  std::vector<PartitionWrite> writes;
  Status status;
  for (const BatchPart& part : parts) {
    attempt.conditional = attempt.conditional || part.plan->conditional();
    if (status.ok()) {
      status = CheckKinds(part.plan->counts(), parts[0].plan->counts(), type);
    }
    if (status.ok()) {
      status = Gather(*part.plan, *view, {part.values, functions}, defaults, writes);
    }
  }
  if (status.ok() && attempt.conditional && defaults.timestamp &&
      defaults.timestamp != execution.parameters.timestamp) {
    status = Invalid("Cannot provide custom timestamp for conditional BATCH");
  }
  if (status.ok() && attempt.conditional && writes.size() > 1) {
    const bool tables = std::ranges::any_of(writes, [&](const PartitionWrite& write) {
      return write.container->id != writes[0].container->id;
    });
    status = Invalid(tables ? "Batch with conditions cannot span multiple tables"
                            : "Batch with conditions cannot span multiple partitions");
  }
  if (!status.ok()) {
    co_return Failed(status, attempt, execution.version);
  }
  if (writes.empty()) {
    co_return MakeVoid();
  }
  std::vector<std::string> warnings = WarningsOf(writes, type);
  const bool logged = type == BatchRequest::Type::kLogged && writes.size() > 1;
  Response response = co_await (logged ? WriteLogged(std::move(writes), attempt, execution)
                                       : WriteAll(std::move(writes), attempt, execution));
  response.warnings = std::move(warnings);
  co_return response;
}

std::vector<std::string> Service::WarningsOf(const std::vector<PartitionWrite>& writes,
                                             BatchRequest::Type type) {
  std::vector<std::string> warnings;
  if (writes.size() < 2) {
    return warnings;
  }
  size_t bytes = 0;
  std::set<std::string> tables;
  for (const PartitionWrite& write : writes) {
    tables.insert(write.plan->table().keyspace + "." + write.plan->table().name);
    for (const rows::RowChange& change : write.write.changes) {
      for (const rows::CellChange& cell : change.cells) {
        bytes += cell.value.size();
      }
    }
  }
  std::string names;
  for (const std::string& table : tables) {
    names += (names.empty() ? "" : ", ") + table;
  }
  if (bytes > kBatchBytesWarned) {
    warnings.push_back("Batch for [" + names + "] is of size " + std::to_string(bytes) +
                       ", exceeding specified threshold of " + std::to_string(kBatchBytesWarned) +
                       " by " + std::to_string(bytes - kBatchBytesWarned) + ".");
  }
  if (type == BatchRequest::Type::kUnlogged && writes.size() > kPartitionsWarned) {
    warnings.push_back("Unlogged batch covering " + std::to_string(writes.size()) +
                       " partitions detected against table [" + names +
                       "]. You should use a logged batch for atomicity, or asynchronous writes for "
                       "performance.");
  }
  return warnings;
}

Task<Response> Service::WriteLogged(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                    Execution& execution) {
  const int64_t made = clock_.Wall().micros;
  rows::KeptBatch rest{.made = made, .parts = {}};
  for (PartitionWrite& write : writes) {
    for (rows::RowChange& change : write.write.changes) {
      change.made = made;
      change.timestamp = change.timestamp.value_or(made);
    }
    if (&write != &writes.front()) {
      rest.parts.push_back({.container = write.container->id,
                            .epk = types::CassandraEpk(write.write.partition_key),
                            .partition_key = std::move(write.write.partition_key),
                            .changes = std::move(write.write.changes)});
    }
  }
  rows::WriteRows first;
  first.id = {.high = random_.Next(), .low = random_.Next()};
  first.partition_key = writes[0].write.partition_key;
  first.epk = types::CassandraEpk(first.partition_key);
  first.changes = std::move(writes[0].write.changes);
  first.batch = rest.Encode();
  Reply reply = co_await router_.Execute(writes[0].container->ring(), first.epk, first);
  RequestUnits charge = reply.charge;
  Status status = reply.status;
  if (status.ok()) {
    KillPoint("batch.kept");
    status = co_await batches_.Do(rest);
    KillPoint("batch.done");
    if (status.ok()) {
      rows::FoundBatch done{
          .epk = first.epk, .partition_key = first.partition_key, .id = first.id, .batch = {}};
      IgnoreError(co_await batches_.End(writes[0].container->id, done),
                  "it is done again later, which changes nothing");
    } else {
      status = Status(Code::kUnknownOutcome, "The batch will be done: " + status.message());
    }
  }
  Response response = status.ok() ? MakeVoid() : Failed(status, attempt, execution.version);
  AddCharge(response, charge);
  co_return response;
}

Task<Response> Service::Batch(Client& client, const BatchRequest& request, int version) {
  const std::string keyspace(request.parameters.keyspace.value_or(client.keyspace));
  std::vector<std::shared_ptr<const Compiled>> kept;
  std::vector<std::vector<cql::MarkerValue>> values;
  auto view = schemas_.Get();
  for (const BatchRequest::Statement& statement : request.statements) {
    std::shared_ptr<const Compiled> compiled;
    if (statement.prepared) {
      compiled = prepared_.Find(statement.text);
      if (compiled == nullptr) {
        co_return MakeError(
            {.code = ErrorCode::kUnprepared,
             .message = "Prepared query with ID " + ToHex(statement.text) + " not found",
             .statement_id = std::string(statement.text)},
            version);
      }
    }
    if (compiled == nullptr || compiled->schema != view->schema) {
      auto made = compiled == nullptr ? Compile(statement.text, keyspace, view->schema)
                                      : Compile(compiled->text, compiled->keyspace, view->schema);
      if (!made) {
        co_return made.error().syntax
            ? MakeError(ErrorCode::kSyntaxError, made.error().status.message(), version)
            : Failed(made.error().status, {}, version);
      }
      compiled = *made;
    }
    if (std::get_if<WritePlan>(&compiled->plan) == nullptr) {
      co_return Refused(
          "Invalid statement in batch: only UPDATE, INSERT and DELETE statements "
          "are allowed.",
          version);
    }
    auto bound = ValuesFor(*compiled, statement.values, request.parameters.named);
    if (!bound) {
      co_return Refused(bound.error().message(), version);
    }
    kept.push_back(std::move(compiled));
    values.push_back(std::move(*bound));
  }
  std::vector<BatchPart> parts;
  for (size_t i = 0; i < kept.size(); ++i) {
    parts.push_back({&std::get<WritePlan>(kept[i]->plan), values[i]});
  }
  Execution execution{.client = client,
                      .version = version,
                      .parameters = request.parameters,
                      .values = {},
                      .result_metadata_id = {}};
  co_return co_await RunParts(parts, request.type,
                              {.timestamp = request.parameters.timestamp, .ttl = {}}, execution);
}

}  // namespace orrery::cassandra
