#include "cql/value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "cql/number.h"
#include "cql/time_text.h"
#include "types/utf8.h"

namespace orrery::cql {
namespace {

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

Status ValidateSize(std::string_view bytes, size_t size, bool may_be_empty,
                    std::string_view expected) {
  if (bytes.size() == size || (may_be_empty && bytes.empty())) {
    return Status::Ok();
  }
  return Invalid("Expected " + std::string(expected) + " (" + std::to_string(bytes.size()) + ")");
}

Status ValidateAscii(std::string_view bytes) {
  auto bad = std::ranges::find_if(bytes, [](char c) { return (c & 0x80) != 0; });
  if (bad == bytes.end()) {
    return Status::Ok();
  }
  return Invalid("Invalid byte for ascii: " + std::to_string(static_cast<int8_t>(*bad)));
}

Status ValidateText(std::string_view bytes) {
  return types::IsUtf8(bytes) ? Status::Ok() : Invalid("String didn't validate.");
}

Status ValidateNumber(std::string_view varint) {
  return varint.size() <= kNumberBytesMax
             ? Status::Ok()
             : Invalid("Expected at most " + std::to_string(kNumberBytesMax) +
                       " bytes for a number (" + std::to_string(varint.size()) + ")");
}

Status ValidateUuid(std::string_view bytes, bool time) {
  if (bytes.size() != 16 && !bytes.empty()) {
    return Invalid("UUID should be 16 or 0 bytes (" + std::to_string(bytes.size()) + ")");
  }
  if (time && !bytes.empty() && (bytes[6] & 0xF0) != 0x10) {
    return Invalid("Invalid version for TimeUUID type.");
  }
  return Status::Ok();
}

Status ValidateDuration(std::string_view bytes) {
  if (bytes.size() < 3) {
    return Invalid("Expected at least 3 bytes for a duration (" + std::to_string(bytes.size()) +
                   ")");
  }
  auto parts = DurationFromBytes(bytes);
  if (!parts) {
    return Invalid("The duration cannot be read: it is not made of three integers");
  }
  auto [months, days, nanos] = *parts;
  if (months != static_cast<int32_t>(months)) {
    return Invalid("The duration months must be a 32 bits integer but was: " +
                   std::to_string(months));
  }
  if (days != static_cast<int32_t>(days)) {
    return Invalid("The duration days must be a 32 bits integer but was: " + std::to_string(days));
  }
  bool below = months < 0 || days < 0 || nanos < 0;
  bool above = months > 0 || days > 0 || nanos > 0;
  if (below && above) {
    return Invalid("The duration months, days and nanoseconds must be all of the same sign (" +
                   std::to_string(months) + ", " + std::to_string(days) + ", " +
                   std::to_string(nanos) + ")");
  }
  return Status::Ok();
}

std::string_view KindName(const DataType& type) {
  switch (type.id()) {
    case TypeId::kList: return "list";
    case TypeId::kSet: return "set";
    case TypeId::kMap: return "map";
    default: return "vector";
  }
}

Status ValidateCollection(const DataType& type, std::string_view bytes) {
  std::string kind(KindName(type));
  if (bytes.size() < 4 && type.is_collection()) {
    return Invalid("Not enough bytes to read a " + kind);
  }
  if (type.is_collection() && ReadInt(bytes.substr(0, 4)) < 0) {
    return Invalid("The data cannot be deserialized as a " + kind);
  }
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (!parts.value()) {
      return Invalid("null is not supported inside collections");
    }
    ORRERY_RETURN_IF_ERROR(ValidateValue(parts.type(), *parts.value()));
  }
  if (parts.truncated()) {
    return Invalid("Not enough bytes to read a " + kind);
  }
  if (parts.left() > 0) {
    return Invalid("Unexpected extraneous bytes after " + kind + " value");
  }
  return Status::Ok();
}

Status ValidateFields(const DataType& type, std::string_view bytes) {
  bool udt = type.id() == TypeId::kUdt;
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (parts.value()) {
      ORRERY_RETURN_IF_ERROR(ValidateValue(parts.type(), *parts.value()));
    }
  }
  if (parts.truncated()) {
    std::string message = "Not enough bytes to read " + std::to_string(parts.index()) + "th ";
    return Invalid(message + (udt ? "field " + type.field_names()[parts.index()] : "component"));
  }
  if (parts.left() > 0) {
    return Invalid(std::string("Invalid remaining data after end of ") + (udt ? "UDT" : "tuple") +
                   " value");
  }
  return Status::Ok();
}

