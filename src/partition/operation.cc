#include "partition/operation.h"

namespace orrery::partition {

namespace {
constexpr uint8_t kMessageVersion = 1;
// With a claim that is not the default one; from format 2 of a cluster on.
constexpr uint8_t kClaimVersion = 2;
// With what has ended before; from format 3 of a cluster on.
constexpr uint8_t kSettlingVersion = 3;
}  // namespace

void Reply::Encode(Encoder& encoder) const {
  encoder.U8(static_cast<uint8_t>(status.code()));
  encoder.Varint(status.retry_after_ms());
  encoder.Bytes(status.message());
  encoder.U64(static_cast<uint64_t>(charge.hundredths()));
  encoder.Varint(lsn.value());
  encoder.Varint(partition.value());
  encoder.Varint(leader.value());
  encoder.Bytes(body);
}

Reply Reply::Decode(Decoder& decoder) {
  Reply reply;
  uint8_t code = decoder.U8();
  auto retry_after_ms = static_cast<uint32_t>(decoder.Varint());
  std::string message(decoder.Bytes());
  reply.charge = RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  reply.lsn = Lsn(decoder.Varint());
  reply.partition = PartitionId(decoder.Varint());
  reply.leader = NodeId(static_cast<uint32_t>(decoder.Varint()));
  reply.body = decoder.Bytes();
  if (!decoder.ok() || code > static_cast<uint8_t>(Code::kInternal)) {
    reply.status = Status(Code::kUnknownOutcome, "the reply of the partition is malformed");
    return reply;
  }
  reply.status = Status(static_cast<Code>(code), std::move(message));
  reply.status.set_retry_after_ms(retry_after_ms);
  return reply;
}

std::string OperationRegistry::EncodeMessage(const Operation& operation) {
  const Target& target = operation.target;
  std::string bytes;
  Encoder encoder(bytes);
  const uint8_t version = operation.settled > 0        ? kSettlingVersion
                          : operation.claim != Claim() ? kClaimVersion
                                                       : kMessageVersion;
  encoder.U8(version);
  encoder.U32(target.container.value());
  encoder.Varint(target.partition.value());
  encoder.Varint(target.generation);
  encoder.Varint(target.schema_version);
  encoder.U64(operation.id.high);
  encoder.U64(operation.id.low);
  encoder.U8(static_cast<uint8_t>(operation.level));
  if (version >= kClaimVersion) {
    encoder.U8(static_cast<uint8_t>(operation.claim.priority));
    encoder.U8(operation.claim.bucket);
  }
  if (version >= kSettlingVersion) {
    encoder.Varint(operation.settled);
    encoder.Bool(operation.again);
  }
  encoder.U8(static_cast<uint8_t>(operation.kind()));
  operation.Encode(encoder);
  return bytes;
}

Result<std::unique_ptr<Operation>> OperationRegistry::Checked(
    const Decoder& decoder, std::unique_ptr<Operation> operation) {
  if (!decoder.ok()) {
    return Error(Code::kInvalidArgument, "operation is malformed");
  }
  return operation;
}

Result<std::unique_ptr<Operation>> OperationRegistry::DecodeMessage(std::string_view bytes) const {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  Target target;
  target.container = ContainerId(decoder.U32());
  target.partition = PartitionId(decoder.Varint());
  target.generation = decoder.Varint();
  target.schema_version = decoder.Varint();
  storage::OperationId id{.high = decoder.U64(), .low = decoder.U64()};
  auto level = static_cast<ReadLevel>(decoder.U8());
  Claim claim;
  if (version >= kClaimVersion) {
    claim.priority = static_cast<Priority>(decoder.U8());
    claim.bucket = decoder.U8();
  }
  const uint64_t settled = version >= kSettlingVersion ? decoder.Varint() : 0;
  const bool again = version >= kSettlingVersion && decoder.Bool();
  auto kind = static_cast<OperationKind>(decoder.U8());
  auto found = decoders_.find(kind);
  if (!decoder.ok() || version < kMessageVersion || version > kSettlingVersion ||
      level > ReadLevel::kEventual || claim.priority > Priority::kLow ||
      claim.bucket > kBucketsMax || found == decoders_.end()) {
    return Error(Code::kInvalidArgument,
                 "operation message is malformed or newer than this program");
  }
  ORRERY_TRY(std::unique_ptr<Operation> operation, found->second(decoder));
  if (!decoder.done()) {
    return Error(Code::kInvalidArgument, "operation message is malformed");
  }
  operation->id = id;
  operation->settled = settled;
  operation->again = again;
  operation->target = target;
  operation->level = level;
  operation->claim = claim;
  return operation;
}

}  // namespace orrery::partition
