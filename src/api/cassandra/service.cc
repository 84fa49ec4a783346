#include "api/cassandra/service.h"

#include "api/cassandra/access.h"
#include "api/cassandra/failures.h"
#include "base/bytes.h"
#include "cql/describe.h"
#include "cql/role_rows.h"
#include "cql/system_tables.h"
#include "cql/value.h"
#include "model/catalog_roles.h"

namespace orrery::cassandra {

using partition::RequestUnits;
using runtime::Task;

namespace {

constexpr std::string_view kChargeName = "RequestCharge";
constexpr std::string_view kAuthenticator = "org.apache.cassandra.auth.PasswordAuthenticator";

partition::ReadLevel LevelOf(Consistency consistency) {
  return consistency == Consistency::kOne || consistency == Consistency::kLocalOne
             ? partition::ReadLevel::kEventual
             : partition::ReadLevel::kStrong;
}

cql::MarkerValue ValueOf(const BoundValue& value) {
  switch (value.kind) {
    case BoundValue::Kind::kNull: return {.kind = cql::MarkerValue::Kind::kNull, .bytes = {}};
    case BoundValue::Kind::kUnset: return {.kind = cql::MarkerValue::Kind::kUnset, .bytes = {}};
    case BoundValue::Kind::kBytes: break;
  }
  return {.kind = cql::MarkerValue::Kind::kValue, .bytes = value.bytes};
}

std::vector<ColumnSpec> Specs(const cql::MarkerSpecs& markers) {
  std::vector<ColumnSpec> specs;
  for (const cql::Receiver& marker : markers) {
    specs.push_back({marker.keyspace, marker.table, marker.name, marker.type});
  }
  return specs;
}

struct Namer {
  std::string_view operator()(const QueryRequest&) const { return "cql_query"; }
  std::string_view operator()(const PrepareRequest&) const { return "cql_prepare"; }
  std::string_view operator()(const ExecuteRequest&) const { return "cql_execute"; }
  std::string_view operator()(const BatchRequest&) const { return "cql_batch"; }
  std::string_view operator()(const auto&) const { return "cql_connect"; }
};

// An answer that is at hand.
Task<Response> Ready(Response response) { co_return response; }

std::string_view NameOf(const RequestMessage& message) { return std::visit(Namer(), message); }

int StatusOf(const Response& response) {
  if (response.opcode != Opcode::kError || response.body.size() < 4) {
    return 200;
  }
  const auto code =
      static_cast<ErrorCode>(cql::ReadInt(std::string_view(response.body).substr(0, 4)));
  switch (code) {
    case ErrorCode::kOverloaded: return 429;
    case ErrorCode::kBadCredentials: return 401;
    case ErrorCode::kUnauthorized: return 403;
    case ErrorCode::kServerError: return 500;
    case ErrorCode::kUnavailable: return 503;
    case ErrorCode::kWriteTimeout:
    case ErrorCode::kReadTimeout:
    case ErrorCode::kCasWriteUnknown: return 408;
    default: return 400;
  }
}

double ChargeOf(const Response& response) {
  for (const auto& [name, value] : response.payload) {
    if (name == kChargeName) {
      return cql::ReadDouble(value);
    }
  }
  return 0;
}

}  // namespace

Response Refused(const CompileError& error, int version) {
  return error.syntax ? MakeError(ErrorCode::kSyntaxError, error.status.message(), version)
                      : Failed(error.status, {}, version);
}

void AddCharge(Response& response, RequestUnits charge) {
  response.payload.emplace_back(kChargeName, cql::DoubleBytes(charge.value()));
}

Service::Service(model::Catalog& catalog, const SchemaCache& schemas, partition::Router& router,
                 BatchKeeper& batches, DerivedBuilder& builder, Passwords& passwords,
                 const Clock& clock, Random& random, ServiceOptions options)
    : catalog_(catalog),
      router_(router),
      batches_(batches),
      builder_(builder),
      passwords_(passwords),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      schemas_(schemas),
      events_(schemas_) {}

Task<Response> Service::Handle(Client& client, Request request) {
  const Instant began = clock_.Now();
  Response response = co_await Answer(client, request);
  if (options_.observe) {
    options_.observe(NameOf(request.message), StatusOf(response), ChargeOf(response),
                     clock_.Now() - began);
  }
  if (request.tracing) {
    response.tracing_id = KeepTrace(client, request, response, clock_.Now() - began);
  }
  co_return response;
}

std::array<char, 16> Service::KeepTrace(const Client& client, const Request& request,
                                        const Response& response, Duration took) {
  Trace trace{.started = WallTime{clock_.Wall().micros - took.count()},
              .took = took,
              .client = client.address,
              .request = "Request without a statement",
              .parameters = {},
              .charge = ChargeOf(response),
              .failed = response.opcode == Opcode::kError};
  auto add = [&](const QueryParameters& parameters) {
    trace.parameters.emplace_back("consistency_level", ConsistencyName(parameters.consistency));
    if (parameters.page_size) {
      trace.parameters.emplace_back("page_size", std::to_string(*parameters.page_size));
    }
  };
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    trace.request = "Execute CQL3 query";
    trace.parameters.emplace_back("query", query->text);
    add(query->parameters);
  } else if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    trace.request = "Preparing CQL3 query";
    trace.parameters.emplace_back("query", prepare->text);
  } else if (const auto* execute = std::get_if<ExecuteRequest>(&request.message)) {
    trace.request = "Execute CQL3 prepared query";
    if (auto statement = prepared_.Find(execute->id)) {
      trace.parameters.emplace_back("query", statement->text);
    }
    add(execute->parameters);
  } else if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    trace.request = "Execute batch of CQL3 queries";
    add(batch->parameters);
  }
  return traces_.Keep(std::move(trace), random_);
}