template <typename T>
int Order(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// NaN is equal to itself and above all others; -0 is below 0.
template <typename Float>
int CompareFloats(Float a, Float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return Order(std::isnan(a), std::isnan(b));
  }
  return a == b ? Order(std::signbit(b), std::signbit(a)) : Order(a, b);
}

// The bits of the time in their order: version and high, middle, low.
uint64_t TimeOrder(uint64_t high) {
  return high << 48 | (high << 16 & 0xFFFF'0000'0000u) | high >> 32;
}

int CompareUuids(std::string_view a, std::string_view b) {
  uint64_t left = GetU64(a.data());
  uint64_t right = GetU64(b.data());
  uint64_t version = left >> 12 & 0xF;
  if (int order = Order(version, right >> 12 & 0xF)) {
    return order;
  }
  if (version == 1) {
    left = TimeOrder(left);
    right = TimeOrder(right);
  }
  int order = Order(left, right);
  return order != 0 ? order : Order(GetU64(a.data() + 8), GetU64(b.data() + 8));
}

// The second half is compared as signed bytes.
int CompareTimeuuids(std::string_view a, std::string_view b) {
  constexpr uint64_t kSigns = 0x8080808080808080u;
  int order = Order(TimeOrder(GetU64(a.data())), TimeOrder(GetU64(b.data())));
  return order != 0 ? order : Order(GetU64(a.data() + 8) ^ kSigns, GetU64(b.data() + 8) ^ kSigns);
}

bool OnlyNullsFollow(PartReader& parts) {
  while (parts.Next()) {
    if (parts.value()) {
      return false;
    }
  }
  return true;
}

int CompareParts(const DataType& type, std::string_view a, std::string_view b) {
  bool fields = type.id() == TypeId::kTuple || type.id() == TypeId::kUdt;
  PartReader left(type, a);
  PartReader right(type, b);
  for (;;) {
    bool has_left = left.Next();
    bool has_right = right.Next();
    if (!has_left || !has_right) {
      if (!fields || has_left == has_right) {
        return Order(has_left, has_right);
      }
      PartReader& longer = has_left ? left : right;
      bool same = !longer.value() && OnlyNullsFollow(longer);
      return same ? 0 : has_left ? 1 : -1;
    }
    if (!left.value() || !right.value()) {
      if (int order = Order(left.value().has_value(), right.value().has_value())) {
        return order;
      }
      continue;
    }
    if (int order = CompareValues(left.type(), *left.value(), *right.value())) {
      return order;
    }
  }
}

bool HasSets(const DataType& type) {
  return type.Contains(TypeId::kSet) || type.Contains(TypeId::kMap);
}

}  // namespace

