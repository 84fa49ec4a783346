#include "types/document.h"

#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "types/bson.h"
#include "types/utf8.h"

namespace orrery::types {
namespace {

constexpr std::string_view kEmptyBson("\x05\0\0\0\0", 5);

std::string_view StringOf(std::string_view payload) {
  return payload.substr(4, payload.size() - 5);
}

// Says what is wrong with untrusted BSON. Recursion ends at kNestingMax.
class BsonChecker {
 public:
  explicit BsonChecker(std::string_view bson) : start_(bson.data()) {}

  Status CheckDocument(std::string_view bson, int depth) {
    if (bson.size() < 5 || LoadLittle<uint32_t>(bson.data()) != bson.size()) {
      return Fault(bson.data(), "the length is not that of the document");
    }
    if (bson.back() != 0) {
      return Fault(&bson.back(), "the document does not end with 00");
    }
    if (depth > kNestingMax) {
      return Fault(bson.data(), "nested too deep");
    }
    std::string_view elements = Elements(bson);
    const char* at = elements.data();
    const char* end = at + elements.size();
    BsonElement element;
    while (NextElement(at, end, element)) {
      if (!IsUtf8(element.name)) {
        return Fault(element.name.data(), "a name is not UTF-8");
      }
      ORRERY_RETURN_IF_ERROR(CheckPayload(element, depth));
    }
    return at == end ? Status::Ok() : Fault(at, "not an element of a known type and sound length");
  }

 private:
  Status CheckPayload(const BsonElement& element, int depth) {
    std::string_view payload = element.payload;
    switch (static_cast<BsonType>(element.type)) {
      case BsonType::kObject:
      case BsonType::kArray: return CheckDocument(payload, depth + 1);
      case BsonType::kString:
        if (payload.back() != 0 || !IsUtf8(StringOf(payload))) {
          return Fault(payload.data(), "a string is not UTF-8 that ends with 00");
        }
        return Status::Ok();
      case BsonType::kBool:
        if (static_cast<uint8_t>(payload[0]) > 1) {
          return Fault(payload.data(), "a boolean is neither 00 nor 01");
        }
        return Status::Ok();
      case BsonType::kRegex:
        if (!IsUtf8(payload)) {
          return Fault(payload.data(), "a regular expression is not UTF-8");
        }
        return Status::Ok();
      default: return Status::Ok();  // any bytes of the right length
    }
  }

  Status Fault(const char* at, std::string_view what) const {
    return Status(Code::kCorruption,
                  "BSON at byte " + std::to_string(at - start_) + ": " + std::string(what));
  }

  const char* start_;
};

}  // namespace

Value Value::FromElement(uint8_t type, std::string_view payload) {
  switch (static_cast<BsonType>(type)) {
    case BsonType::kDouble:
      return Value(Kind::kNumber, type, LoadLittle<uint64_t>(payload.data()), {});
    case BsonType::kString: return Value::String(StringOf(payload));
    case BsonType::kObject: return Value::Object(payload);
    case BsonType::kArray: return Value::Array(payload);
    case BsonType::kBool: return Value::Bool(payload[0] != 0);
    case BsonType::kNull: return Value::Null();
    case BsonType::kInt32: {
      int64_t value = LoadLittle<int32_t>(payload.data());
      return Value(Kind::kNumber, type, static_cast<uint64_t>(value), {});
    }
    case BsonType::kInt64:
      // Keeps its type even if 32 bits would do, so that a copy is the same.
      return Value(Kind::kNumber, type, LoadLittle<uint64_t>(payload.data()), {});
    default: return Value(Kind::kObject, type, 0, payload);
  }
}

ValueIterator::ValueIterator(std::string_view bson) : rest_(Elements(bson)) {}

bool ValueIterator::Next() {
  const char* at = rest_.data();
  const char* end = at + rest_.size();
  BsonElement element;
  if (!NextElement(at, end, element)) {
    return false;
  }
  rest_ = {at, static_cast<size_t>(end - at)};
  name_ = element.name;
  type_ = element.type;
  payload_ = element.payload;
  return true;
}

Value Member(Value object, std::string_view name) {
  if (object.kind() != Kind::kObject) {
    return Value();
  }
  std::string_view elements = Elements(object.bson());
  const char* at = elements.data();
  const char* end = at + elements.size();
  BsonElement element;
  while (NextElement(at, end, element)) {
    if (element.name == name) {
      return Value::FromElement(element.type, element.payload);
    }
  }
  return Value();
}

Value Element(Value array, size_t index) {
  if (array.kind() != Kind::kArray) {
    return Value();
  }
  ValueIterator elements(array.bson());
  while (elements.Next()) {
    if (index-- == 0) {
      return elements.value();
    }
  }
  return Value();
}

Result<Document> Document::FromBson(std::string bson) {
  ORRERY_TRY_STATUS(BsonChecker(bson).CheckDocument(bson, 0));
  return Document(std::move(bson));
}

Document Document::Trusted(std::string bson) { return Document(std::move(bson)); }

std::string Document::ToJson() const {
  std::string out;
  AppendJson(root(), out);
  return out;
}

DocumentBuilder::DocumentBuilder() : out_(4, '\0') {
  levels_.push_back({.start = 0, .array = false, .next = 0});
}

void DocumentBuilder::Name(uint8_t type, std::string_view name) {
  out_.push_back(static_cast<char>(type));
  Level& level = levels_.back();
  if (level.array) {
    char digits[10];
    auto [end, error] = std::to_chars(digits, digits + sizeof(digits), level.next++);
    out_.append(digits, end);
  } else {
    out_.append(name.substr(0, name.find('\0')));
  }
  out_.push_back('\0');
}

void DocumentBuilder::Append(std::string_view name, Value value) {
  if (!value.defined()) {
    return;
  }
  Name(value.bson_type(), name);
  auto append = [this](auto fixed) {
    char bytes[sizeof(fixed)];
    StoreLittle(bytes, fixed);
    out_.append(bytes, sizeof(bytes));
  };
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNull: break;
    case Kind::kBool: out_.push_back(value.boolean() ? 1 : 0); break;
    case Kind::kNumber:
      if (!value.is_integer()) {
        append(value.number());
      } else if (value.bson_type() == static_cast<uint8_t>(BsonType::kInt32)) {
        append(static_cast<int32_t>(value.integer()));
      } else {
        append(value.integer());
      }
      break;
    case Kind::kString:
      append(static_cast<uint32_t>(value.string().size() + 1));
      out_.append(value.string());
      out_.push_back('\0');
      break;
    case Kind::kArray:
    case Kind::kObject:
      if (value.is_extended()) {
        out_.append(value.extended());
      } else {
        out_.append(value.bson().empty() ? kEmptyBson : value.bson());
      }
      break;
  }
}

