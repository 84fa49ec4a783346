// How the operations on rows are sent between nodes. See docs/formats/operations.md.
#include "rows/rows.h"

namespace orrery::rows {

using partition::Operation;

namespace {

constexpr uint8_t kBatchVersion = 1;

void PutSigned(Encoder& encoder, int64_t value) {
  encoder.Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}
int64_t TakeSigned(Decoder& decoder) {
  uint64_t value = decoder.Varint();
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

void PutOptional(Encoder& encoder, const std::optional<std::string>& value) {
  encoder.Bool(value.has_value());
  if (value) {
    encoder.Bytes(*value);
  }
}
std::optional<std::string> TakeOptional(Decoder& decoder) {
  return decoder.Bool() ? std::optional(std::string(decoder.Bytes())) : std::nullopt;
}

// How many elements follow; each takes at least one byte.
uint64_t TakeCount(Decoder& decoder) {
  uint64_t count = decoder.Varint();
  if (count > decoder.left()) {
    decoder.Fail();
    return 0;
  }
  return count;
}

template <typename T>
T TakeEnum(Decoder& decoder, T first, T last) {
  auto value = static_cast<T>(decoder.U8());
  if (value < first || value > last) {
    decoder.Fail();
    return first;
  }
  return value;
}

void Put(Encoder& encoder, const RowChange& change) {
  encoder.U8(static_cast<uint8_t>(change.action));
  encoder.U8(static_cast<uint8_t>(change.is_static | change.marks << 1 |
                                  change.timestamp.has_value() << 2 | (change.whole > 0) << 3));
  encoder.Bytes(change.key);
  encoder.Bytes(change.end);
  if (change.timestamp) {
    PutSigned(encoder, *change.timestamp);
  }
  encoder.Varint(static_cast<uint64_t>(change.made));
  encoder.Varint(static_cast<uint64_t>(change.ttl));
  if (change.whole > 0) {
    encoder.Varint(change.whole);
  }
  encoder.Varint(change.cells.size());
  for (const CellChange& cell : change.cells) {
    encoder.U8(static_cast<uint8_t>(cell.action));
    encoder.Varint(cell.column);
    encoder.Bytes(cell.path);
    encoder.Bytes(cell.value);
  }
}

RowChange TakeChange(Decoder& decoder) {
  RowChange change;
  change.action = TakeEnum(decoder, RowAction::kWrite, RowAction::kRefresh);
  const uint8_t flags = decoder.U8();
  change.is_static = (flags & 1) != 0;
  change.marks = (flags & 2) != 0;
  change.key = decoder.Bytes();
  change.end = decoder.Bytes();
  if ((flags & 4) != 0) {
    change.timestamp = TakeSigned(decoder);
  }
  change.made = static_cast<int64_t>(decoder.Varint());
  change.ttl = static_cast<int32_t>(decoder.Varint());
  if ((flags & 8) != 0) {
    change.whole = static_cast<uint32_t>(decoder.Varint());
  }
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    CellChange& cell = change.cells.emplace_back();
    cell.action = TakeEnum(decoder, CellAction::kSet, CellAction::kRemove);
    cell.column = static_cast<uint32_t>(decoder.Varint());
    cell.path = decoder.Bytes();
    cell.value = decoder.Bytes();
  }
  return change;
}

void Put(Encoder& encoder, const RowCondition& condition) {
  encoder.U8(static_cast<uint8_t>(condition.kind));
  encoder.Bool(condition.is_static);
  encoder.Bytes(condition.key);
  encoder.Varint(condition.cells.size());
  for (const CellCondition& cell : condition.cells) {
    encoder.Varint(cell.column);
    cell.type.Encode(encoder);
    encoder.U8(static_cast<uint8_t>(cell.comparison));
    encoder.U8(static_cast<uint8_t>(cell.part));
    encoder.Bytes(cell.element);
    encoder.Varint(cell.field);
    encoder.Varint(cell.values.size());
    for (const auto& value : cell.values) {
      PutOptional(encoder, value);
    }
  }
}

RowCondition TakeCondition(Decoder& decoder) {
  using Part = CellCondition::Part;
  RowCondition condition;
  condition.kind = TakeEnum(decoder, RowCondition::Kind::kExists, RowCondition::Kind::kCells);
  condition.is_static = decoder.Bool();
  condition.key = decoder.Bytes();
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    CellCondition& cell = condition.cells.emplace_back();
    cell.column = static_cast<uint32_t>(decoder.Varint());
    cell.type = cql::DataType::Decode(decoder);
    cell.comparison = TakeEnum(decoder, cql::Comparison::kEqual, cql::Comparison::kIsNotNull);
    cell.part = TakeEnum(decoder, Part::kAll, Part::kField);
    cell.element = decoder.Bytes();
    cell.field = static_cast<uint32_t>(decoder.Varint());
    for (uint64_t values = TakeCount(decoder); values > 0 && decoder.ok(); --values) {
      cell.values.push_back(TakeOptional(decoder));
    }
    if ((cell.part == Part::kField &&
         (cell.type.id() != cql::TypeId::kUdt || cell.field >= cell.type.parameters().size())) ||
        (cell.part == Part::kElement && !cell.type.is_collection()) ||
        (cell.part == Part::kElement && cell.type.id() != cql::TypeId::kMap &&
         cell.element.size() != 4)) {
      decoder.Fail();
    }
  }
  return condition;
}

}  // namespace

