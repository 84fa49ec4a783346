#include "cql/wire.h"

#include <algorithm>

#include "base/bytes.h"

namespace orrery::cql {

void WireWriter::Short(uint16_t value) {
  char bytes[] = {static_cast<char>(value >> 8), static_cast<char>(value)};
  out_.append(bytes, sizeof(bytes));
}

void WireWriter::Int(int32_t value) {
  char bytes[4];
  PutU32(bytes, static_cast<uint32_t>(value));
  out_.append(bytes, sizeof(bytes));
}

void WireWriter::Long(int64_t value) {
  char bytes[8];
  PutU64(bytes, static_cast<uint64_t>(value));
  out_.append(bytes, sizeof(bytes));
}

void WireWriter::String(std::string_view text) {
  text = text.substr(0, UINT16_MAX);
  Short(static_cast<uint16_t>(text.size()));
  out_.append(text);
}

void WireWriter::Bytes(std::string_view bytes) {
  Int(static_cast<int32_t>(bytes.size()));
  out_.append(bytes);
}

std::string_view WireReader::Raw(size_t size) {
  if (size > in_.size()) {
    Fail();
    return {};
  }
  std::string_view bytes = in_.substr(0, size);
  in_.remove_prefix(size);
  return bytes;
}

uint8_t WireReader::Byte() {
  std::string_view bytes = Raw(1);
  return bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
}

uint16_t WireReader::Short() {
  std::string_view bytes = Raw(2);
  if (bytes.empty()) {
    return 0;
  }
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[0]) << 8 |
                               static_cast<uint8_t>(bytes[1]));
}

int32_t WireReader::Int() {
  std::string_view bytes = Raw(4);
  return bytes.empty() ? 0 : static_cast<int32_t>(GetU32(bytes.data()));
}

int64_t WireReader::Long() {
  std::string_view bytes = Raw(8);
  return bytes.empty() ? 0 : static_cast<int64_t>(GetU64(bytes.data()));
}

std::string_view WireReader::LongString() {
  int32_t size = Int();
  if (size < 0) {
    Fail();
    return {};
  }
  return Raw(static_cast<size_t>(size));
}

std::optional<std::string_view> WireReader::Bytes() {
  int32_t size = Int();
  if (size < 0) {
    return std::nullopt;
  }
  return Raw(static_cast<size_t>(size));
}

}  // namespace orrery::cql
