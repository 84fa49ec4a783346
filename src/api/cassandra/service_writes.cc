// Writes: of one statement, and of batches.
#include <algorithm>
#include <map>
#include <set>

#include "api/cassandra/access.h"
#include "api/cassandra/failures.h"
#include "api/cassandra/service.h"
#include "cql/row_values.h"
#include "cql/value.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {

using partition::RequestUnits;
using runtime::Task;

namespace {

constexpr size_t kBatchBytesWarned = 5 * 1024;
constexpr size_t kPartitionsWarned = 10;
constexpr size_t kAtOnce = 64;    // partitions that one batch writes to side by side
constexpr size_t kCellRoom = 32;  // what a cell takes beside its path and value, at most

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

WritePlan::Defaults DefaultsOf(const QueryParameters& parameters) {
  return {.timestamp = parameters.timestamp, .now = parameters.now_in_seconds};
}

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

// Whether a write can have this level. What reads before it writes is always serial.
Status CheckLevel(Consistency level, bool conditional, const WritePlan& plan) {
  const bool serial = level == Consistency::kSerial || level == Consistency::kLocalSerial;
  if (plan.counts() && level == Consistency::kAny) {
    return Invalid("Consistency level ANY is not yet supported for counter table " +
                   plan.table().name);
  }
  if (!serial) {
    return Status::Ok();
  }
  if (plan.counts()) {
    return Invalid("Counter operations are inherently non-serializable");
  }
  return conditional ? Invalid(std::string(ConsistencyName(level)) +
                               " is not supported as conditional update commit consistency. Use "
                               "ANY if you mean \"make sure it is accepted but I don't care how "
                               "many replicas commit it for non-SERIAL reads\"")
                     : Invalid("You must use conditional updates for serializable writes");
}

}  // namespace

