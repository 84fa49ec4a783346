// JSON out: a plain recursive writer over the bytes of BSON.
#include <charconv>
#include <cmath>
#include <cstring>

#include <bson/bson.h>
#include <simdjson.h>

#include "base/bytes.h"
#include "types/bson.h"
#include "types/document.h"
#include "types/utf8.h"

namespace orrery::types {
namespace {

// 1 to 7 bytes as a word, without reading past them.
uint64_t LoadShort(const char* at, size_t size) {
  if (size >= 4) {
    return LoadLittle<uint32_t>(at) | uint64_t{LoadLittle<uint32_t>(at + size - 4)}
                                          << (8 * (size - 4));
  }
  auto byte = [at](size_t index) {
    return uint64_t{static_cast<uint8_t>(at[index])} << (8 * index);
  };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

// Replaces each byte that is no part of a UTF-8 character.
std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t code_point = TakeCodePoint(text);
    AppendCodePoint(code_point == kNotUtf8 ? 0xFFFD : code_point, out);
  }
  return out;
}

// Appends to a string through a bare pointer: the string is kept longer than its text until the
// writer is gone.
class JsonWriter {
 public:
  JsonWriter(std::string& out, size_t expected) : out_(out) {
    at_ = end_ = out_.data() + out_.size();
    Room(expected);
  }
  ~JsonWriter() { out_.resize(at_ - out_.data()); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void WriteValue(Value value);
  void WriteMembers(std::string_view bson);
  void WriteString(std::string_view text);
  void WriteInteger(int64_t value);
  void WriteDouble(double value);

 private:
  void WriteElements(std::string_view bson);
  void WritePayload(BsonType type, std::string_view payload);
  void WriteExtended(BsonType type, std::string_view payload);
  void WriteBinary(std::string_view payload);
  void WriteDecimal(std::string_view payload);
  void WriteSpecial(const char* at, const char* end);
  void WriteEscape(uint8_t byte);
  template <bool kAsciiOnly>
  const char* CopyPlain(const char* at, const char* end);

  void Put(char byte) {
    Room(1);
    *at_++ = byte;
  }
  void Put(std::string_view text) {
    Room(text.size());
    at_ = std::copy(text.begin(), text.end(), at_);
  }
  void Room(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) < bytes) {
      Grow(bytes);
    }
  }
  [[gnu::noinline]] void Grow(size_t bytes);

  std::string& out_;
  char* at_;
  char* end_;
};

void JsonWriter::Grow(size_t bytes) {
  size_t used = at_ - out_.data();
  size_t size = std::max(out_.capacity(), used + bytes);
  out_.resize_and_overwrite(size, [](char*, size_t n) { return n; });
  at_ = out_.data() + used;
  end_ = out_.data() + out_.size();
}

// Copies up to the first byte that JSON must escape, or with kAsciiOnly that is not ASCII, and
// returns where it stopped. REQUIRES: room for the rest of the text and 8 bytes.
template <bool kAsciiOnly>
const char* JsonWriter::CopyPlain(const char* start, const char* end) {
  const char* at = start;
  // The lowest bit set is exact: a borrow reaches only bytes above one that is found.
  auto find = [](uint64_t word) {
    uint64_t found = (word - EachByte(0x20)) | ((word ^ EachByte('"')) - EachByte(1)) |
                     ((word ^ EachByte('\\')) - EachByte(1));
    return (kAsciiOnly ? found | word : found & ~word) & EachByte(0x80);
  };
  for (; end - at >= 8; at += 8, at_ += 8) {
    uint64_t word = LoadLittle<uint64_t>(at);
    StoreLittle(at_, word);
    if (uint64_t found = find(word); found != 0) {
      size_t plain = std::countr_zero(found) / 8;
      at_ += plain;
      return at + plain;
    }
  }
  if (at == end) {
    return end;
  }
  // The last 1 to 7 bytes as one word, filled up with blanks: a loop would end where it is not
  // foreseen.
  size_t left = end - at;
  uint64_t word =
      (at == start ? LoadShort(at, left) : LoadLittle<uint64_t>(end - 8) >> (64 - 8 * left)) |
      EachByte(' ') << (8 * left);
  StoreLittle(at_, word);
  uint64_t found = find(word);
  size_t plain = found == 0 ? left : std::countr_zero(found) / 8;
  at_ += plain;
  return at + plain;
}