// No coroutine of its own: every request passes here.
Task<Response> Service::Answer(Client& client, const Request& request) {
  const int version = request.version;
  if (const auto* execute = std::get_if<ExecuteRequest>(&request.message)) {
    return Execute(client, *execute, version);
  }
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    return Query(client, *query, version);
  }
  if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    return Batch(client, *batch, version);
  }
  if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    return Prepare(client, *prepare, version);
  }
  if (const auto* response = std::get_if<AuthResponseRequest>(&request.message)) {
    return Authenticate(client, *response, version);
  }
  if (std::get_if<StartupRequest>(&request.message) != nullptr) {
    return Ready(options_.authenticate ? MakeAuthenticate(kAuthenticator) : MakeReady());
  }
  return Ready(MakeError(ErrorCode::kProtocolError, "The message cannot be answered.", version));
}

Result<std::vector<cql::MarkerValue>> Service::ValuesFor(const Compiled& compiled,
                                                         const std::vector<BoundValue>& values,
                                                         bool named) const {
  const std::vector<std::string>& markers = compiled.parsed.markers;
  std::vector<cql::MarkerValue> bound(markers.size());
  if (!named) {
    if (values.size() != markers.size()) {
      return Error(Code::kInvalidArgument, "there were " + std::to_string(markers.size()) +
                                               " markers(?) in CQL but " +
                                               std::to_string(values.size()) + " bound variables");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      bound[i] = ValueOf(values[i]);
    }
    return bound;
  }
  for (size_t i = 0; i < markers.size(); ++i) {
    const std::string& name = markers[i].empty() ? compiled.markers[i].name : markers[i];
    auto found = std::ranges::find(values, name, &BoundValue::name);
    bound[i] = found == values.end()
                   ? cql::MarkerValue{.kind = cql::MarkerValue::Kind::kUnset, .bytes = {}}
                   : ValueOf(*found);
  }
  return bound;
}

Task<CompileResult> Service::CompileNow(std::string_view text, std::string_view keyspace) {
  auto compiled = Compile(text, keyspace, schemas_.Get()->schema);
  if (!compiled && !compiled.error().syntax && options_.catch_up) {
    co_await options_.catch_up();
    compiled = Compile(text, keyspace, schemas_.Get()->schema);
  }
  co_return compiled;
}