void WriteRows::Encode(Encoder& encoder) const {
  encoder.Bytes(epk);
  encoder.Bytes(partition_key);
  encoder.Varint(changes.size());
  for (const RowChange& change : changes) {
    Put(encoder, change);
  }
  encoder.Varint(conditions.size());
  for (const RowCondition& condition : conditions) {
    Put(encoder, condition);
  }
  encoder.Bytes(batch);
  encoder.Bool(forced);
  // Nodes that know no derived tables have none to write to.
  if (derived != 0) {
    encoder.Varint(derived);
    encoder.Bool(derivation != nullptr);
    if (derivation != nullptr) {
      derivation->Encode(encoder);
    }
  }
}

Result<std::unique_ptr<Operation>> WriteRows::Decode(Decoder& decoder) {
  auto write = std::make_unique<WriteRows>();
  write->epk = decoder.Bytes();
  write->partition_key = decoder.Bytes();
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    write->changes.push_back(TakeChange(decoder));
  }
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    write->conditions.push_back(TakeCondition(decoder));
  }
  write->batch = decoder.Bytes();
  write->forced = decoder.Bool();
  if (decoder.left() > 0) {
    write->derived = static_cast<uint32_t>(decoder.Varint());
    if (decoder.Bool()) {
      write->derivation = std::make_shared<const Derivation>(Derivation::Decode(decoder));
    }
  }
  return partition::OperationRegistry::Checked(decoder, std::move(write));
}

std::string KeptBatch::Encode() const {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kBatchVersion);
  encoder.U64(static_cast<uint64_t>(made));
  encoder.Varint(parts.size());
  for (const BatchPart& part : parts) {
    encoder.U32(part.container.value());
    encoder.Bytes(part.epk);
    encoder.Bytes(part.partition_key);
    encoder.Varint(part.changes.size());
    for (const RowChange& change : part.changes) {
      Put(encoder, change);
    }
  }
  return out;
}

Result<KeptBatch> KeptBatch::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  KeptBatch batch;
  const uint8_t version = decoder.U8();
  batch.made = static_cast<int64_t>(decoder.U64());
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    BatchPart& part = batch.parts.emplace_back();
    part.container = ContainerId(decoder.U32());
    part.epk = decoder.Bytes();
    part.partition_key = decoder.Bytes();
    for (uint64_t changes = TakeCount(decoder); changes > 0 && decoder.ok(); --changes) {
      part.changes.push_back(TakeChange(decoder));
    }
  }
  if (!decoder.done() || version != kBatchVersion) {
    return Error(Code::kCorruption, "a batch is malformed or newer than this program");
  }
  return batch;
}

void EndBatch::Encode(Encoder& encoder) const {
  encoder.Bytes(epk);
  encoder.Bytes(partition_key);
  encoder.U64(batch.high);
  encoder.U64(batch.low);
}

