#include "types/rid.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace orrery::types {
namespace {

constexpr size_t kContainerSize = 8;
constexpr uint32_t kContainerBit = uint32_t{1} << 31;

// The type of what stands below a container: the top nibble of its last byte.
constexpr uint64_t kPartitionRangeType = 5;
constexpr int kTypeShift = 60;

std::string ChildRid(std::string_view container_rid, uint64_t type, uint64_t number) {
  ORRERY_CHECK(number >> kTypeShift == 0);
  std::string base64(container_rid);
  std::ranges::replace(base64, '-', '/');
  std::string bytes;
  bool is_rid = FromBase64(base64, &bytes);
  ORRERY_CHECK(is_rid && bytes.size() == kContainerSize);
  Encoder(bytes).U64(__builtin_bswap64(type << kTypeShift | number));
  return RidText(bytes);
}

}  // namespace

std::string DatabaseRid(DatabaseId database) {
  std::string bytes;
  Encoder(bytes).U32(database.value());
  return RidText(bytes);
}

std::string ContainerRid(DatabaseId database, ContainerId container) {
  ORRERY_CHECK(container.value() < kContainerBit);
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U32(database.value());
  encoder.U32(container.value() | kContainerBit);
  return RidText(bytes);
}

std::string DocumentRid(std::string_view container_rid, uint64_t number) {
  return ChildRid(container_rid, 0, number);
}

std::string PartitionRangeRid(std::string_view container_rid, PartitionId id) {
  return ChildRid(container_rid, kPartitionRangeType, id.value());
}

std::string OfferRid(uint32_t number) {
  ORRERY_CHECK(number >> 24 == 0);
  std::string bytes;
  Encoder(bytes).U32(number);
  return RidText(std::string_view(bytes).substr(1));
}

std::string RidText(std::string_view bytes) {
  std::string text = ToBase64(bytes);
  std::ranges::replace(text, '/', '-');
  return text;
}

bool ReadRid(std::string_view text, std::string* bytes) {
  std::string base64(text);
  std::ranges::replace(base64, '-', '/');
  // Two texts must not name one resource: what the decoder would forgive is refused.
  if (!FromBase64(base64, bytes) || RidText(*bytes) != text) {
    bytes->clear();
    return false;
  }
  return true;
}

}  // namespace orrery::types
