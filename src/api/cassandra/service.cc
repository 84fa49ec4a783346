#include "api/cassandra/service.h"

#include "api/cassandra/failures.h"
#include "base/bytes.h"
#include "cql/describe.h"
#include "cql/system_tables.h"
#include "cql/value.h"
#include "net/http_server.h"

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

Response Refuse(const CompileError& error, int version) {
  return error.syntax ? MakeError(ErrorCode::kSyntaxError, error.status.message(), version)
                      : Failed(error.status, {}, version);
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

std::array<char, 16> NewTraceId(Random& random) {
  std::string bytes;
  Encoder(bytes).U64((random.Next() & ~0xF000ull) | 0x1000);
  Encoder(bytes).U64((random.Next() & ~(3ull << 62)) | (2ull << 62));
  std::array<char, 16> id;
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

struct Namer {
  std::string_view operator()(const QueryRequest&) const { return "cql_query"; }
  std::string_view operator()(const PrepareRequest&) const { return "cql_prepare"; }
  std::string_view operator()(const ExecuteRequest&) const { return "cql_execute"; }
  std::string_view operator()(const BatchRequest&) const { return "cql_batch"; }
  std::string_view operator()(const auto&) const { return "cql_connect"; }
};

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

void AddCharge(Response& response, RequestUnits charge) {
  response.payload.emplace_back(kChargeName, cql::DoubleBytes(charge.value()));
}

Service::Service(model::Catalog& catalog, partition::Router& router, BatchKeeper& batches,
                 const Clock& clock, Random& random, ServiceOptions options)
    : catalog_(catalog),
      router_(router),
      batches_(batches),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      schemas_(catalog),
      events_(schemas_) {}

Task<Response> Service::Handle(Client& client, Request request) {
  const Instant began = clock_.Now();
  Response response = co_await Answer(client, request);
  if (options_.observe) {
    options_.observe(NameOf(request.message), StatusOf(response), ChargeOf(response),
                     clock_.Now() - began);
  }
  if (request.tracing && response.opcode != Opcode::kError) {
    response.tracing_id = NewTraceId(random_);
  }
  co_return response;
}

Task<Response> Service::Answer(Client& client, const Request& request) {
  const int version = request.version;
  if (std::get_if<StartupRequest>(&request.message) != nullptr) {
    co_return options_.authenticate ? MakeAuthenticate(kAuthenticator) : MakeReady();
  }
  if (const auto* response = std::get_if<AuthResponseRequest>(&request.message)) {
    co_return Authenticate(client, *response, version);
  }
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    co_return co_await Query(client, *query, version);
  }
  if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    co_return co_await Prepare(client, *prepare, version);
  }
  if (const auto* execute = std::get_if<ExecuteRequest>(&request.message)) {
    co_return co_await Execute(client, *execute, version);
  }
  if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    co_return co_await Batch(client, *batch, version);
  }
  co_return MakeError(ErrorCode::kProtocolError, "The message cannot be answered.", version);
}

// SASL PLAIN: NUL, the user, NUL, the password.
Response Service::Authenticate(Client& client, const AuthResponseRequest& request, int version) {
  const std::string_view token = request.token.value_or("");
  const size_t first = token.find('\0');
  const size_t second = first == std::string_view::npos ? first : token.find('\0', first + 1);
  if (second == std::string_view::npos) {
    return MakeError(ErrorCode::kProtocolError, "The credentials are not those of SASL PLAIN.",
                     version);
  }
  const std::string user(token.substr(first + 1, second - first - 1));
  const std::string_view password = token.substr(second + 1);
  const auto& keys = catalog_.view()->keys.keys;
  bool known = false;
  for (size_t i = 0; i < 2; ++i) {  // those that may write
    known = known || (!keys[i].empty() && net::EqualInConstantTime(password, ToBase64(keys[i])));
  }
  if (!known || user != options_.account) {
    return MakeError(ErrorCode::kBadCredentials,
                     "Provided username " + user + " and/or password are incorrect", version);
  }
  client.user = user;
  return MakeAuthSuccess(std::nullopt);
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

Task<Response> Service::Query(Client& client, const QueryRequest& request, int version) {
  const std::string keyspace(request.parameters.keyspace.value_or(client.keyspace));
  auto compiled = Compile(request.text, keyspace, schemas_.Get()->schema);
  if (!compiled && !compiled.error().syntax && options_.catch_up) {
    // It may name what was made through another node a moment ago.
    co_await options_.catch_up();
    compiled = Compile(request.text, keyspace, schemas_.Get()->schema);
  }
  if (!compiled) {
    co_return Refuse(compiled.error(), version);
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
  const std::string keyspace(request.keyspace.value_or(client.keyspace));
  auto compiled = Compile(request.text, keyspace, schemas_.Get()->schema);
  if (!compiled && !compiled.error().syntax && options_.catch_up) {
    co_await options_.catch_up();
    compiled = Compile(request.text, keyspace, schemas_.Get()->schema);
  }
  if (!compiled) {
    co_return Refuse(compiled.error(), version);
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
      co_return Refuse(again.error(), version);
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
  if (const auto* write = std::get_if<WritePlan>(&compiled.plan)) {
    co_return co_await RunWrite(compiled, *write, execution);
  }
  if (const auto* select = std::get_if<SelectPlan>(&compiled.plan)) {
    co_return co_await RunSelect(compiled, *select, execution);
  }
  if (const auto* batch = std::get_if<BatchPlan>(&compiled.plan)) {
    co_return co_await RunBatchText(compiled, *batch, execution);
  }
  if (const auto* use = std::get_if<cql::UseStatement>(&compiled.parsed.statement)) {
    co_return RunUse(*use, execution);
  }
  if (const auto* describe = std::get_if<cql::Describe>(&compiled.parsed.statement)) {
    co_return RunDescribe(*describe, execution);
  }
  co_return co_await Define(compiled.parsed.statement, execution);
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

Task<Response> Service::RunSelect(const Compiled& compiled, const SelectPlan& plan,
                                  Execution& execution) {
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
    auto response = run.RunOver(cql::SystemRows(plan.table(), *schemas_.Get()->schema, cluster()));
    co_return response ? std::move(*response)
                       : Failed(response.error(), attempt, execution.version);
  }
  context.container = schemas_.Get()->ContainerOf(plan.table());
  if (context.container == nullptr) {
    co_return Refused("unconfigured table " + plan.table().name, execution.version);
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