Task<Response> Service::Query(Client& client, const QueryRequest& request, int version) {
  const std::string keyspace(request.parameters.keyspace.value_or(client.keyspace));
  auto compiled = co_await CompileNow(request.text, keyspace);
  if (!compiled) {
    co_return Refused(compiled.error(), version);
  }
  auto values = ValuesFor(**compiled, request.parameters.values, request.parameters.named);
  if (!values) {
    co_return Refused(values.error().message(), version);
  }
  Execution execution{.client = client,
                      .version = version,
                      .parameters = request.parameters,
                      .values = std::move(*values),
                      .result_metadata_id = {}};
  co_return co_await Run(**compiled, execution);
}

Task<Response> Service::Prepare(Client& client, const PrepareRequest& request, int version) {
  if (client.access != nullptr) {
    if (Status may = CheckLogin(AccessOf(client)); !may.ok()) {
      co_return Failed(may, {}, version);
    }
  }
  const std::string keyspace(request.keyspace.value_or(client.keyspace));
  auto compiled = co_await CompileNow(request.text, keyspace);
  if (!compiled) {
    co_return Refused(compiled.error(), version);
  }
  PreparedStatement answer;
  answer.id = StatementId(keyspace, request.text);
  answer.markers = Specs((*compiled)->markers);
  answer.partition_key = (*compiled)->KeyMarkers();
  answer.result_metadata_id = answer.id;
  if (const auto* select = std::get_if<SelectPlan>(&(*compiled)->plan)) {
    answer.columns = select->Columns();
    answer.result_metadata_id = select->MetadataId();
  }
  prepared_.Keep(answer.id, std::move(*compiled));
  co_return MakePrepared(answer, version);
}

Task<Response> Service::Execute(Client& client, const ExecuteRequest& request, int version) {
  std::shared_ptr<const Compiled> compiled = prepared_.Find(request.id);
  if (compiled == nullptr) {
    co_return MakeError({.code = ErrorCode::kUnprepared,
                         .message = "Prepared query with ID " + ToHex(request.id) +
                                    " not found (either the query was not prepared on this host "
                                    "(maybe the host has been restarted?) or you have prepared too "
                                    "many queries and it has been evicted from the internal cache)",
                         .statement_id = std::string(request.id)},
                        version);
  }
  auto view = schemas_.Get();
  if (compiled->schema != view->schema) {
    auto again = Compile(compiled->text, compiled->keyspace, view->schema);
    if (!again) {
      co_return Refused(again.error(), version);
    }
    compiled = *again;
    prepared_.Keep(std::string(request.id), compiled);
  }
  auto values = ValuesFor(*compiled, request.parameters.values, request.parameters.named);
  if (!values) {
    co_return Refused(values.error().message(), version);
  }
  Execution execution{.client = client,
                      .version = version,
                      .parameters = request.parameters,
                      .values = std::move(*values),
                      .result_metadata_id = request.result_metadata_id};
  co_return co_await Run(*compiled, execution);
}

Task<Response> Service::Run(const Compiled& compiled, Execution& execution) {
  return execution.client.access == nullptr ? RunAllowed(compiled, execution)
                                            : RunChecked(compiled, execution);
}

Task<Response> Service::RunChecked(const Compiled& compiled, Execution& execution) {
  auto check = [&](const RoleAccess& who) {
    return CheckStatement(who, compiled, execution.client.keyspace);
  };
  Status may = check(AccessOf(execution.client));
  if (!may.ok()) {
    may = co_await CheckAgain(execution.client, check);
  }
  if (!may.ok()) {
    co_return Failed(may, {}, execution.version);
  }
  co_return co_await RunAllowed(compiled, execution);
}

Task<Response> Service::RunAllowed(const Compiled& compiled, Execution& execution) {
  if (const auto* write = std::get_if<WritePlan>(&compiled.plan)) {
    return RunWrite(*write, execution);
  }
  if (const auto* select = std::get_if<SelectPlan>(&compiled.plan)) {
    return RunSelect(*select, execution);
  }
  if (const auto* batch = std::get_if<BatchPlan>(&compiled.plan)) {
    return RunBatchText(*batch, execution);
  }
  if (const auto* use = std::get_if<cql::UseStatement>(&compiled.parsed.statement)) {
    return Ready(RunUse(*use, execution));
  }
  if (const auto* describe = std::get_if<cql::Describe>(&compiled.parsed.statement)) {
    return Ready(RunDescribe(*describe, execution));
  }
  return Define(compiled.parsed.statement, execution);
}

