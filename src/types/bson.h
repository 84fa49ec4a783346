// The parts of BSON that document.cc and document_json.cc share.
//
//   document  int32 length of the whole, element*, 00
//   element   type byte, name, 00, payload
//
// All integers are little endian. NextElement checks every length against the end of its input, so
// even broken bytes are never read past their end.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace orrery::types {

static_assert(std::endian::native == std::endian::little);

enum class BsonType : uint8_t {
  kDouble = 0x01,
  kString = 0x02,
  kObject = 0x03,
  kArray = 0x04,
  kBinary = 0x05,
  kObjectId = 0x07,
  kBool = 0x08,
  kDate = 0x09,
  kNull = 0x0A,
  kRegex = 0x0B,
  kInt32 = 0x10,
  kTimestamp = 0x11,
  kInt64 = 0x12,
  kDecimal128 = 0x13,
  kMaxKey = 0x7F,
  kMinKey = 0xFF,
};

template <typename T>
T LoadLittle(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void StoreLittle(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

constexpr uint64_t EachByte(uint8_t byte) { return uint64_t{0x0101010101010101} * byte; }

// The high bit of the lowest zero byte is set; bits above it may be set as well.
inline uint64_t ZeroBytes(uint64_t word) { return (word - EachByte(1)) & ~word & EachByte(0x80); }

// How long a payload is: `base`, and the leading int32 if `prefixed`. `least` is the smallest sound
// size.
struct PayloadShape {
  uint8_t base = 0;
  uint8_t least = 0xFF;  // no such type
  bool prefixed = false;
};

inline constexpr std::array<PayloadShape, 256> kPayloadShapes = [] {
  std::array<PayloadShape, 256> shapes{};
  auto set = [&shapes](BsonType type, PayloadShape shape) {
    shapes[static_cast<uint8_t>(type)] = shape;
  };
  set(BsonType::kDouble, {8, 8});
  set(BsonType::kString, {4, 5, true});
  set(BsonType::kObject, {0, 5, true});
  set(BsonType::kArray, {0, 5, true});
  set(BsonType::kBinary, {5, 5, true});
  set(BsonType::kObjectId, {12, 12});
  set(BsonType::kBool, {1, 1});
  set(BsonType::kDate, {8, 8});
  set(BsonType::kNull, {0, 0});
  set(BsonType::kInt32, {4, 4});
  set(BsonType::kTimestamp, {8, 8});
  set(BsonType::kInt64, {8, 8});
  set(BsonType::kDecimal128, {16, 16});
  set(BsonType::kMaxKey, {0, 0});
  set(BsonType::kMinKey, {0, 0});
  return shapes;
}();

struct BsonElement {
  uint8_t type = 0;
  std::string_view name;
  std::string_view payload;
};

// The first NUL, or null if there is none before `end`.
[[gnu::always_inline]] inline const char* FindNul(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    if (uint64_t zeros = ZeroBytes(LoadLittle<uint64_t>(at)); zeros != 0) {
      return at + std::countr_zero(zeros) / 8;
    }
  }
  for (; at < end; ++at) {
    if (*at == 0) {
      return at;
    }
  }
  return nullptr;
}

// The size of the payload at `at`; more than `left` if it is broken.
inline size_t PayloadSize(uint8_t type, const char* at, size_t left) {
  PayloadShape shape = kPayloadShapes[type];
  if (type == static_cast<uint8_t>(BsonType::kRegex)) {
    const char* pattern_end = FindNul(at, at + left);
    const char* options_end = pattern_end ? FindNul(pattern_end + 1, at + left) : nullptr;
    return options_end ? options_end + 1 - at : SIZE_MAX;
  }
  size_t size = shape.base;
  if (shape.prefixed && left >= 4) {
    size += LoadLittle<uint32_t>(at);
  }
  return size < shape.least ? SIZE_MAX : size;
}

// Reads the element at `at` and moves past it. False at the end, and then `at` is `end`, or at the
// first fault, and then it is not.
[[gnu::always_inline]] inline bool NextElement(const char*& at, const char* end,
                                               BsonElement& element) {
  if (at == end) {
    return false;
  }
  const char* name = at + 1;
  const char* nul = FindNul(name, end);
  if (nul == nullptr) {
    return false;
  }
  uint8_t type = static_cast<uint8_t>(*at);
  size_t left = end - (nul + 1);
  size_t size = PayloadSize(type, nul + 1, left);
  if (size > left) {
    return false;
  }
  element.type = type;
  element.name = {name, static_cast<size_t>(nul - name)};
  element.payload = {nul + 1, size};
  at = nul + 1 + size;
  return true;
}

// The elements of a document: without the length before and the NUL behind. Empty if it is too
// short.
inline std::string_view Elements(std::string_view bson) {
  return bson.size() < 5 ? std::string_view() : bson.substr(4, bson.size() - 5);
}

}  // namespace orrery::types
