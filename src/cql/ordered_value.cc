#include "cql/ordered_value.h"

#include <bit>
#include <cmath>
#include <vector>

#include "base/bytes.h"
#include "cql/number.h"
#include "cql/value.h"
#include "types/partition_key.h"

namespace orrery::cql {
namespace {

constexpr char kEnd = 0x00;
constexpr char kNull = 0x01;
constexpr char kEmpty = 0x02;
constexpr char kValue = 0x03;
constexpr size_t kShortVarint = 0x78;
constexpr char kLongVarint = '\xF8';
constexpr uint64_t kSigns = 0x8080808080808080u;

void Flip(std::string& out, size_t from) {
  for (size_t i = from; i < out.size(); ++i) {
    out[i] = static_cast<char>(~out[i]);
  }
}

// Reads ordered bytes from the front, all of them flipped or none.
class Source {
 public:
  Source(std::string_view in, bool flipped) : in_(in), flipped_(flipped) {}
  bool ok() const { return ok_; }
  std::string_view rest() const { return in_; }
  void Fail() { ok_ = false; }
  void FlipRest() { flipped_ = !flipped_; }

  std::string Raw(size_t size) {
    if (!ok_ || size > in_.size()) {
      ok_ = false;
      return std::string(std::min<size_t>(size, 16), '\0');
    }
    std::string bytes(in_.substr(0, size));
    in_.remove_prefix(size);
    if (flipped_) {
      Flip(bytes, 0);
    }
    return bytes;
  }
  char Byte() {
    if (!ok_ || in_.empty()) {
      ok_ = false;
      return '\0';
    }
    char byte = flipped_ ? static_cast<char>(~in_[0]) : in_[0];
    in_.remove_prefix(1);
    return byte;
  }
  uint64_t U64() { return GetU64(Raw(8).data()); }

  // Ordered bytes: 00 FF is 00, 00 01 the end.
  std::string Bytes() {
    std::string bytes;
    while (ok_) {
      char c = Byte();
      if (c == '\0') {
        char next = Byte();
        if (next == '\x01') {
          return bytes;
        }
        ok_ = ok_ && next == '\xFF';
      }
      bytes.push_back(c);
    }
    return bytes;
  }