void JsonWriter::WriteString(std::string_view text) {
  Room(text.size() + 10);
  *at_++ = '"';
  const char* end = text.data() + text.size();
  const char* stop = CopyPlain<true>(text.data(), end);
  if (stop != end) {
    WriteSpecial(stop, end);
  }
  Put('"');
}

// The rest of a string, from its first character that is not plain ASCII.
void JsonWriter::WriteSpecial(const char* at, const char* end) {
  std::string repaired;
  if (!simdjson::validate_utf8(at, end - at)) {
    repaired = ReplaceInvalidUtf8({at, static_cast<size_t>(end - at)});
    at = repaired.data();
    end = at + repaired.size();
  }
  for (;;) {
    Room(end - at + 8);
    at = CopyPlain<false>(at, end);
    if (at == end) {
      return;
    }
    WriteEscape(static_cast<uint8_t>(*at++));
  }
}

void JsonWriter::WriteEscape(uint8_t byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  Room(6);
  *at_++ = '\\';
  if (size_t which = kMeanings.find(static_cast<char>(byte)); which != std::string_view::npos) {
    *at_++ = kLetters[which];
    return;
  }
  Put("u00");
  *at_++ = kHex[byte >> 4];
  *at_++ = kHex[byte & 15];
}

void JsonWriter::WriteInteger(int64_t value) {
  Room(20);
  at_ = std::to_chars(at_, at_ + 20, value).ptr;
}

void JsonWriter::WriteDouble(double value) {
  constexpr double kPlainMax = 1e15;
  Room(32);
  if (!std::isfinite(value)) {
    Put(R"({"$numberDouble":")");
    Put(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    Put("\"}");
  } else if (std::abs(value) >= kPlainMax) {
    at_ = std::to_chars(at_, at_ + 32, value, std::chars_format::scientific).ptr;
  } else if (auto integer = static_cast<int64_t>(value); static_cast<double>(integer) == value) {
    WriteInteger(integer);
  } else {
    at_ = std::to_chars(at_, at_ + 32, value).ptr;
  }
}

void JsonWriter::WriteMembers(std::string_view bson) {
  std::string_view elements = Elements(bson);
  const char* at = elements.data();
  const char* end = at + elements.size();
  BsonElement element;
  for (bool first = true; NextElement(at, end, element); first = false) {
    if (!first) {
      Put(',');
    }
    WriteString(element.name);
    Put(':');
    WritePayload(static_cast<BsonType>(element.type), element.payload);
  }
}

void JsonWriter::WriteElements(std::string_view bson) {
  std::string_view elements = Elements(bson);
  const char* at = elements.data();
  const char* end = at + elements.size();
  BsonElement element;
  for (bool first = true; NextElement(at, end, element); first = false) {
    if (!first) {
      Put(',');
    }
    WritePayload(static_cast<BsonType>(element.type), element.payload);
  }
}

void JsonWriter::WritePayload(BsonType type, std::string_view payload) {
  switch (type) {
    case BsonType::kString: return WriteString(payload.substr(4, payload.size() - 5));
    case BsonType::kInt32: return WriteInteger(LoadLittle<int32_t>(payload.data()));
    case BsonType::kInt64: return WriteInteger(LoadLittle<int64_t>(payload.data()));
    case BsonType::kDouble: return WriteDouble(LoadLittle<double>(payload.data()));
    case BsonType::kBool: return payload[0] != 0 ? Put("true") : Put("false");
    case BsonType::kNull: return Put("null");
    case BsonType::kObject:
      Put('{');
      WriteMembers(payload);
      return Put('}');
    case BsonType::kArray:
      Put('[');
      WriteElements(payload);
      return Put(']');
    default: return WriteExtended(type, payload);
  }
}

void JsonWriter::WriteExtended(BsonType type, std::string_view payload) {
  switch (type) {
    case BsonType::kBinary: return WriteBinary(payload);
    case BsonType::kObjectId: {
      char hex[25];
      bson_oid_t oid;
      std::memcpy(oid.bytes, payload.data(), 12);
      bson_oid_to_string(&oid, hex);
      return Put(R"({"$oid":")" + std::string(hex) + "\"}");
    }
    case BsonType::kDate:
      Put(R"({"$date":{"$numberLong":")");
      WriteInteger(LoadLittle<int64_t>(payload.data()));
      return Put("\"}}");
    case BsonType::kRegex: {
      const char* options = payload.data() + std::strlen(payload.data()) + 1;
      Put(R"({"$regularExpression":{"pattern":)");
      WriteString(payload.data());
      Put(R"(,"options":)");
      WriteString(options);
      return Put("}}");
    }
    case BsonType::kTimestamp:
      Put(R"({"$timestamp":{"t":)");
      WriteInteger(LoadLittle<uint32_t>(payload.data() + 4));
      Put(R"(,"i":)");
      WriteInteger(LoadLittle<uint32_t>(payload.data()));
      return Put("}}");
    case BsonType::kDecimal128: return WriteDecimal(payload);
    case BsonType::kMinKey: return Put(R"({"$minKey":1})");
    default: return Put(R"({"$maxKey":1})");
  }
}