Result<std::unique_ptr<Operation>> EndBatch::Decode(Decoder& decoder) {
  auto end = std::make_unique<EndBatch>();
  end->epk = decoder.Bytes();
  end->partition_key = decoder.Bytes();
  end->batch.high = decoder.U64();
  end->batch.low = decoder.U64();
  return partition::OperationRegistry::Checked(decoder, std::move(end));
}

std::string WriteAnswer::Encode() const {
  std::string out;
  Encoder encoder(out);
  encoder.Bool(applied);
  PutSigned(encoder, now);
  encoder.Varint(seen.size());
  for (const SeenRow& row : seen) {
    encoder.Bytes(row.key);
    PutOptional(encoder, row.row);
    PutOptional(encoder, row.static_row);
    PutSigned(encoder, row.deleted);
  }
  if (!batch.empty()) {
    encoder.Bytes(batch);
    encoder.U64(batch_id.high);
    encoder.U64(batch_id.low);
  }
  return out;
}

Result<WriteAnswer> WriteAnswer::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  WriteAnswer answer;
  answer.applied = decoder.Bool();
  answer.now = TakeSigned(decoder);
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    SeenRow& row = answer.seen.emplace_back();
    row.key = decoder.Bytes();
    row.row = TakeOptional(decoder);
    row.static_row = TakeOptional(decoder);
    row.deleted = TakeSigned(decoder);
  }
  if (decoder.left() > 0) {
    answer.batch = decoder.Bytes();
    answer.batch_id = {.high = decoder.U64(), .low = decoder.U64()};
  }
  if (!decoder.done()) {
    return Error(Code::kUnknownOutcome, "the answer to a write is malformed");
  }
  return answer;
}

void ReadRows::Encode(Encoder& encoder) const {
  encoder.Bool(partition_key.has_value());
  if (partition_key) {
    encoder.Bytes(*partition_key);
  }
  encoder.Bytes(range.min);
  encoder.Bytes(range.max);
  encoder.Varint(spans.size());
  for (const RowSpan& span : spans) {
    encoder.Bytes(span.begin);
    encoder.Bytes(span.end);
    encoder.Bool(span.one);
  }
  encoder.U8(static_cast<uint8_t>(reversed | with_static << 1 | only_partitions << 2));
  encoder.U32(rows_max);
  encoder.U32(partition_rows_max);
  encoder.Bytes(after);
  encoder.U32(after_rows);
}

Result<std::unique_ptr<Operation>> ReadRows::Decode(Decoder& decoder) {
  auto read = std::make_unique<ReadRows>();
  if (decoder.Bool()) {
    read->partition_key = decoder.Bytes();
  }
  read->range.min = decoder.Bytes();
  read->range.max = decoder.Bytes();
  for (uint64_t left = TakeCount(decoder); left > 0 && decoder.ok(); --left) {
    RowSpan& span = read->spans.emplace_back();
    span.begin = decoder.Bytes();
    span.end = decoder.Bytes();
    span.one = decoder.Bool();
  }
  const uint8_t flags = decoder.U8();
  read->reversed = (flags & 1) != 0;
  read->with_static = (flags & 2) != 0;
  read->only_partitions = (flags & 4) != 0;
  read->rows_max = decoder.U32();
  read->partition_rows_max = decoder.U32();
  read->after = decoder.Bytes();
  read->after_rows = decoder.U32();
  return partition::OperationRegistry::Checked(decoder, std::move(read));
}

Result<std::unique_ptr<Operation>> TruncateRows::Decode(Decoder& decoder) {
  return partition::OperationRegistry::Checked(decoder, std::make_unique<TruncateRows>());
}

void RegisterRowOperations(partition::OperationRegistry& registry) {
  using partition::OperationKind;
  registry.Register(OperationKind::kReadRows, ReadRows::Decode);
  registry.Register(OperationKind::kWriteRows, WriteRows::Decode);
  registry.Register(OperationKind::kTruncateRows, TruncateRows::Decode);
  registry.Register(OperationKind::kEndBatch, EndBatch::Decode);
}

}  // namespace orrery::rows
