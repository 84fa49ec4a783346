#include "cql/value_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <arpa/inet.h>

#include "base/bytes.h"
#include "cql/letters.h"
#include "cql/number.h"
#include "cql/quoted.h"
#include "cql/time_text.h"
#include "cql/value.h"
#include "cql/value_json.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::unexpected<Status> CannotMake(std::string_view what, std::string_view text) {
  return Invalid("Unable to make " + std::string(what) + " from '" + std::string(text) + "'");
}

Result<std::string> BooleanFromText(std::string_view text) {
  if (text.empty() || EqualsIgnoringCase(text, "false")) {
    return BooleanBytes(false);
  }
  if (EqualsIgnoringCase(text, "true")) {
    return BooleanBytes(true);
  }
  return CannotMake("boolean", text);
}

Result<std::string> BlobFromText(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
  }
  std::string bytes;
  if (digits.size() % 2 != 0 || !FromHex(digits, &bytes)) {
    return Invalid("cannot parse '" + std::string(text) + "' as hex bytes");
  }
  return bytes;
}

Result<std::string> TimeuuidFromText(std::string_view text) {
  std::string bytes;
  if (!UuidFromText(text, &bytes)) {
    return Invalid("Unknown timeuuid representation: " + std::string(text));
  }
  if ((bytes[6] & 0xF0) != 0x10) {
    return Invalid("TimeUUID supports only version 1 UUIDs");
  }
  return bytes;
}

Result<std::string> InetFromText(std::string_view text) {
  std::string address(text);
  std::string bytes(4, '\0');
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 && address.size() == text.size()) {
    return bytes;
  }
  bytes.resize(16);
  if (address.find('\0') != std::string::npos ||
      inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) {
    return CannotMake("inet address", text);
  }
  // An IPv4 address in IPv6 form is an IPv4 address.
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xFF\xFF", 12);
  return bytes.starts_with(kMapped) ? bytes.substr(12) : bytes;
}

std::string InetToText(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += bytes.size() == 4 ? 1 : 2) {
    if (bytes.size() == 4) {
      text += (i == 0 ? "" : ".") + std::to_string(static_cast<uint8_t>(bytes[i]));
    } else {
      char group[8];
      auto end = std::to_chars(group, group + sizeof(group),
                               static_cast<uint16_t>(ReadSmallint(bytes.substr(i, 2))), 16);
      text += (i == 0 ? "" : ":") + std::string(group, end.ptr);
    }
  }
  return text;
}

DurationValue DurationOf(std::string_view bytes) {
  DurationParts parts = DurationFromBytes(bytes).value_or(DurationParts());
  return {static_cast<int32_t>(parts.months), static_cast<int32_t>(parts.days), parts.nanos};
}

bool InQuotes(TypeId id) {
  switch (id) {
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimestamp: return true;
    default: return false;
  }
}

std::string PartsToText(const DataType& type, std::string_view bytes) {
  bool named = type.id() == TypeId::kUdt;
  bool map = type.id() == TypeId::kMap;
  std::string text;
  PartReader parts(type, bytes);
  while (parts.Next()) {
    bool mapped = map && parts.index() % 2 == 1;
    text += text.empty() ? "" : mapped ? ": " : ", ";
    text += named ? QuotedName(type.field_names()[parts.index()]) + ": " : "";
    text += parts.value() ? ValueToLiteral(parts.type(), *parts.value()) : "null";
  }
  switch (type.id()) {
    case TypeId::kTuple: return "(" + text + ")";
    case TypeId::kList:
    case TypeId::kVector: return "[" + text + "]";
    default: return "{" + text + "}";
  }
}

}  // namespace

std::string_view ConstantKindName(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::kString: return "STRING";
    case ExpressionKind::kInteger: return "INTEGER";
    case ExpressionKind::kFloat: return "FLOAT";
    case ExpressionKind::kBoolean: return "BOOLEAN";
    case ExpressionKind::kUuid: return "UUID";
    case ExpressionKind::kBlob: return "HEX";
    case ExpressionKind::kDuration: return "DURATION";
    default: return "";
  }
}

bool AcceptsConstant(const DataType& type, ExpressionKind kind) {
  switch (type.id()) {
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kInet: return kind == ExpressionKind::kString;
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimestamp:
      return kind == ExpressionKind::kString || kind == ExpressionKind::kInteger;
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kInt:
    case TypeId::kSmallint:
    case TypeId::kTinyint:
    case TypeId::kVarint: return kind == ExpressionKind::kInteger;
    case TypeId::kDecimal:
    case TypeId::kDouble:
    case TypeId::kFloat: return kind == ExpressionKind::kInteger || kind == ExpressionKind::kFloat;
    case TypeId::kBoolean: return kind == ExpressionKind::kBoolean;
    case TypeId::kUuid:
    case TypeId::kTimeuuid: return kind == ExpressionKind::kUuid;
    case TypeId::kBlob: return kind == ExpressionKind::kBlob;
    case TypeId::kDuration: return kind == ExpressionKind::kDuration;
    case TypeId::kCustom: return kind == ExpressionKind::kString || kind == ExpressionKind::kBlob;
    case TypeId::kList:
    case TypeId::kMap:
    case TypeId::kSet:
    case TypeId::kUdt:
    case TypeId::kTuple:
    case TypeId::kVector: return false;
  }
  return false;
}

