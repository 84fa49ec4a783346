// Many operations in one request: a transactional batch (one logical partition, all or nothing) and
// bulk (one physical partition, each for itself).

#include "api/sql/call.h"
#include "api/sql/errors.h"
#include "runtime/when_all.h"

namespace orrery::api::sql {

using model::Container;
using model::ItemAddress;
using model::ItemStep;
using model::StepKind;
using model::StepResult;
using partition::Reply;
using runtime::Task;
using types::Kind;
using types::Value;

namespace {

constexpr size_t kBatchBytesMax = 2 << 20;
constexpr size_t kBulkBytesMax = 4 << 20;

std::optional<StepKind> KindOf(std::string_view type) {
  static constexpr std::pair<std::string_view, StepKind> kKinds[] = {
      {"Create", StepKind::kCreate}, {"Upsert", StepKind::kUpsert}, {"Replace", StepKind::kReplace},
      {"Delete", StepKind::kDelete}, {"Patch", StepKind::kPatch},   {"Read", StepKind::kRead}};
  for (const auto& [name, kind] : kKinds) {
    if (name == type) {
      return kind;
    }
  }
  return std::nullopt;
}

std::string TextOf(Value operation, std::string_view name) {
  Value value = types::Member(operation, name);
  return value.kind() == Kind::kString ? std::string(value.string()) : std::string();
}

struct Incoming {
  ItemAddress address;
  ItemStep step;
};

// One operation of the body. `batch_key` is the key of a transactional batch, null for bulk.
Result<Incoming> ReadStep(const Call& call, const Container& container, Value operation,
                          const ItemAddress* batch_key) {
  std::optional<StepKind> kind = KindOf(TextOf(operation, "operationType"));
  if (!kind) {
    return Error(Code::kInvalidArgument, "The operationType of a batch operation is unknown.");
  }
  Incoming incoming{.step = {.kind = *kind,
                             .id = TextOf(operation, "id"),
                             .if_match = TextOf(operation, "ifMatch"),
                             .if_none_match = TextOf(operation, "ifNoneMatch")}};
  std::optional<types::PartitionKey> named;
  if (Value key = types::Member(operation, "partitionKey"); key.kind() == Kind::kString) {
    ORRERY_TRY(named, types::PartitionKey::FromJson(key.string()));
  } else if (batch_key != nullptr) {
    named = batch_key->key;
  }
  Value body = types::Member(operation, "resourceBody");
  bool has_item =
      *kind == StepKind::kCreate || *kind == StepKind::kUpsert || *kind == StepKind::kReplace;
  if (has_item) {
    if (body.kind() != Kind::kObject) {
      return Error(Code::kInvalidArgument,
                   "The resourceBody of a batch operation must be an object.");
    }
    ORRERY_TRY(model::CheckedItem item,
               model::CheckItem(container, types::Document::Trusted(std::string(body.bson())),
                                *kind == StepKind::kReplace ? nullptr : &call.random()));
    ORRERY_TRY(incoming.address, model::AddressOf(container, item.key));
    if (!incoming.step.id.empty() && incoming.step.id != item.id) {
      return Error(Code::kInvalidArgument, "The id of an item cannot be changed.");
    }
    incoming.step.id = std::move(item.id);
    incoming.step.body = std::move(item.body);
    if (named) {
      ORRERY_TRY(ItemAddress expected, model::AddressOf(container, *named));
      if (expected.key != incoming.address.key) {
        return Error(
            Code::kKeyMismatch,
            "PartitionKey extracted from document doesn't match the one specified in the header.");
      }
    }
  } else {
    if (!named) {
      return Error(Code::kInvalidArgument,
                   "A batch operation without an item needs a partition key.");
    }
    ORRERY_TRY(incoming.address, model::AddressOf(container, *named));
    ORRERY_TRY_STATUS(model::CheckItemId(incoming.step.id));
    if (*kind == StepKind::kPatch) {
      ORRERY_TRY(incoming.step.patch, model::Patch::FromJson(body));
    }
  }
  if (batch_key != nullptr && incoming.address.key != batch_key->key) {
    return Error(Code::kKeyMismatch,
                 "All operations of a transactional batch must have its partition key.");
  }
  return incoming;
}

int HttpOf(const StepResult& result, StepKind kind) {
  if (result.undone) {
    return 424;
  }
  if (!result.status.ok()) {
    return ToSqlError(result.status).http;
  }
  if (kind == StepKind::kRead && result.without_body) {
    return 413;
  }
  if (kind == StepKind::kDelete) {
    return 204;
  }
  return result.created ? 201 : 200;
}

void AppendResult(const Container& container, StepKind kind, const StepResult& result,
                  bool with_body, std::string& out) {
  SqlError error = ToSqlError(result.status);
  out += "{\"statusCode\":" + std::to_string(HttpOf(result, kind));
  if (kind == StepKind::kRead && result.without_body) {
    out += ",\"subStatusCode\":3402";  // the client asks for it again, with fewer others
  } else if (!result.undone && error.substatus != 0) {
    out += ",\"subStatusCode\":" + std::to_string(error.substatus);
  }
  out += ",\"requestCharge\":" + result.charge.ToString();
  if (result.status.retry_after_ms() != 0) {
    out += ",\"retryAfterMilliseconds\":" + std::to_string(result.status.retry_after_ms());
  }
  if (!result.item.empty()) {
    AppendText("eTag", model::ItemEtag(storage::DecodeItem(result.item)->header), out);
    if ((with_body || kind == StepKind::kRead) && !result.without_body) {
      out += ",\"resourceBody\":";
      IgnoreError(AppendItem(container, result.item, out), "the partition has just made it");
    }
  } else if (!result.undone && !result.status.ok()) {
    AppendText("message", result.status.message(), out);
  }
  out += '}';
}

bool WantsBody(const Call& call) { return call.Header("prefer") != "return=minimal"; }

void AnswerSteps(Call& call, const Container& container, const std::vector<StepKind>& kinds,
                 const std::vector<StepResult>& results, int status) {
  std::string& out = call.reply.body;
  out = "[";
  for (size_t i = 0; i < results.size(); ++i) {
    out += i == 0 ? "" : ",";
    AppendResult(container, kinds[i], results[i], WantsBody(call), out);
  }
  out += ']';
  call.AddContainerHeaders(container);
  call.reply.Add("x-ms-item-count", std::to_string(results.size()));
  call.Succeed(status);
}

Task<> RunTransaction(Call& call, std::shared_ptr<const Container> container, Value operations,
                      Consistency level) {
  model::WriteItems write;
  write.level = level;
  std::vector<StepKind> kinds;
  std::vector<StepResult> refused;
  std::string_view header = call.Header("x-ms-documentdb-partitionkey");
  Result<types::PartitionKey> key = types::PartitionKey::FromJson(header);
  Result<ItemAddress> address = key ? model::AddressOf(*container, *key) : Error(key.error());
  if (header.empty() || !address) {
    call.Fail(header.empty()
                  ? Status(Code::kInvalidArgument, "A transactional batch needs a partition key.")
                  : address.error());
    co_return;
  }
  bool valid = true;
  for (types::ValueIterator operation(operations.bson()); operation.Next();) {
    Result<Incoming> incoming = ReadStep(call, *container, operation.value(), &*address);
    kinds.push_back(KindOf(TextOf(operation.value(), "operationType")).value_or(StepKind::kRead));
    StepResult& result = refused.emplace_back();
    if (incoming) {
      write.steps.push_back(std::move(incoming->step));
      result.undone = true;
      result.status = Status(Code::kUnavailable);
    } else {
      result.undone = !valid;
      result.status = incoming.error();
      valid = false;
    }
  }
  if (!valid) {
    AnswerSteps(call, *container, kinds, refused, 207);
    co_return;
  }
  write.address = *address;
  write.tokens = call.tokens;
  write.claim = call.claim;
  Reply reply = co_await call.router().Execute(container->ring(), address->epk, write);
  call.AddPartitionHeaders(reply);
  Result<std::vector<StepResult>> results = model::DecodeStepResults(reply.body);
  if (!results || results->size() != kinds.size()) {
    // Throttled, unavailable: nothing was tried.
    call.Fail(reply.status.ok() ? Status(Code::kInternal, "the partition answered another request")
                                : reply.status);
    co_return;
  }
  AnswerSteps(call, *container, kinds, *results, reply.status.ok() ? 200 : 207);
}

Task<StepResult> RunAlone(Call& call, std::shared_ptr<const Container> container, Incoming incoming,
                          Consistency level, Seen* seen) {
  model::WriteItems write;
  write.level = level;
  std::string epk = incoming.address.epk;
  write.address = std::move(incoming.address);
  write.steps.push_back(std::move(incoming.step));
  write.claim = call.claim;
  Reply reply = co_await call.router().Execute(container->ring(), epk, write);
  seen->Add(reply);
  Result<std::vector<StepResult>> results = model::DecodeStepResults(reply.body);
  if (!results || results->size() != 1) {
    co_return StepResult{.status = reply.status, .charge = reply.charge};
  }
  co_return std::move(results->front());
}

// A reply that holds more than a page is cut: reads are answered with 413, writes without their
// bodies.
void BoundBodies(std::vector<StepResult>& results) {
  size_t bytes = 0;
  for (StepResult& result : results) {
    bytes += result.item.size();
    if (bytes > model::kPageBytesMax && bytes > result.item.size()) {
      bytes -= result.item.size();
      result.item.resize(storage::kItemHeaderBytes);  // its etag stays
      result.without_body = true;
    }
  }
}

Task<> RunBulk(Call& call, std::shared_ptr<const Container> container, Value operations,
               const partition::PartitionRange* range, Consistency level) {
  std::vector<StepKind> kinds;
  std::vector<StepResult> results;
  std::vector<Task<StepResult>> tasks;
  std::vector<size_t> places;  // of the tasks in the results
  Seen seen;
  for (types::ValueIterator operation(operations.bson()); operation.Next();) {
    kinds.push_back(KindOf(TextOf(operation.value(), "operationType")).value_or(StepKind::kRead));
    Result<Incoming> incoming = ReadStep(call, *container, operation.value(), nullptr);
    StepResult& result = results.emplace_back();
    if (incoming && range != nullptr && !range->range.Contains(incoming->address.epk)) {
      incoming =
          Error(Code::kMoved, "The key of the operation is not in the range of the request.");
    }
    if (!incoming) {
      result.status = incoming.error();
      continue;
    }
    places.push_back(results.size() - 1);
    tasks.push_back(RunAlone(call, container, std::move(*incoming), level, &seen));
  }
  std::vector<StepResult> done = co_await runtime::WhenAll(std::move(tasks));
  for (size_t i = 0; i < done.size(); ++i) {
    call.charge += done[i].charge;
    results[places[i]] = std::move(done[i]);
  }
  if (seen.size() > 0) {
    call.reply.Add("x-ms-session-token", seen.Tokens());
  }
  BoundBodies(results);
  bool all_ok = std::all_of(results.begin(), results.end(),
                            [](const StepResult& r) { return r.status.ok(); });
  AnswerSteps(call, *container, kinds, results, all_ok ? 200 : 207);
}

// Bulk names a physical partition. One that was split or merged since is served by its heirs: after
// 410 an SDK looks the partitions up again, but it shares a look-up that was on its way before, and
// if that still has the old one it sends to nobody for ever.
Result<const partition::PartitionRange*> NamedRange(const Call& call, const Container& container) {
  if (call.Header("x-ms-documentdb-partitionkeyrangeid").empty()) {
    return nullptr;
  }
  if (const partition::PartitionRange* range = container.map->FindId(call.NamedRange())) {
    return range;
  }
  return Error(Code::kMoved, "The requested partition key range is no longer there.");
}

}  // namespace

Task<> RunBatch(Call& call, std::shared_ptr<const Container> container) {
  bool atomic = call.Flag("x-ms-cosmos-batch-atomic");
  if (call.request.body.size() > (atomic ? kBatchBytesMax : kBulkBytesMax)) {
    call.Fail(Status(Code::kTooLarge, "Request size is too large"));
    co_return;
  }
  Result<types::Document> body = types::ParseJsonValue(call.request.body);
  if (!body) {
    call.Fail(body.error());
    co_return;
  }
  Value operations = body->Get("v");
  size_t count = 0;
  if (operations.kind() == Kind::kArray) {
    for (types::ValueIterator operation(operations.bson()); operation.Next();) {
      ++count;
    }
  }
  if (count == 0 || count > model::kBatchStepsMax) {
    call.Fail(Status(Code::kInvalidArgument, "Batch request must be an array of 1 to " +
                                                 std::to_string(model::kBatchStepsMax) +
                                                 " operations."));
    co_return;
  }
  Result<Consistency> level = call.Level();
  if (!level) {
    call.Fail(level.error());
    co_return;
  }
  if (atomic) {
    co_await RunTransaction(call, std::move(container), operations, *level);
    co_return;
  }
  auto range = NamedRange(call, *container);
  if (!range) {
    call.Fail(range.error());
    co_return;
  }
  co_await RunBulk(call, std::move(container), operations, *range, *level);
}

}  // namespace orrery::api::sql