void DocumentBuilder::BeginObject(std::string_view name) {
  Name(static_cast<uint8_t>(BsonType::kObject), name);
  levels_.push_back({.start = out_.size(), .array = false, .next = 0});
  out_.append(4, '\0');
}

void DocumentBuilder::BeginArray(std::string_view name) {
  Name(static_cast<uint8_t>(BsonType::kArray), name);
  levels_.push_back({.start = out_.size(), .array = true, .next = 0});
  out_.append(4, '\0');
}

void DocumentBuilder::End() {
  ORRERY_CHECK(!levels_.empty());
  out_.push_back('\0');
  size_t start = levels_.back().start;
  StoreLittle(out_.data() + start, static_cast<uint32_t>(out_.size() - start));
  levels_.pop_back();
}

Document DocumentBuilder::Finish() {
  ORRERY_CHECK(levels_.size() == 1);
  End();
  return Document(std::move(out_));
}

namespace {

bool NumbersEqual(Value a, Value b) {
  if (a.is_integer() == b.is_integer()) {
    return a.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  }
  int64_t integer = a.is_integer() ? a.integer() : b.integer();
  double other = a.is_integer() ? b.number() : a.number();
  // Exact, unlike a comparison as doubles; the bounds keep the cast defined.
  return other >= -0x1p63 && other < 0x1p63 && static_cast<int64_t>(other) == integer &&
         static_cast<double>(static_cast<int64_t>(other)) == other;
}

bool ElementsEqual(Value a, Value b) {
  ValueIterator left(a.bson());
  ValueIterator right(b.bson());
  while (left.Next()) {
    if (!right.Next() || !DeepEqual(left.value(), right.value())) {
      return false;
    }
  }
  return !right.Next();
}

bool SameNamesInOrder(Value a, Value b) {
  ValueIterator left(a.bson());
  ValueIterator right(b.bson());
  while (left.Next()) {
    if (!right.Next() || left.name() != right.name()) {
      return false;
    }
  }
  return !right.Next();
}

// Of a name that stands twice, the first counts, as in Member().
std::unordered_map<std::string_view, Value> MembersByName(Value object) {
  std::unordered_map<std::string_view, Value> members;
  ValueIterator iterator(object.bson());
  while (iterator.Next()) {
    members.try_emplace(iterator.name(), iterator.value());
  }
  return members;
}

bool ObjectsEqual(Value a, Value b) {
  if (a.is_extended() || b.is_extended()) {
    return a.bson_type() == b.bson_type() && a.extended() == b.extended();
  }
  if (SameNamesInOrder(a, b)) {
    return ElementsEqual(a, b);
  }
  auto left = MembersByName(a);
  auto right = MembersByName(b);
  if (left.size() != right.size()) {
    return false;
  }
  for (const auto& [name, value] : left) {
    auto found = right.find(name);
    if (found == right.end() || !DeepEqual(value, found->second)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool DeepEqual(Value a, Value b) {
  if (a.kind() != b.kind()) {
    return false;
  }
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNull: return true;
    case Kind::kBool: return a.boolean() == b.boolean();
    case Kind::kNumber: return NumbersEqual(a, b);
    case Kind::kString: return a.string() == b.string();
    case Kind::kArray: return ElementsEqual(a, b);
    case Kind::kObject: return ObjectsEqual(a, b);
  }
  return false;
}

}  // namespace orrery::types
