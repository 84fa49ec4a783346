#include "api/sql/call.h"
#include "api/sql/listing.h"

namespace orrery::api::sql {

using runtime::Task;

namespace {

void Answer(Call& call, const model::Database& database, int status) {
  AppendDatabase(database, call.reply.body);
  call.reply.Add("etag", model::EtagText(database.etag, database.time));
  call.reply.Add("x-ms-alt-content-path", "dbs/" + database.name);
  call.reply.Add("x-ms-content-path", database.rid);
  call.Succeed(status);
}

}  // namespace

Task<> CreateDatabase(Call& call) {
  if (IsQuery(call)) {
    co_await ListDatabases(call);
    co_return;
  }
  Result<types::Document> body = types::Document::FromJson(call.request.body);
  Result<model::ThroughputRequest> throughput = call.Throughput();
  if (!body || !throughput) {
    call.Fail(!body ? body.error() : throughput.error());
    co_return;
  }
  types::Value id = body->Get("id");
  if (id.kind() != types::Kind::kString) {
    call.Fail(Status(
        Code::kInvalidArgument,
        "The input content is invalid because the required properties - 'id; ' - are missing"));
    co_return;
  }
  auto made = co_await call.catalog().CreateDatabase(std::string(id.string()), *throughput);
  if (!made) {
    call.Fail(made.error());
    co_return;
  }
  Answer(call, **made, 201);
}

Task<> ListDatabases(Call& call) {
  std::vector<std::string> all;
  for (const auto& [name, database] : call.catalog().view()->databases) {
    AppendDatabase(*database, all.emplace_back());
  }
  AnswerList(call, "Databases", "", all);
  co_return;
}

Task<> ReadDatabase(Call& call) {
  auto database = call.catalog().view()->FindDatabase(call.database());
  if (database == nullptr) {
    call.Fail(Status(Code::kNotFound,
                     "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"));
    co_return;
  }
  if (call.Header("if-none-match") == model::EtagText(database->etag, database->time)) {
    call.Fail(Status(Code::kNotModified));
    co_return;
  }
  Answer(call, *database, 200);
}

Task<> DeleteDatabase(Call& call) {
  Status status =
      co_await call.catalog().DropDatabase(call.database(), std::string(call.Header("if-match")));
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  call.Succeed(204);
}

}  // namespace orrery::api::sql
