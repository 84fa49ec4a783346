#include "storage/item.h"

#include "base/bytes.h"

namespace orrery::storage {

namespace {
constexpr uint8_t kVersion = 1;
constexpr size_t kLsnAt = 2;
}  // namespace

std::string EncodeItem(const ItemHeader& header, std::string_view payload) {
  std::string out;
  out.reserve(kItemHeaderBytes + payload.size());
  Encoder encoder(out);
  encoder.U8(kVersion);
  encoder.U8(0);
  encoder.U64(header.lsn.value());
  encoder.U64(static_cast<uint64_t>(header.time.micros));
  encoder.U64(header.number);
  encoder.U32(static_cast<uint32_t>(header.ttl));
  encoder.Raw(payload);
  return out;
}

Result<ItemView> DecodeItem(std::string_view value) {
  Decoder decoder(value);
  uint8_t version = decoder.U8();
  decoder.U8();
  ItemView item;
  item.header.lsn = Lsn(decoder.U64());
  item.header.time = {static_cast<int64_t>(decoder.U64())};
  item.header.number = decoder.U64();
  item.header.ttl = static_cast<int32_t>(decoder.U32());
  item.payload = decoder.Rest();
  if (!decoder.ok() || version != kVersion) {
    return Error(Code::kCorruption, version > kVersion && decoder.ok()
                                        ? "item of format version " + std::to_string(version) +
                                              ", this program reads up to 1"
                                        : "item header is malformed");
  }
  return item;
}

bool ItemHeader::Expired(std::optional<int32_t> container_default, WallTime now) const {
  if (!container_default) {
    return false;
  }
  int32_t effective = ttl != 0 ? ttl : *container_default;
  return effective > 0 && now.seconds() >= time.seconds() + effective;
}

void StampItem(char* value, Lsn lsn) { PutU64(value + kLsnAt, lsn.value()); }

}  // namespace orrery::storage