Status ValidateValue(const DataType& type, std::string_view bytes) {
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob: return Status::Ok();
    case TypeId::kAscii: return ValidateAscii(bytes);
    case TypeId::kText: return ValidateText(bytes);
    case TypeId::kBigint:
    case TypeId::kCounter: return ValidateSize(bytes, 8, true, "8 or 0 byte long");
    case TypeId::kTimestamp: return ValidateSize(bytes, 8, true, "8 or 0 byte long for date");
    case TypeId::kInt: return ValidateSize(bytes, 4, true, "4 or 0 byte int");
    case TypeId::kSmallint: return ValidateSize(bytes, 2, false, "2 bytes for a smallint");
    case TypeId::kTinyint: return ValidateSize(bytes, 1, false, "1 byte for a tinyint");
    case TypeId::kBoolean: return ValidateSize(bytes, 1, true, "1 or 0 byte value");
    case TypeId::kDouble: return ValidateSize(bytes, 8, true, "8 or 0 byte value for a double");
    case TypeId::kFloat: return ValidateSize(bytes, 4, true, "4 or 0 byte value for a float");
    case TypeId::kDate: return ValidateSize(bytes, 4, false, "4 byte long for date");
    case TypeId::kTime: return ValidateSize(bytes, 8, false, "8 byte long for time");
    case TypeId::kUuid: return ValidateUuid(bytes, false);
    case TypeId::kTimeuuid: return ValidateUuid(bytes, true);
    case TypeId::kVarint: return ValidateNumber(bytes);
    case TypeId::kDecimal:
      if (bytes.size() < 4 && !bytes.empty()) {
        return Invalid("Expected 0 or at least 4 bytes (" + std::to_string(bytes.size()) + ")");
      }
      return bytes.empty() ? Status::Ok() : ValidateNumber(bytes.substr(4));
    case TypeId::kInet:
      return bytes.empty() || bytes.size() == 4 || bytes.size() == 16
                 ? Status::Ok()
                 : Invalid("Expected 4 or 16 byte inetaddress; got " + ToHex(bytes));
    case TypeId::kDuration: return ValidateDuration(bytes);
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap: return ValidateCollection(type, bytes);
    case TypeId::kVector:
      return bytes.empty() ? Invalid("Not enough bytes to read a vector")
                           : ValidateCollection(type, bytes);
    case TypeId::kTuple:
    case TypeId::kUdt: return ValidateFields(type, bytes);
  }
  return Invalid("unknown type");
}

int CompareValues(const DataType& type, std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) {
    return Order(!a.empty(), !b.empty());
  }
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob:
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDuration: return a.compare(b);
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kTimestamp: return Order(ReadBigint(a), ReadBigint(b));
    case TypeId::kInt: return Order(ReadInt(a), ReadInt(b));
    case TypeId::kSmallint: return Order(ReadSmallint(a), ReadSmallint(b));
    case TypeId::kTinyint: return Order(static_cast<int8_t>(a[0]), static_cast<int8_t>(b[0]));
    case TypeId::kBoolean: return Order(a[0] != 0, b[0] != 0);
    case TypeId::kDouble: return CompareFloats(ReadDouble(a), ReadDouble(b));
    case TypeId::kFloat: return CompareFloats(ReadFloat(a), ReadFloat(b));
    case TypeId::kUuid: return CompareUuids(a, b);
    case TypeId::kTimeuuid: return CompareTimeuuids(a, b);
    case TypeId::kVarint: return CompareVarints(a, b);
    case TypeId::kDecimal: return CompareDecimals(a, b);
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kVector:
    case TypeId::kTuple:
    case TypeId::kUdt: return CompareParts(type, a, b);
  }
  return 0;
}

std::string CanonicalValue(const DataType& type, std::string_view bytes) {
  if (!HasSets(type) || bytes.empty()) {
    return std::string(bytes);
  }
  std::vector<std::optional<std::string>> parts;
  PartReader reader(type, bytes);
  while (reader.Next()) {
    parts.emplace_back();
    if (reader.value()) {
      parts.back() = CanonicalValue(reader.type(), *reader.value());
    }
  }
  size_t step = type.id() == TypeId::kMap ? 2 : 1;
  std::vector<size_t> order;
  for (size_t i = 0; i < parts.size(); i += step) {
    order.push_back(i);
  }
  if (type.id() == TypeId::kMap || type.id() == TypeId::kSet) {
    auto compare = [&](size_t a, size_t b) {
      return CompareValues(type.element(), *parts[a], *parts[b]);
    };
    std::ranges::sort(order, [&](size_t a, size_t b) {
      int by_key = compare(a, b);
      return by_key != 0 ? by_key < 0 : a < b;
    });
    std::vector<size_t> kept;
    for (size_t place : order) {
      if (!kept.empty() && compare(kept.back(), place) == 0) {
        kept.pop_back();
      }
      kept.push_back(place);
    }
    order = std::move(kept);
  }
  std::string out;
  PartWriter writer(type, out);
  for (size_t place : order) {
    for (size_t i = place; i < place + step; ++i) {
      writer.Add(parts[i]);
    }
  }
  writer.Finish();
  return out;
}