void JsonWriter::WriteBinary(std::string_view payload) {
  std::string subtype = ToHex(payload.substr(4, 1));
  Put(R"({"$binary":{"base64":")" + ToBase64(payload.substr(5)) + R"(","subType":")");
  for (char digit : subtype) {
    Put(static_cast<char>(digit >= 'A' ? digit | 0x20 : digit));
  }
  Put("\"}}");
}

void JsonWriter::WriteDecimal(std::string_view payload) {
  bson_decimal128_t decimal;
  decimal.low = LoadLittle<uint64_t>(payload.data());
  decimal.high = LoadLittle<uint64_t>(payload.data() + 8);
  char text[BSON_DECIMAL128_STRING];
  bson_decimal128_to_string(&decimal, text);
  Put(R"({"$numberDecimal":")" + std::string(text) + "\"}");
}

void JsonWriter::WriteValue(Value value) {
  switch (value.kind()) {
    case Kind::kUndefined: return;
    case Kind::kNull: return Put("null");
    case Kind::kBool: return value.boolean() ? Put("true") : Put("false");
    case Kind::kNumber:
      return value.is_integer() ? WriteInteger(value.integer()) : WriteDouble(value.number());
    case Kind::kString: return WriteString(value.string());
    case Kind::kArray:
    case Kind::kObject: {
      std::string_view bytes = value.is_extended() ? value.extended() : value.bson();
      return WritePayload(static_cast<BsonType>(value.bson_type()), bytes);
    }
  }
}

// Names and numbers grow a little, lengths and types go away.
size_t ExpectedJsonSize(Value value) { return value.bson().size() + value.bson().size() / 8 + 32; }

}  // namespace

bool AppendJson(Value value, std::string& out) {
  if (!value.defined()) {
    return false;
  }
  JsonWriter(out, ExpectedJsonSize(value)).WriteValue(value);
  return true;
}

void AppendJsonMembers(Value object, std::string& out) {
  JsonWriter(out, ExpectedJsonSize(object)).WriteMembers(object.bson());
}

void AppendJsonString(std::string_view text, std::string& out) {
  JsonWriter(out, text.size() + 16).WriteString(text);
}

void AppendJsonNumber(Value number, std::string& out) { JsonWriter(out, 32).WriteValue(number); }

}  // namespace orrery::types