bool UuidFromText(std::string_view text, std::string* bytes) {
  if (text.size() != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' ||
      text[23] != '-') {
    return false;
  }
  std::string digits(text);
  std::erase(digits, '-');
  return digits.size() == 32 && FromHex(digits, bytes);
}

std::string UuidToText(std::string_view bytes) {
  std::string text = BlobToText(bytes).substr(2);
  for (size_t place : {20, 16, 12, 8}) {
    text.insert(place, "-");
  }
  return text;
}

std::string BlobToText(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  text.reserve(2 + bytes.size() * 2);
  for (char c : bytes) {
    text.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    text.push_back(kDigits[static_cast<uint8_t>(c) & 0xF]);
  }
  return text;
}

Result<std::string> ValueFromText(const DataType& type, std::string_view text) {
  auto made = [&](auto value, auto to_bytes, std::string_view what) -> Result<std::string> {
    if (!value) {
      return CannotMake(what, text);
    }
    return to_bytes(*value);
  };
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob: return BlobFromText(text);
    case TypeId::kAscii:
    case TypeId::kText: ORRERY_TRY_STATUS(ValidateValue(type, text)); return std::string(text);
    case TypeId::kBigint:
    case TypeId::kCounter: return made(IntegerFromText<int64_t>(text), BigintBytes, "long");
    case TypeId::kInt: return made(IntegerFromText<int32_t>(text), IntBytes, "int");
    case TypeId::kSmallint: return made(IntegerFromText<int16_t>(text), SmallintBytes, "short");
    case TypeId::kTinyint: return made(IntegerFromText<int8_t>(text), TinyintBytes, "byte");
    case TypeId::kDouble: return made(DoubleFromText(text), DoubleBytes, "double");
    case TypeId::kFloat: return made(FloatFromText(text), FloatBytes, "float");
    case TypeId::kBoolean: return BooleanFromText(text);
    case TypeId::kVarint: return made(VarintFromText(text), std::identity(), "int");
    case TypeId::kDecimal: return made(DecimalFromText(text), std::identity(), "BigDecimal");
    case TypeId::kUuid: {
      std::string bytes;
      bool good = UuidFromText(text, &bytes);
      return made(good ? std::optional(bytes) : std::nullopt, std::identity(), "UUID");
    }
    case TypeId::kTimeuuid: return TimeuuidFromText(text);
    case TypeId::kInet: return InetFromText(text);
    case TypeId::kTimestamp:
      if (auto millis = TimestampFromText(text)) {
        return BigintBytes(*millis);
      }
      return Invalid("Unable to parse a date/time from '" + std::string(text) + "'");
    case TypeId::kDate:
      if (auto days = DateFromText(text)) {
        return IntBytes(static_cast<int32_t>(*days));
      }
      return Invalid("Unable to coerce '" + std::string(text) + "' to a formatted date (long)");
    case TypeId::kTime:
      if (auto nanos = TimeFromText(text)) {
        return BigintBytes(*nanos);
      }
      return Invalid("(TimeType) Unable to coerce '" + std::string(text) +
                     "' to a formatted time (long)");
    case TypeId::kDuration:
      if (auto duration = DurationFromText(text)) {
        return DurationToBytes(*duration);
      }
      return Invalid("Unable to convert '" + std::string(text) + "' to a duration");
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kUdt:
    case TypeId::kTuple:
    case TypeId::kVector: {
      ORRERY_TRY(auto value, ValueFromJson(type, text));
      if (!value) {
        return Invalid("null is no value of type " + type.ToCql());
      }
      return *value;
    }
  }
  return Invalid("unknown type");
}

std::string ValueToText(const DataType& type, std::string_view bytes) {
  if (bytes.empty()) {
    return "";
  }
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob: return BlobToText(bytes);
    case TypeId::kAscii:
    case TypeId::kText: return std::string(bytes);
    case TypeId::kBigint:
    case TypeId::kCounter: return std::to_string(ReadBigint(bytes));
    case TypeId::kInt: return std::to_string(ReadInt(bytes));
    case TypeId::kSmallint: return std::to_string(ReadSmallint(bytes));
    case TypeId::kTinyint: return std::to_string(static_cast<int8_t>(bytes[0]));
    case TypeId::kDouble: return DoubleToText(ReadDouble(bytes));
    case TypeId::kFloat: return FloatToText(ReadFloat(bytes));
    case TypeId::kBoolean: return bytes[0] != 0 ? "true" : "false";
    case TypeId::kVarint: return VarintToText(bytes);
    case TypeId::kDecimal: return DecimalToText(bytes);
    case TypeId::kUuid:
    case TypeId::kTimeuuid: return UuidToText(bytes);
    case TypeId::kInet: return InetToText(bytes);
    case TypeId::kTimestamp: return TimestampToText(ReadBigint(bytes));
    case TypeId::kDate: return DateToText(static_cast<uint32_t>(ReadInt(bytes)));
    case TypeId::kTime: return TimeToText(ReadBigint(bytes));
    case TypeId::kDuration: return DurationToText(DurationOf(bytes));
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kUdt:
    case TypeId::kTuple:
    case TypeId::kVector: return PartsToText(type, bytes);
  }
  return "";
}

std::string ValueToLiteral(const DataType& type, std::string_view bytes) {
  if (type.id() == TypeId::kBlob) {
    return BlobToText(bytes);
  }
  return InQuotes(type.id()) || bytes.empty() ? QuotedString(ValueToText(type, bytes))
                                              : ValueToText(type, bytes);
}

}  // namespace orrery::cql