Task<BatchKeeper::Written> Service::Write(PartitionWrite& write) {
  rows::WriteRows operation;
  operation.partition_key = write.write.partition_key;
  operation.epk = types::CassandraEpk(operation.partition_key);
  operation.changes = std::move(write.write.changes);
  operation.conditions = std::move(write.write.conditions);
  co_return co_await batches_.Write(write.container->id, operation);
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

// The first column tells whether it was done; if not, the others show what was there: each row that
// a condition looked at, or, if there is none, the static columns.
Result<Response> Service::ConditionAnswer(const std::vector<PartitionWrite>& writes,
                                          const rows::WriteAnswer& answer,
                                          Execution& execution) const {
  const cql::Table& table = writes.front().plan->table();
  std::vector<ColumnSpec> specs{{table.keyspace, table.name, "[applied]", cql::TypeId::kBoolean}};
  cql::RowValues values(table);
  ORRERY_TRY_STATUS(values.BeginPartition(writes.front().write.partition_key));
  std::vector<std::vector<std::optional<std::string>>> rows;
  auto add = [&] {
    auto& row = rows.emplace_back();
    for (const cql::RowValues::Value& value : values.values()) {
      row.emplace_back(value);
    }
  };
  bool has_static = false;
  std::map<std::string_view, const rows::SeenRow*> in_order;
  for (const rows::SeenRow& seen : answer.seen) {
    if (seen.static_row && !has_static) {
      ORRERY_TRY(has_static, cql::RowExists(*seen.static_row, answer.now, seen.deleted));
      ORRERY_TRY_STATUS(values.SetStatic(*seen.static_row, answer.now, seen.deleted));
    }
    if (seen.row) {
      in_order.emplace(seen.key, &seen);
    }
  }
  for (const auto& [key, seen] : in_order) {
    ORRERY_TRY(bool exists, cql::RowExists(*seen->row, answer.now, seen->deleted));
    if (exists) {
      ORRERY_TRY_STATUS(values.SetRow(key, *seen->row, answer.now, seen->deleted));
      add();
    }
  }
  if (rows.empty() && has_static) {
    values.SetNoRow();
    add();
  }
  const std::vector<const cql::Column*> shown =
      rows.empty() ? std::vector<const cql::Column*>() : execution.shown;
  for (const cql::Column* column : shown) {
    specs.push_back({table.keyspace, table.name, column->name, column->type});
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
    std::vector<BatchKeeper::Written> done;
    if (writes.size() == 1) {
      done.push_back(co_await Write(writes[0]));
    } else {
      std::vector<Task<BatchKeeper::Written>> tasks;
      for (size_t i = at; i < std::min(at + kAtOnce, writes.size()); ++i) {
        tasks.push_back(Write(writes[i]));
      }
      done = co_await runtime::WhenAll(std::move(tasks));
    }
    for (BatchKeeper::Written& each : done) {
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

Task<Response> Service::RunWrite(const WritePlan& plan, Execution& execution) {
  const Attempt attempt{.consistency = execution.parameters.consistency,
                        .writes = true,
                        .conditional = plan.conditional(),
                        .write_type = plan.counts() ? "COUNTER" : "SIMPLE"};
  if (Status fits = CheckLevel(attempt.consistency, attempt.conditional, plan); !fits.ok()) {
    co_return Failed(fits, attempt, execution.version);
  }
  cql::FunctionContext functions = NewContext();
  const Binding binding{execution.values, functions};
  std::vector<PartitionWrite> writes;
  Status gathered =
      Gather(plan, *schemas_.Get(), binding, DefaultsOf(execution.parameters), writes);
  if (!gathered.ok()) {
    co_return Failed(gathered, attempt, execution.version);
  }
  if (attempt.conditional) {
    execution.shown = plan.ShownColumns();
  }
  co_return co_await WriteAll(std::move(writes), attempt, execution);
}

Task<Response> Service::RunBatchText(const BatchPlan& plan, Execution& execution) {
  cql::FunctionContext functions = NewContext();
  const Binding binding{execution.values, functions};
  WritePlan::Defaults defaults = DefaultsOf(execution.parameters);
  if (plan.timestamp) {
    auto bound = plan.timestamp->Bind(binding.values, binding.context);
    if (!bound || bound->is_null()) {
      co_return Failed(bound ? Invalid("Invalid null value of timestamp") : bound.error(), {},
                       execution.version);
    }
    if (bound->has_value() && bound->bytes().size() == 8) {
      defaults.timestamp = cql::ReadBigint(bound->bytes());
    }
  }
  std::vector<BatchPart> parts;
  for (const WritePlan& write : plan.writes) {
    parts.push_back({&write, execution.values});
  }
  const auto type = static_cast<BatchRequest::Type>(plan.kind);
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
  if (execution.client.access != nullptr) {
    auto check = [&](const RoleAccess& who) {
      Status may = CheckLogin(who);
      for (size_t i = 0; i < parts.size() && may.ok(); ++i) {
        may = CheckWrite(who, *parts[i].plan);
      }
      return may;
    };
    status = check(AccessOf(execution.client));
    if (!status.ok()) {
      status = co_await CheckAgain(execution.client, check);
      view = schemas_.Get();
    }
  }
  for (const BatchPart& part : parts) {
    attempt.conditional = attempt.conditional || part.plan->conditional();
    if (status.ok()) {
      status = CheckKinds(part.plan->counts(), parts[0].plan->counts(), type);
    }
    if (status.ok()) {
      status = Gather(*part.plan, *view, {part.values, functions}, defaults, writes);
    }
  }
  if (status.ok() && !parts.empty()) {
    status = CheckLevel(attempt.consistency, attempt.conditional, *parts[0].plan);
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
  execution.shown = ShownOf(parts);
  std::vector<std::string> warnings = WarningsOf(writes, type);
  const bool logged = type == BatchRequest::Type::kLogged && writes.size() > 1;
  Response response = co_await (logged ? WriteLogged(std::move(writes), attempt, execution)
                                       : WriteAll(std::move(writes), attempt, execution));
  response.warnings = std::move(warnings);
  co_return response;
}

// Of several rows it is told which is which, unless everything is shown.
std::vector<const cql::Column*> Service::ShownOf(const std::vector<BatchPart>& parts) {
  std::vector<const cql::Column*> shown;
  for (const BatchPart& part : parts) {
    if (!part.plan->conditional()) {
      continue;
    }
    std::vector<const cql::Column*> columns = part.plan->ShownColumns();
    if (columns.size() == part.plan->table().columns.size()) {
      return columns;
    }
    if (shown.empty()) {
      for (const cql::Column& column : part.plan->table().columns) {
        if (column.is_key()) {
          shown.push_back(&column);
        }
      }
    }
    for (const cql::Column* column : columns) {
      if (std::ranges::find(shown, column) == shown.end()) {
        shown.push_back(column);
      }
    }
  }
  return shown;
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

// What a part could never do is refused before anything is written down.
Status Service::CheckParts(const std::vector<PartitionWrite>& writes) const {
  auto view = schemas_.Get();
  for (const PartitionWrite& write : writes) {
    if (auto derivation = view->DerivationOf(write.container->id)) {
      ORRERY_RETURN_IF_ERROR(rows::CheckIndexed(*derivation, write.write.changes));
    }
    for (const rows::RowChange& change : write.write.changes) {
      size_t bytes = 0;
      for (const rows::CellChange& cell : change.cells) {
        bytes += cell.path.size() + cell.value.size();
        if (cell.action == rows::CellAction::kSetAt || cell.action == rows::CellAction::kDeleteAt) {
          return Invalid("A list is changed by position only in a batch of one partition.");
        }
      }
      if (bytes + kCellRoom * change.cells.size() > rows::kRowBytesMax) {
        return Status(Code::kTooLarge, "A row may have at most 2 MB.");
      }
    }
  }
  return Status::Ok();
}

Task<Response> Service::WriteLogged(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                    Execution& execution) {
  if (Status possible = CheckParts(writes); !possible.ok()) {
    co_return Failed(possible, attempt, execution.version);
  }
  const int64_t made = clock_.Wall().micros;
  rows::KeptBatch rest{.made = made, .parts = {}};
  for (PartitionWrite& write : writes) {
    for (rows::RowChange& change : write.write.changes) {
      change.made = change.made != 0 ? change.made : made;
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
  BatchKeeper::Written written = co_await batches_.Write(writes[0].container->id, first);
  Response response =
      written.status.ok() ? MakeVoid() : Failed(written.status, attempt, execution.version);
  AddCharge(response, written.charge);
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
        co_return Refused(made.error(), version);
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
  co_return co_await RunParts(parts, request.type, {.timestamp = request.parameters.timestamp},
                              execution);
}

}  // namespace orrery::cassandra
