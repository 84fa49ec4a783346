#include "api/sql/call.h"
#include "api/sql/listing.h"
#include "partition/replica.h"

namespace orrery::api::sql {

using runtime::Task;

namespace {

void AddUsage(Call& call, const storage::Totals& totals) {
  std::string kilobytes = std::to_string((totals.bytes + 1023) / 1024);
  call.reply.Add(
      "x-ms-resource-quota",
      "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;");
  call.reply.Add("x-ms-resource-usage", "documentSize=0;documentsSize=" + kilobytes +
                                            ";documentsCount=" + std::to_string(totals.items) +
                                            ";collectionSize=" + kilobytes + ";");
  call.reply.Add("x-ms-documentdb-collection-index-transformation-progress", "100");
}

// What the container uses, as the service words it: sizes in KB. Who asks for it hears it from the
// leaders, others from the replicas that are here.
Task<> AddUsageOf(Call& call, const model::Container& container) {
  storage::Totals totals;
  bool asked = call.request.Get("x-ms-documentdb-populatequotainfo") == "true";
  for (const auto& range : container.map->ranges()) {
    storage::Totals some;
    if (asked) {
      model::ReadTotals read;
      partition::Reply reply = co_await call.router().ExecuteAt(container.ring(), range, read);
      some = model::ReadTotals::DecodeTotals(reply.body).value_or(some);
    } else if (auto replica = call.replicas().Find(range.id)) {
      some = replica->totals();
    }
    totals.bytes += some.bytes;
    totals.items += some.items;
  }
  AddUsage(call, totals);
}

Task<> Answer(Call& call, const model::Container& container, int status) {
  AppendContainer(container, call.reply.body);
  call.reply.Add("etag", model::EtagText(container.etag, container.time));
  call.AddContainerHeaders(container);
  co_await AddUsageOf(call, container);
  call.Succeed(status);
}

}  // namespace

Task<> CreateContainer(Call& call) {
  if (IsQuery(call)) {
    co_await ListContainers(call);
    co_return;
  }
  Result<types::Document> body = types::Document::FromJson(call.request.body);
  Result<model::ThroughputRequest> throughput = call.Throughput();
  if (!body || !throughput) {
    call.Fail(!body ? body.error() : throughput.error());
    co_return;
  }
  if (body->Get("cassandra").defined()) {
    call.Fail(Status(Code::kInvalidArgument, "Tables of Cassandra are made with CQL."));
    co_return;
  }
  auto made =
      co_await call.catalog().CreateContainer(call.database(), std::move(*body), *throughput);
  if (!made) {
    call.Fail(made.error());
    co_return;
  }
  co_await Answer(call, **made, 201);
}

Task<> ListContainers(Call& call) {
  auto view = call.catalog().view();
  auto database = view->FindDatabase(call.database());
  if (database == nullptr) {
    call.Fail(Status(Code::kOwnerNotFound, "Owner resource does not exist"));
    co_return;
  }
  std::vector<std::string> all;
  for (const auto& container : view->ContainersOf(database->id)) {
    AppendContainer(*container, all.emplace_back());
  }
  AnswerList(call, "DocumentCollections", database->rid, all);
}

Task<> ReadContainer(Call& call) {
  const model::Container& container = *call.found;
  if (call.Header("if-none-match") == model::EtagText(container.etag, container.time)) {
    call.Fail(Status(Code::kNotModified));
    co_return;
  }
  co_await Answer(call, container, 200);
}

Task<> ReplaceContainer(Call& call) {
  Result<types::Document> body = types::Document::FromJson(call.request.body);
  if (!body) {
    call.Fail(body.error());
    co_return;
  }
  auto before = call.catalog().view()->FindContainer(call.container_link());
  if ((before != nullptr && before->is_table()) || body->Get("cassandra").defined()) {
    call.Fail(Status(Code::kInvalidArgument, "Tables of Cassandra are changed with CQL."));
    co_return;
  }
  auto after = co_await call.catalog().ReplaceContainer(call.container_link(), std::move(*body),
                                                        std::string(call.Header("if-match")));
  if (!after) {
    call.Fail(after.error());
    co_return;
  }
  co_await Answer(call, **after, 200);
}

Task<> DeleteContainer(Call& call) {
  Status status = co_await call.catalog().DropContainer(call.container_link(),
                                                        std::string(call.Header("if-match")));
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  call.Succeed(204);
}

Task<> ListPartitionRanges(Call& call) {
  const model::Container& container = *call.found;
  // The map changes when a range with a higher id appears: that id is the state of this feed.
  PartitionId newest;
  std::vector<std::string> all;
  for (const auto& range : container.map->ranges()) {
    newest = std::max(newest, range.id);
    AppendPartitionRange(container, range, all.emplace_back());
  }
  std::string etag = "\"" + newest.ToString() + "\"";
  call.reply.Add("etag", etag);
  call.AddContainerHeaders(container);
  if (call.Header("if-none-match") == etag) {
    call.Fail(Status(Code::kNotModified));
    co_return;
  }
  AnswerList(call, "PartitionKeyRanges", container.rid, all);
}

}  // namespace orrery::api::sql
