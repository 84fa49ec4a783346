// Document: a JSON-like value in BSON, the payload of every document-shaped API.
//
// A Document owns its bytes, which were validated when it was made: they are a well-formed BSON
// document with UTF-8 names and strings, nested at most kNestingMax deep. JSON comes in by simdjson
// (FromJson) and goes out by AppendJson straight into the send buffer.
//
// Numbers: an integer that fits 64 bits is kept as int64 (int32 when it fits) and printed exactly;
// all others are doubles, printed as the shortest text that reads back the same: 1.0 -> 1, -0.0 ->
// 0.
//
// BSON that comes in by FromBson may also hold types that JSON does not have: Value::is_extended().
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace orrery::types {

// How deep objects and arrays may lie inside the root object, which itself does not count.
inline constexpr int kNestingMax = 128;

enum class Kind : uint8_t { kUndefined, kNull, kBool, kNumber, kString, kArray, kObject };

// Value: a view of one BSON value inside a Document that outlives it. Undefined if there is none.
// Cheap to copy.
class Value {
 public:
  Value() = default;

  Kind kind() const { return kind_; }
  bool defined() const { return kind_ != Kind::kUndefined; }
  // Each REQUIRES the matching kind.
  bool boolean() const { return bits_ != 0; }
  double number() const {
    return is_integer() ? static_cast<double>(integer()) : std::bit_cast<double>(bits_);
  }
  // True if the number is held as a 64-bit integer; then integer() is exact.
  bool is_integer() const { return type_ == 0x10 || type_ == 0x12; }
  int64_t integer() const { return static_cast<int64_t>(bits_); }
  std::string_view string() const { return bytes_; }
  // The BSON bytes of an array or object (arrays are BSON documents with names "0", "1"...).
  std::string_view bson() const { return is_extended() ? std::string_view() : bytes_; }

  // The BSON type byte; 0 if Undefined.
  uint8_t bson_type() const { return type_; }
  // True for the BSON types that JSON does not have: ObjectId, date, binary and so on. Such a value
  // has the kind of an object but no members; it is copied unchanged and printed in MongoDB's
  // canonical extended JSON, {"$oid":"..."}.
  bool is_extended() const { return kind_ == Kind::kObject && type_ != 0x03; }
  // Its bytes as BSON holds them after the name.
  std::string_view extended() const { return bytes_; }

  static Value Null() { return Value(Kind::kNull, 0x0A, 0, {}); }
  static Value Bool(bool value) { return Value(Kind::kBool, 0x08, value ? 1 : 0, {}); }
  static Value Integer(int64_t value) {
    bool small = value == static_cast<int32_t>(value);
    return Value(Kind::kNumber, small ? 0x10 : 0x12, static_cast<uint64_t>(value), {});
  }
  static Value Double(double value) {
    return Value(Kind::kNumber, 0x01, std::bit_cast<uint64_t>(value), {});
  }
  // Views: the bytes must outlive the value.
  static Value String(std::string_view value) { return Value(Kind::kString, 0x02, 0, value); }
  static Value Array(std::string_view bson) { return Value(Kind::kArray, 0x04, 0, bson); }
  static Value Object(std::string_view bson) { return Value(Kind::kObject, 0x03, 0, bson); }
  // REQUIRES: a BSON type byte and a payload whose length is right for it.
  static Value FromElement(uint8_t type, std::string_view payload);

 private:
  Value(Kind kind, uint8_t type, uint64_t bits, std::string_view bytes)
      : kind_(kind), type_(type), bits_(bits), bytes_(bytes) {}

  Kind kind_ = Kind::kUndefined;
  uint8_t type_ = 0;
  uint64_t bits_ = 0;  // of a bool, an integer or a double
  std::string_view bytes_;
};

// Walks the elements of an object or array, in their stored order.
class ValueIterator {
 public:
  explicit ValueIterator(std::string_view bson);
  bool Next();  // false at the end
  std::string_view name() const { return name_; }
  Value value() const { return Value::FromElement(type_, payload_); }

 private:
  std::string_view rest_;
  std::string_view name_;
  uint8_t type_ = 0;
  std::string_view payload_;
};

// The member of an object, the element of an array; Undefined if there is none.
Value Member(Value object, std::string_view name);
Value Element(Value array, size_t index);

class DocumentBuilder;

class Document {
 public:
  Document() = default;  // the empty object

  // Parses one JSON object. kInvalidArgument says what is wrong and where; kTooLarge if nested
  // deeper than kNestingMax or longer than 256 MB. Of duplicate names the last one wins.
  static Result<Document> FromJson(std::string_view json);
  // Checks bytes that came from outside (a peer, the disk). kCorruption if they are not a Document.
  static Result<Document> FromBson(std::string bson);
  // REQUIRES: bytes that a Document or DocumentBuilder of this process made.
  static Document Trusted(std::string bson);

  Value root() const { return Value::Object(bson_); }
  Value Get(std::string_view name) const { return Member(root(), name); }
  std::string_view bson() const { return bson_; }
  std::string ToJson() const;

 private:
  explicit Document(std::string bson) : bson_(std::move(bson)) {}
  friend class DocumentBuilder;
  std::string bson_{"\x05\0\0\0\0", 5};
};

// Parses any one JSON value (scalar, array or object) and gives it as the member "v" of a Document.
Result<Document> ParseJsonValue(std::string_view json);

// Appends the value as JSON text. Undefined appends nothing and gives false.
bool AppendJson(Value value, std::string& out);
// Appends the members of an object without the braces, `"a":1,"b":2`; nothing if it is empty.
void AppendJsonMembers(Value object, std::string& out);
// Appends a quoted and escaped JSON string. Invalid UTF-8 becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);
// Appends the number the way JSON is written here.
void AppendJsonNumber(Value number, std::string& out);

// Builds BSON. Objects and arrays nest by Begin/End; in an array names are made by the builder. A
// name ends at its first NUL, which BSON cannot hold. REQUIRES: names and strings in UTF-8; no name
// twice in one object.
class DocumentBuilder {
 public:
  DocumentBuilder();
  void Append(std::string_view name, Value value);  // Undefined is left out
  void Append(std::string_view name, std::string_view text) { Append(name, Value::String(text)); }
  void BeginObject(std::string_view name);
  void BeginArray(std::string_view name);
  void End();
  Document Finish();  // REQUIRES: every Begin has its End

 private:
  struct Level {
    size_t start;
    bool array;
    uint32_t next;
  };
  void Name(uint8_t type, std::string_view name);
  std::string out_;
  std::vector<Level> levels_;
};

// Deep equality as JSON sees it: 1 == 1.0, objects without regard to order of names. Undefined
// equals only Undefined; NaN equals nothing.
bool DeepEqual(Value a, Value b);

}  // namespace orrery::types
