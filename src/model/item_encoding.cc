// How the operations on items are sent between nodes. See docs/formats/operations.md.
#include "model/freeze_partition.h"
#include "model/inspect_partition.h"
#include "model/items.h"
#include "partition/budget.h"
#include "partition/replica.h"

namespace orrery::model {

using partition::Operation;

namespace {

constexpr size_t kStepsDecodedMax = 10'000;

void EncodeStep(Encoder& encoder, const ItemStep& step) {
  encoder.U8(static_cast<uint8_t>(step.kind));
  encoder.Bytes(step.id);
  encoder.Bytes(step.body.bson());
  step.patch.Encode(encoder);
  encoder.Bytes(step.if_match);
  encoder.Bytes(step.if_none_match);
}

Result<ItemStep> DecodeStep(Decoder& decoder) {
  ItemStep step;
  uint8_t kind = decoder.U8();
  if (kind < static_cast<uint8_t>(StepKind::kCreate) ||
      kind > static_cast<uint8_t>(StepKind::kRead)) {
    return Error(Code::kInvalidArgument, "step of an unknown kind");
  }
  step.kind = static_cast<StepKind>(kind);
  step.id = decoder.Bytes();
  ORRERY_TRY(step.body, types::Document::FromBson(std::string(decoder.Bytes())));
  step.patch = Patch::Decode(decoder);
  step.if_match = decoder.Bytes();
  step.if_none_match = decoder.Bytes();
  return step;
}

}  // namespace

void ItemAddress::Encode(Encoder& encoder) const {
  encoder.Bytes(epk);
  key.Encode(encoder);
}

ItemAddress ItemAddress::Decode(Decoder& decoder) {
  ItemAddress address;
  address.epk = decoder.Bytes();
  address.key = types::PartitionKey::Decode(decoder);
  return address;
}

void ReadItem::Encode(Encoder& encoder) const {
  address.Encode(encoder);
  encoder.Bytes(id);
  encoder.Bytes(if_none_match);
  encoder.Varint(session.value());
}

Result<std::unique_ptr<Operation>> ReadItem::Decode(Decoder& decoder) {
  auto read = std::make_unique<ReadItem>();
  read->address = ItemAddress::Decode(decoder);
  read->id = decoder.Bytes();
  read->if_none_match = decoder.Bytes();
  read->session = Lsn(decoder.Varint());
  return partition::OperationRegistry::Checked(decoder, std::move(read));
}

void WriteItems::Encode(Encoder& encoder) const {
  address.Encode(encoder);
  encoder.Varint(session.value());
  encoder.Varint(steps.size());
  for (const ItemStep& step : steps) {
    EncodeStep(encoder, step);
  }
}

Result<std::unique_ptr<Operation>> WriteItems::Decode(Decoder& decoder) {
  auto write = std::make_unique<WriteItems>();
  write->address = ItemAddress::Decode(decoder);
  write->session = Lsn(decoder.Varint());
  uint64_t count = decoder.Varint();
  if (count > kStepsDecodedMax) {
    return Error(Code::kInvalidArgument, "operation has too many steps");
  }
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    ORRERY_TRY(ItemStep step, DecodeStep(decoder));
    write->steps.push_back(std::move(step));
  }
  return partition::OperationRegistry::Checked(decoder, std::move(write));
}

void ReadFeed::Encode(Encoder& encoder) const {
  encoder.Bytes(range.min);
  encoder.Bytes(range.max);
  encoder.Bool(only_key.has_value());
  if (only_key) {
    only_key->Encode(encoder);
  }
  encoder.Bytes(after);
  encoder.U32(items_max);
  encoder.Bytes(filter);
  encoder.Bytes(parameters.bson());
  encoder.Varint(session.value());
}

Result<std::unique_ptr<Operation>> ReadFeed::Decode(Decoder& decoder) {
  auto feed = std::make_unique<ReadFeed>();
  feed->range.min = decoder.Bytes();
  feed->range.max = decoder.Bytes();
  if (decoder.Bool()) {
    feed->only_key = types::PartitionKey::Decode(decoder);
  }
  feed->after = decoder.Bytes();
  feed->items_max = decoder.U32();
  feed->filter = decoder.Bytes();
  ORRERY_TRY(feed->parameters, types::Document::FromBson(std::string(decoder.Bytes())));
  feed->session = Lsn(decoder.Varint());
  return partition::OperationRegistry::Checked(decoder, std::move(feed));
}

void DeleteItems::Encode(Encoder& encoder) const {
  encoder.Bool(logical_partition.has_value());
  if (logical_partition) {
    logical_partition->Encode(encoder);
  }
  encoder.Bytes(after);
}

Result<std::unique_ptr<Operation>> DeleteItems::Decode(Decoder& decoder) {
  auto remove = std::make_unique<DeleteItems>();
  if (decoder.Bool()) {
    remove->logical_partition = ItemAddress::Decode(decoder);
  }
  remove->after = decoder.Bytes();
  return partition::OperationRegistry::Checked(decoder, std::move(remove));
}