PartReader::PartReader(const DataType& type, std::string_view bytes) : of_(&type), in_(bytes) {
  switch (type.id()) {
    case TypeId::kVector: count_ = type.dimension(); break;
    case TypeId::kTuple:
    case TypeId::kUdt: count_ = type.parameters().size(); break;
    default:
      if (in_.size() >= 4) {
        count_ = static_cast<size_t>(std::max(0, ReadInt(in_.substr(0, 4))));
        count_ *= type.id() == TypeId::kMap ? 2 : 1;
        in_.remove_prefix(4);
      }
  }
}

bool PartReader::Next() {
  bool fields = of_->id() == TypeId::kTuple || of_->id() == TypeId::kUdt;
  if (truncated_ || started_ == count_ || (fields && in_.empty())) {
    return false;
  }
  index_ = started_++;
  const std::vector<DataType>& types = of_->parameters();
  part_type_ = fields ? &types[index_] : &types[index_ % types.size()];
  value_ = Take();
  return !truncated_;
}

std::optional<std::string_view> PartReader::Take() {
  auto cut = [this](size_t size) {
    std::string_view part = in_.substr(0, size);
    in_.remove_prefix(part.size());
    truncated_ = part.size() < size;
    return part;
  };
  if (of_->id() == TypeId::kVector) {
    if (auto fixed = part_type_->FixedSize()) {
      return cut(*fixed);
    }
    auto size = TakeVint(in_);
    truncated_ = !size;
    return size ? cut(*size) : std::string_view();
  }
  std::string_view head = cut(4);
  if (truncated_) {
    return std::nullopt;
  }
  int32_t size = ReadInt(head);
  return size < 0 ? std::nullopt : std::optional(cut(static_cast<size_t>(size)));
}

PartWriter::PartWriter(const DataType& type, std::string& out)
    : type_(type), out_(out), start_(out.size()) {
  if (type_.is_collection()) {
    out_.append(4, '\0');
  }
}

void PartWriter::Add(std::optional<std::string_view> part) {
  ++parts_;
  if (type_.id() != TypeId::kVector) {
    WireWriter(out_).Value(part);
    return;
  }
  if (!type_.element().FixedSize()) {
    AppendVint(part->size(), out_);
  }
  out_.append(*part);
}

void PartWriter::Finish() {
  if (type_.is_collection()) {
    size_t count = type_.id() == TypeId::kMap ? parts_ / 2 : parts_;
    PutU32(out_.data() + start_, static_cast<uint32_t>(count));
  }
}

std::string BooleanBytes(bool value) { return std::string(1, value ? '\1' : '\0'); }
std::string TinyintBytes(int8_t value) { return std::string(1, static_cast<char>(value)); }
std::string SmallintBytes(int16_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}
std::string IntBytes(int32_t value) {
  std::string bytes(4, '\0');
  PutU32(bytes.data(), static_cast<uint32_t>(value));
  return bytes;
}
std::string BigintBytes(int64_t value) {
  std::string bytes(8, '\0');
  PutU64(bytes.data(), static_cast<uint64_t>(value));
  return bytes;
}
std::string FloatBytes(float value) { return IntBytes(std::bit_cast<int32_t>(value)); }
std::string DoubleBytes(double value) { return BigintBytes(std::bit_cast<int64_t>(value)); }

int16_t ReadSmallint(std::string_view bytes) {
  return static_cast<int16_t>(static_cast<uint8_t>(bytes[0]) << 8 | static_cast<uint8_t>(bytes[1]));
}
int32_t ReadInt(std::string_view bytes) { return static_cast<int32_t>(GetU32(bytes.data())); }
int64_t ReadBigint(std::string_view bytes) { return static_cast<int64_t>(GetU64(bytes.data())); }
float ReadFloat(std::string_view bytes) { return std::bit_cast<float>(GetU32(bytes.data())); }
double ReadDouble(std::string_view bytes) { return std::bit_cast<double>(GetU64(bytes.data())); }

}  // namespace orrery::cql
