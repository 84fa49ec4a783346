#include "base/bytes.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace orrery {

void PutU32(char* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, 4);
}
void PutU64(char* at, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(at, &value, 8);
}
uint32_t GetU32(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}
uint64_t GetU64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
  return __builtin_bswap64(value);
}

void Encoder::U32(uint32_t value) {
  char bytes[4];
  PutU32(bytes, value);
  out_.append(bytes, 4);
}

void Encoder::U64(uint64_t value) {
  char bytes[8];
  PutU64(bytes, value);
  out_.append(bytes, 8);
}

void Encoder::Varint(uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void Encoder::Double(double value) { U64(std::bit_cast<uint64_t>(value)); }

std::string_view Decoder::Raw(size_t size) {
  if (size > in_.size()) {
    Fail();
    return {};
  }
  std::string_view head = in_.substr(0, size);
  in_.remove_prefix(size);
  return head;
}

uint8_t Decoder::U8() {
  std::string_view head = Raw(1);
  return head.empty() ? 0 : static_cast<uint8_t>(head[0]);
}

uint32_t Decoder::U32() {
  std::string_view head = Raw(4);
  return head.empty() ? 0 : GetU32(head.data());
}

uint64_t Decoder::U64() {
  std::string_view head = Raw(8);
  return head.empty() ? 0 : GetU64(head.data());
}

uint64_t Decoder::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = U8();
    if (!ok_) {
      return 0;
    }
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  Fail();
  return 0;
}

std::string_view Decoder::Bytes() {
  uint64_t size = Varint();
  return Raw(size);
}

double Decoder::Double() { return std::bit_cast<double>(U64()); }

std::string_view Decoder::Rest() { return Raw(in_.size()); }

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return -1;
}

namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kBase64Values = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 64; ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  }
  return values;
}();

}  // namespace

bool FromHex(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 2 != 0) {
    return false;
  }
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = HexDigit(text[i]);
    int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) {
      return false;
    }
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

std::string ToBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  size_t i = 0;
  auto byte = [&bytes](size_t at) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[at]));
  };
  for (; i + 3 <= bytes.size(); i += 3) {
    uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *out++ = kBase64[group >> 18];
    *out++ = kBase64[group >> 12 & 63];
    *out++ = kBase64[group >> 6 & 63];
    *out++ = kBase64[group & 63];
  }
  if (i < bytes.size()) {
    bool two = i + 1 < bytes.size();
    uint32_t group = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
    *out++ = kBase64[group >> 18];
    *out++ = kBase64[group >> 12 & 63];
    if (two) {
      *out = kBase64[group >> 6 & 63];
    }
  }
  return text;
}

bool FromBase64(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 4 != 0) {
    return false;
  }
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
    ++padding;
  }
  text.remove_suffix(padding);
  bytes->resize(text.size() * 3 / 4);
  char* out = bytes->data();
  uint32_t group = 0;
  int bits = 0;
  int wrong = 0;
  for (char c : text) {
    int value = kBase64Values[static_cast<unsigned char>(c)];
    wrong |= value;
    group = group << 6 | static_cast<uint32_t>(value & 63);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *out++ = static_cast<char>(group >> bits);
    }
  }
  return wrong >= 0;
}

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
#if defined(__SSE4_2__)
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = static_cast<uint32_t>(_mm_crc32_u64(crc, word));
  }
  for (; left > 0; ++at, --left) {
    crc = _mm_crc32_u8(crc, static_cast<uint8_t>(*at));
  }
#else
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
  }
#endif
  return ~crc;
}

}  // namespace orrery