std::string EncodeStepResults(const std::vector<StepResult>& results) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.Varint(results.size());
  for (const StepResult& result : results) {
    encoder.U8(static_cast<uint8_t>(result.status.code()));
    encoder.Bytes(result.status.message());
    encoder.Bool(result.created);
    encoder.Bool(result.undone);
    encoder.Varint(static_cast<uint64_t>(result.charge.hundredths()));
    encoder.Bytes(result.item);
  }
  return bytes;
}

Result<std::vector<StepResult>> DecodeStepResults(std::string_view bytes) {
  Decoder decoder(bytes);
  std::vector<StepResult> results;
  uint64_t count = decoder.Varint();
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    StepResult result;
    uint8_t code = std::min(decoder.U8(), static_cast<uint8_t>(Code::kInternal));
    result.status = Status(static_cast<Code>(code), std::string(decoder.Bytes()));
    result.created = decoder.Bool();
    result.undone = decoder.Bool();
    result.charge = partition::RequestUnits::Hundredths(static_cast<int64_t>(decoder.Varint()));
    result.item = decoder.Bytes();
    results.push_back(std::move(result));
  }
  if (!decoder.done()) {
    return Error(Code::kUnknownOutcome, "the results of the steps are malformed");
  }
  return results;
}

std::string ReadFeed::Page::Encode() const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.Varint(items.size());
  for (const std::string& item : items) {
    encoder.Bytes(item);
  }
  encoder.Bytes(last);
  return bytes;
}

Result<ReadFeed::Page> ReadFeed::Page::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Page page;
  uint64_t count = decoder.Varint();
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    page.items.emplace_back(decoder.Bytes());
  }
  page.last = decoder.Bytes();
  if (!decoder.done()) {
    return Error(Code::kInternal, "the page of a feed is malformed");
  }
  return page;
}

void ReadTotals::Encode(Encoder& encoder) const {
  if (with_use) {
    encoder.Bool(true);
  }
}

Result<std::unique_ptr<Operation>> ReadTotals::Decode(Decoder& decoder) {
  auto operation = std::make_unique<ReadTotals>();
  operation->with_use = decoder.left() > 0;
  if ((operation->with_use && decoder.U8() != 1) || !decoder.done()) {
    return Error(Code::kInvalidArgument, "a malformed request for totals");
  }
  return operation;
}

runtime::Task<partition::Reply> ReadTotals::Run(partition::Replica& replica) {
  partition::Reply reply = replica.MakeReply(Status::Ok(), {});
  storage::Totals totals = replica.totals();
  Encoder encoder(reply.body);
  encoder.U64(static_cast<uint64_t>(totals.bytes));
  encoder.U64(static_cast<uint64_t>(totals.items));
  if (with_use) {
    auto sustained = replica.governor().Sustained(replica.services().clock.Now());
    encoder.U64(static_cast<uint64_t>(sustained.hundredths()));
  }
  co_return reply;
}

namespace {

storage::Totals TakeTotals(Decoder& decoder) {
  storage::Totals totals;
  totals.bytes = static_cast<int64_t>(decoder.U64());
  totals.items = static_cast<int64_t>(decoder.U64());
  return totals;
}

std::unexpected<Status> MalformedTotals() {
  return Error(Code::kInternal, "the totals of a partition are malformed");
}

}  // namespace

Result<storage::Totals> ReadTotals::DecodeTotals(std::string_view body) {
  Decoder decoder(body);
  storage::Totals totals = TakeTotals(decoder);
  if (!decoder.done()) {
    return MalformedTotals();
  }
  return totals;
}

Result<ReadTotals::Use> ReadTotals::DecodeUse(std::string_view body) {
  Decoder decoder(body);
  Use use{.totals = TakeTotals(decoder)};
  use.sustained = partition::RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  if (!decoder.done()) {
    return MalformedTotals();
  }
  return use;
}

void RegisterItemOperations(partition::OperationRegistry& registry) {
  registry.Register(partition::OperationKind::kBorrowUnits, partition::BorrowUnits::Decode);
  registry.Register(partition::OperationKind::kReadTotals, ReadTotals::Decode);
  registry.Register(partition::OperationKind::kFreezePartition, FreezePartition::Decode);
  registry.Register(partition::OperationKind::kInspectPartition, InspectPartition::Decode);
  registry.Register(partition::OperationKind::kReadItem, ReadItem::Decode);
  registry.Register(partition::OperationKind::kWriteItems, WriteItems::Decode);
  registry.Register(partition::OperationKind::kReadFeed, ReadFeed::Decode);
  registry.Register(partition::OperationKind::kDeleteItems, DeleteItems::Decode);
}

}  // namespace orrery::model