 private:
  std::string_view in_;
  bool flipped_;
  bool ok_ = true;
};

bool IsPlainBytes(TypeId id) {
  switch (id) {
    case TypeId::kCustom:
    case TypeId::kBlob:
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet:
    case TypeId::kDuration: return true;
    default: return false;
  }
}

void AppendVarint(std::string_view varint, std::string& out) {
  std::string shortest = ShortestVarint(varint);
  size_t start = out.size();
  if (shortest.size() < kShortVarint) {
    out.push_back(static_cast<char>(0x80 + shortest.size()));
  } else {
    out.push_back(kLongVarint);
    Encoder(out).U32(static_cast<uint32_t>(shortest.size()));
  }
  if ((shortest[0] & 0x80) != 0) {
    Flip(out, start);
  }
  out.append(shortest);
}

std::string TakeVarint(Source& in) {
  auto head = static_cast<uint8_t>(in.Byte());
  bool negative = head < 0x80;
  head = negative ? static_cast<uint8_t>(~head) : head;
  size_t size = head - 0x80u;
  if (static_cast<char>(head) == kLongVarint) {
    std::string length = in.Raw(4);
    if (negative) {
      Flip(length, 0);
    }
    size = GetU32(length.data());
  }
  if (size == 0 || size > kNumberBytesMax) {
    in.Fail();
    return std::string(1, '\0');
  }
  return in.Raw(size);
}

void AppendDecimal(std::string_view decimal, std::string& out) {
  DecimalValue value = DecimalToValue(decimal);
  if (value.digits.empty()) {
    out.push_back('\x02');
    return;
  }
  size_t start = out.size();
  out.push_back('\x03');
  AppendVarint(VarintOf(value.exponent), out);
  for (size_t i = 0; i < value.digits.size(); i += 2) {
    int low = i + 1 < value.digits.size() ? value.digits[i + 1] - '0' : 0;
    out.push_back(static_cast<char>((value.digits[i] - '0') * 10 + low + 1));
  }
  out.push_back(kEnd);
  if (value.negative) {
    Flip(out, start);
    out[start] = '\x01';
  }
}

std::string TakeDecimal(Source& in) {
  DecimalValue value;
  char sign = in.Byte();
  if (sign == '\x02') {
    return *DecimalFromValue(value);
  }
  value.negative = sign == '\x01';
  if (value.negative) {
    in.FlipRest();
  }
  auto exponent = VarintToInt64(TakeVarint(in));
  for (char pair = in.Byte(); in.ok() && pair != kEnd; pair = in.Byte()) {
    int digits = pair - 1;
    if (digits < 0 || digits > 99) {
      in.Fail();
      break;
    }
    value.digits.push_back(static_cast<char>('0' + digits / 10));
    value.digits.push_back(static_cast<char>('0' + digits % 10));
  }
  if (value.negative) {
    in.FlipRest();
  }
  bool good = in.ok() && exponent && value.digits.find_first_not_of('0') == 0 &&
              (sign == '\x03' || sign == '\x01');
  std::optional<std::string> decimal;
  if (good) {
    value.exponent = *exponent;
    value.digits.resize(value.digits.find_last_not_of('0') + 1);
    decimal = DecimalFromValue(value);
  }
  if (!decimal) {
    in.Fail();
    return {};
  }
  return *decimal;
}

// The first half of a uuid with its version in front: of version 1 the time in order, of others
// the bits as they come.
uint64_t OrderedHalf(uint64_t high) {
  uint64_t version = high >> 12 & 0xF;
  if (version == 1) {
    return high << 48 | (high << 16 & 0xFFFF'0000'0000u) | high >> 32;
  }
  return version << 60 | high >> 16 << 12 | (high & 0xFFF);
}

uint64_t HalfOfOrdered(uint64_t ordered) {
  uint64_t version = ordered >> 60;
  if (version == 1) {
    return ordered << 32 | (ordered >> 16 & 0xFFFF'0000u) | ordered >> 48;
  }
  return (ordered << 4 >> 16) << 16 | version << 12 | (ordered & 0xFFF);
}

uint64_t OrderedBits(uint64_t bits) { return (bits & 1ull << 63) != 0 ? ~bits : bits | 1ull << 63; }
uint64_t BitsOfOrdered(uint64_t bits) {
  return (bits & 1ull << 63) != 0 ? bits & ~(1ull << 63) : ~bits;
}

void AppendParts(const DataType& type, std::string_view bytes, std::string& out) {
  PartReader parts(type, bytes);
  size_t end = out.size();
  while (parts.Next()) {
    AppendOrderedValue(parts.type(), parts.value(), false, out);
    end = parts.value() ? out.size() : end;
  }
  out.resize(end);
  if (type.id() != TypeId::kVector) {
    out.push_back(kEnd);
  }
}

void AppendValue(const DataType& type, std::string_view bytes, std::string& out) {
  Encoder encoder(out);
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob:
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet:
    case TypeId::kDuration: return types::AppendOrderedBytes(bytes, out);
    case TypeId::kDate:
    case TypeId::kTime: return encoder.Raw(bytes);
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kTimestamp:
    case TypeId::kInt:
    case TypeId::kSmallint:
    case TypeId::kTinyint:
      encoder.U8(static_cast<uint8_t>(bytes[0]) ^ 0x80);
      return encoder.Raw(bytes.substr(1));
    case TypeId::kBoolean: return encoder.Bool(bytes[0] != 0);
    case TypeId::kFloat: {
      float value = ReadFloat(bytes);
      value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
      uint64_t bits = static_cast<uint64_t>(std::bit_cast<uint32_t>(value)) << 32;
      return encoder.U32(static_cast<uint32_t>(OrderedBits(bits) >> 32));
    }
    case TypeId::kDouble: {
      double value = ReadDouble(bytes);
      value = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
      return encoder.U64(OrderedBits(std::bit_cast<uint64_t>(value)));
    }
    case TypeId::kUuid:
      encoder.U64(OrderedHalf(GetU64(bytes.data())));
      return encoder.Raw(bytes.substr(8));
    case TypeId::kTimeuuid:
      encoder.U64(OrderedHalf(GetU64(bytes.data())));
      return encoder.U64(GetU64(bytes.data() + 8) ^ kSigns);
    case TypeId::kVarint: return AppendVarint(bytes, out);
    case TypeId::kDecimal: return AppendDecimal(bytes, out);
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kVector:
    case TypeId::kTuple:
    case TypeId::kUdt: return AppendParts(type, bytes, out);
  }
}

std::optional<std::string> TakeOrdered(const DataType& type, char mark, Source& in);

std::string TakeParts(const DataType& type, Source& in) {
  std::string out;
  PartWriter writer(type, out);
  const std::vector<DataType>& types = type.parameters();
  bool vector = type.id() == TypeId::kVector;
  bool fields = type.id() == TypeId::kTuple || type.id() == TypeId::kUdt;
  size_t count = 0;
  for (; in.ok() && (!vector || count < type.dimension()); ++count) {
    char mark = in.Byte();
    if (mark == kEnd && !vector) {
      break;
    }
    if (fields && count == types.size()) {
      in.Fail();
      break;
    }
    auto part = TakeOrdered(fields ? types[count] : types[count % types.size()], mark, in);
    if (!part && !fields) {
      in.Fail();
      break;
    }
    writer.Add(part);
  }
  if (type.id() == TypeId::kMap && count % 2 != 0) {
    in.Fail();
  }
  // An all-null tuple is not the same as an empty one.
  if (fields && out.empty() && !types.empty()) {
    writer.Add(std::nullopt);
  }
  writer.Finish();
  return out;
}

std::string TakeSigned(Source& in, size_t size) {
  std::string bytes = in.Raw(size);
  bytes[0] = static_cast<char>(bytes[0] ^ 0x80);
  return bytes;
}

std::string TakeValue(const DataType& type, Source& in) {
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob:
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet:
    case TypeId::kDuration: return in.Bytes();
    case TypeId::kDate: return in.Raw(4);
    case TypeId::kTime: return in.Raw(8);
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kTimestamp: return TakeSigned(in, 8);
    case TypeId::kInt: return TakeSigned(in, 4);
    case TypeId::kSmallint: return TakeSigned(in, 2);
    case TypeId::kTinyint: return TakeSigned(in, 1);
    case TypeId::kBoolean: return BooleanBytes(in.Byte() != 0);
    case TypeId::kFloat: {
      uint64_t bits = static_cast<uint64_t>(GetU32(in.Raw(4).data())) << 32;
      return IntBytes(static_cast<int32_t>(BitsOfOrdered(bits) >> 32));
    }
    case TypeId::kDouble: return BigintBytes(static_cast<int64_t>(BitsOfOrdered(in.U64())));
    case TypeId::kUuid: {
      std::string half = BigintBytes(static_cast<int64_t>(HalfOfOrdered(in.U64())));
      return half + in.Raw(8);
    }
    case TypeId::kTimeuuid: {
      std::string half = BigintBytes(static_cast<int64_t>(HalfOfOrdered(in.U64())));
      return half + BigintBytes(static_cast<int64_t>(in.U64() ^ kSigns));
    }
    case TypeId::kVarint: return TakeVarint(in);
    case TypeId::kDecimal: return TakeDecimal(in);
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kVector:
    case TypeId::kTuple:
    case TypeId::kUdt: return TakeParts(type, in);
  }
  return {};
}

std::optional<std::string> TakeOrdered(const DataType& type, char mark, Source& in) {
  switch (mark) {
    case kNull: return std::nullopt;
    case kEmpty: return std::string();
    case kValue: return TakeValue(type, in);
    default: in.Fail(); return std::nullopt;
  }
}

}  // namespace

void AppendOrderedValue(const DataType& type, std::optional<std::string_view> bytes,
                        bool descending, std::string& out) {
  size_t start = out.size();
  if (!bytes) {
    out.push_back(kNull);
  } else if (bytes->empty() && !IsPlainBytes(type.id())) {
    out.push_back(kEmpty);
  } else {
    out.push_back(kValue);
    AppendValue(type, *bytes, out);
  }
  if (descending) {
    Flip(out, start);
  }
}

bool TakeOrderedValue(const DataType& type, bool descending, std::string_view& in,
                      std::optional<std::string>* bytes) {
  Source source(in, descending);
  *bytes = TakeOrdered(type, source.Byte(), source);
  in = source.rest();
  return source.ok();
}

}  // namespace orrery::cql
