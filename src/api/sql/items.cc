#include "model/items.h"

#include "api/sql/call.h"
#include "api/sql/listing.h"

namespace orrery::api::sql {

using model::Container;
using model::ItemAddress;
using model::ItemStep;
using model::StepKind;
using partition::Reply;
using runtime::Task;

namespace {

// The address that the partition key header names.
Result<ItemAddress> AddressFromHeader(const Call& call, const Container& container) {
  std::string_view header = call.Header("x-ms-documentdb-partitionkey");
  if (header.empty() && container.keyless) {
    return model::AddressOf(container, {});
  }
  if (header.empty()) {
    return Error(Code::kInvalidArgument,
                 "PartitionKey value must be supplied for this operation. Learn more: "
                 "https://aka.ms/CosmosDB/sql/errors/missing-partition-key");
  }
  ORRERY_TRY(types::PartitionKey key, types::PartitionKey::FromJson(header));
  return model::AddressOf(container, key);
}

// The body of a create, upsert or replace, and its address, which the header must agree with if it
// is there.
struct Incoming {
  ItemAddress address;
  ItemStep step;
};

Result<Incoming> ReadIncoming(const Call& call, const Container& container, StepKind kind) {
  ORRERY_TRY(types::Document body, types::Document::FromJson(call.request.body));
  ORRERY_TRY(model::CheckedItem item,
             model::CheckItem(container, std::move(body),
                              kind == StepKind::kReplace ? nullptr : &call.random()));
  Incoming incoming;
  ORRERY_TRY(incoming.address, model::AddressOf(container, item.key));
  if (!call.Header("x-ms-documentdb-partitionkey").empty()) {
    ORRERY_TRY(ItemAddress named, AddressFromHeader(call, container));
    if (named.key != incoming.address.key) {
      return Error(Code::kKeyMismatch,
                   "PartitionKey extracted from document doesn't match the one specified in the "
                   "header. Learn more: "
                   "https://aka.ms/CosmosDB/sql/errors/wrong-pk-value");
    }
  }
  incoming.step = {.kind = kind,
                   .id = std::move(item.id),
                   .body = std::move(item.body),
                   .if_match = std::string(call.Header("if-match")),
                   .if_none_match = std::string(call.Header("if-none-match"))};
  return incoming;
}

bool WantsBody(const Call& call) { return call.Header("prefer") != "return=minimal"; }

void AnswerItem(Call& call, const Container& container, std::string_view stored, int status) {
  Result<storage::ItemView> item = storage::DecodeItem(stored);
  if (!item) {
    call.Fail(item.error());
    return;
  }
  call.reply.Add("etag", model::ItemEtag(item->header));
  if (call.request.method == "GET" || WantsBody(call)) {
    call.reply.body.reserve(stored.size() + 256);
    if (Status rendered = AppendItem(container, stored, call.reply.body); !rendered.ok()) {
      call.Fail(rendered);
      return;
    }
  }
  call.Succeed(status);
}

Task<> WriteOne(Call& call, std::shared_ptr<const Container> container, ItemAddress address,
                ItemStep step) {
  model::WriteItems write;
  write.tokens = call.tokens;
  write.claim = call.claim;
  std::string epk = address.epk;
  write.address = std::move(address);
  write.steps.push_back(std::move(step));
  Reply reply = co_await call.router().Execute(container->ring(), epk, write);
  call.AddPartitionHeaders(reply);
  call.AddContainerHeaders(*container);
  if (!reply.status.ok()) {
    call.Fail(reply.status);
    co_return;
  }
  Result<std::vector<model::StepResult>> results = model::DecodeStepResults(reply.body);
  if (!results || results->size() != 1) {
    call.Fail(results ? Status(Code::kInternal, "the partition answered another request")
                      : results.error());
    co_return;
  }
  const model::StepResult& result = results->front();
  if (result.item.empty()) {
    call.Succeed(204);
    co_return;
  }
  AnswerItem(call, *container, result.item, result.created ? 201 : 200);
}

Task<> CreateItem(Call& call, std::shared_ptr<const Container> container) {
  StepKind kind = call.Flag("x-ms-documentdb-is-upsert") ? StepKind::kUpsert : StepKind::kCreate;
  Result<Incoming> incoming = ReadIncoming(call, *container, kind);
  if (!incoming) {
    call.Fail(incoming.error());
    co_return;
  }
  co_await WriteOne(call, container, std::move(incoming->address), std::move(incoming->step));
}

}  // namespace

Task<> PostItems(Call& call) {
  if (call.Flag("x-ms-cosmos-is-query-plan-request")) {
    call.operation = "query_plan";
    co_await PlanQuery(call, call.found);
  } else if (IsQuery(call)) {
    call.operation = "item_query";
    co_await QueryItems(call, call.found);
  } else if (call.Flag("x-ms-cosmos-is-batch-request")) {
    call.operation = call.Flag("x-ms-cosmos-batch-atomic") ? "item_batch" : "item_bulk";
    co_await RunBatch(call, call.found);
  } else {
    call.operation = call.Flag("x-ms-documentdb-is-upsert") ? "item_upsert" : "item_create";
    co_await CreateItem(call, call.found);
  }
}

Task<> ReadItem(Call& call) {
  const Container& container = *call.found;
  if (container.is_table()) {
    co_await ReadRow(call);
    co_return;
  }
  Result<ItemAddress> address = AddressFromHeader(call, container);
  Result<Consistency> level = call.Level();
  if (!address || !level) {
    call.Fail(!address ? address.error() : level.error());
    co_return;
  }
  model::ReadItem read;
  std::string epk = address->epk;
  read.address = std::move(*address);
  read.id = call.item();
  read.if_none_match = call.Header("if-none-match");
  read.tokens = call.tokens;
  read.level = *level;
  read.claim = call.claim;
  Reply reply = co_await call.router().Execute(container.ring(), epk, read);
  call.AddPartitionHeaders(reply);
  call.AddContainerHeaders(container);
  if (!reply.status.ok()) {
    if (reply.status.code() == Code::kNotModified) {
      call.reply.Add("etag", model::ItemEtag(storage::DecodeItem(reply.body)->header));
    }
    call.Fail(reply.status);
    co_return;
  }
  AnswerItem(call, container, reply.body, 200);
}

Task<> ReplaceItem(Call& call) {
  Result<Incoming> incoming = ReadIncoming(call, *call.found, StepKind::kReplace);
  if (!incoming) {
    call.Fail(incoming.error());
    co_return;
  }
  if (incoming->step.id != call.item()) {
    call.Fail(Status(Code::kInvalidArgument,
                     "The id of an item cannot be changed: the path says '" + call.item() +
                         "', the body '" + incoming->step.id + "'."));
    co_return;
  }
  co_await WriteOne(call, call.found, std::move(incoming->address), std::move(incoming->step));
}

Task<> PatchItem(Call& call) {
  Result<ItemAddress> address = AddressFromHeader(call, *call.found);
  Result<types::Document> body = types::ParseJsonValue(call.request.body);
  if (!address || !body) {
    call.Fail(!address ? address.error() : body.error());
    co_return;
  }
  Result<model::Patch> patch = model::Patch::FromJson(body->Get("v"));
  if (!patch) {
    call.Fail(patch.error());
    co_return;
  }
  ItemStep step{.kind = StepKind::kPatch,
                .id = call.item(),
                .patch = std::move(*patch),
                .if_match = std::string(call.Header("if-match")),
                .if_none_match = std::string(call.Header("if-none-match"))};
  co_await WriteOne(call, call.found, std::move(*address), std::move(step));
}

Task<> DeleteItem(Call& call) {
  Result<ItemAddress> address = AddressFromHeader(call, *call.found);
  if (!address) {
    call.Fail(address.error());
    co_return;
  }
  ItemStep step{.kind = StepKind::kDelete,
                .id = call.item(),
                .if_match = std::string(call.Header("if-match")),
                .if_none_match = std::string(call.Header("if-none-match"))};
  co_await WriteOne(call, call.found, std::move(*address), std::move(step));
}

Task<> DeleteLogicalPartition(Call& call) {
  Result<ItemAddress> address = AddressFromHeader(call, *call.found);
  if (!address) {
    call.Fail(address.error());
    co_return;
  }
  Reply reply;
  partition::RequestUnits charge;
  std::string after;
  // Waits for its budget as background work does, but not longer than a client waits for an answer.
  const Instant deadline = call.clock().Now() + std::chrono::seconds(25);
  do {
    model::DeleteItems remove;
    remove.logical_partition = *address;
    remove.after = after;
    remove.claim = call.claim;
    reply = co_await call.router().Execute(call.found->ring(), address->epk, remove);
    charge += reply.charge;
    if (reply.status.code() == Code::kThrottled && call.clock().Now() < deadline) {
      co_await runtime::Sleep(std::chrono::milliseconds(reply.status.retry_after_ms()));
      continue;
    }
    if (!reply.status.ok()) {
      break;
    }
    after = std::move(reply.body);
  } while (!after.empty() || reply.status.code() == Code::kThrottled);
  reply.charge = charge;
  call.AddPartitionHeaders(reply);
  call.AddContainerHeaders(*call.found);
  if (!reply.status.ok()) {
    call.Fail(reply.status);
    co_return;
  }
  call.Succeed(200);
}

}  // namespace orrery::api::sql