Response Service::RunUse(const cql::UseStatement& use, Execution& execution) {
  if (!cql::IsSystemKeyspace(use.keyspace) &&
      schemas_.Get()->schema->FindKeyspace(use.keyspace) == nullptr) {
    return Refused("Keyspace '" + use.keyspace + "' does not exist", execution.version);
  }
  execution.client.keyspace = use.keyspace;
  return MakeSetKeyspace(use.keyspace);
}

Response Service::RunDescribe(const cql::Describe& describe, Execution& execution) {
  auto described =
      cql::DescribeSchema(describe, execution.client.keyspace, *schemas_.Get()->schema, cluster());
  if (!described) {
    return Refused(described.error().message(), execution.version);
  }
  std::vector<ColumnSpec> columns;
  for (const cql::DescribeColumn& column : described->columns) {
    columns.push_back({std::string(cql::kDescribeKeyspace), std::string(cql::kDescribeTable),
                       column.name, column.type});
  }
  EncodedColumns encoded(columns, execution.version);
  RowsWriter writer(encoded, {.skip_metadata = false, .new_metadata_id = {}});
  for (const cql::SystemRow& row : described->rows) {
    for (const auto& value : row) {
      writer.CellOrNull(value);
    }
    writer.EndRow();
  }
  return writer.Finish();
}

std::vector<cql::SystemRow> Service::RowsOfSystem(const cql::Table& table) const {
  if (cql::IsRoleTable(table)) {
    return cql::RoleRows(table, *model::RolesOf(*catalog_.view()));
  }
  return table.keyspace == "system_traces"
             ? traces_.Rows(table, cluster().self)
             : cql::SystemRows(table, *schemas_.Get()->schema, cluster());
}

Task<Response> Service::RunSelect(const SelectPlan& plan, Execution& execution) {
  const QueryParameters& parameters = execution.parameters;
  const Attempt attempt{.consistency = parameters.consistency};
  if (parameters.consistency == Consistency::kAny) {
    co_return Refused("ANY ConsistencyLevel is only supported for writes", execution.version);
  }
  cql::FunctionContext functions = NewContext();
  const Binding binding{execution.values, functions};
  std::string metadata_id;
  SelectContext context{.router = router_,
                        .clock = clock_,
                        .container = nullptr,
                        .level = LevelOf(parameters.consistency),
                        .page_size = parameters.page_size,
                        .paging_state = parameters.paging_state,
                        .now = parameters.now_in_seconds,
                        .rows = {.skip_metadata = parameters.skip_metadata, .new_metadata_id = {}},
                        .version = execution.version};
  if (execution.result_metadata_id && execution.version >= 5) {
    metadata_id = plan.MetadataId();
    if (metadata_id != *execution.result_metadata_id) {
      context.rows.new_metadata_id = metadata_id;
    }
  }
  if (cql::IsSystemKeyspace(plan.table().keyspace)) {
    SelectRun run(plan, context, binding);
    auto response = run.RunOver(RowsOfSystem(plan.table()));
    co_return response ? std::move(*response)
                       : Failed(response.error(), attempt, execution.version);
  }
  context.container = schemas_.Get()->ContainerOf(plan.table());
  if (context.container == nullptr) {
    co_return Refused("unconfigured table " + plan.table().name, execution.version);
  }
  if (const auto& index = plan.where().index()) {
    context.index = schemas_.Get()->ContainerOf(plan.table(), index->index);
  }
  SelectRun run(plan, context, binding);
  Result<Response> response = co_await run.Run();
  if (!response) {
    co_return Failed(response.error(), attempt, execution.version);
  }
  AddCharge(*response, run.charge());
  if (plan.selection().has_aggregates() && !plan.selection().has_group_by()) {
    if (!plan.where().names_partitions()) {
      response->warnings.emplace_back("Aggregation query used without partition key");
    } else if (plan.where().many_partitions()) {
      response->warnings.emplace_back(
          "Aggregation query used on multiple partition keys (IN restriction)");
    }
  }
  co_return std::move(*response);
}

}  // namespace orrery::cassandra
