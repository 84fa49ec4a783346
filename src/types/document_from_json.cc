// JSON in.
//
// simdjson finds the structure and checks UTF-8; its On-Demand walk then drives one pass that
// writes BSON. Strings are unescaped here, straight into their place, because the real service
// keeps lone surrogates as U+FFFD where simdjson refuses them.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <unordered_map>

#include <simdjson.h>

#include "types/bson.h"
#include "types/document.h"

namespace orrery::types {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr size_t kJsonBytesMax = 256 << 20;
// A thread gives its buffers back after a text larger than this.
constexpr size_t kScratchTextBytesMax = 1 << 20;
// Bytes that one element may need beyond its own text: type, length, NULs, array index, and the
// whole words that the string copy stores.
constexpr size_t kElementSlack = 64;
// Up to so many names are compared each with each; more are sorted.
constexpr size_t kNamesComparedMax = 16;

char* AppendUtf8(uint32_t code, char* out) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *out++ = static_cast<char>(0xC0 | code >> 6);
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = static_cast<char>(0xE0 | code >> 12);
    *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out++ = static_cast<char>(0xF0 | code >> 18);
    *out++ = static_cast<char>(0x80 | (code >> 12 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  }
  return out;
}

// Four hex digits, or -1.
int32_t ReadHex4(const char* at) {
  uint32_t code = 0;
  auto [end, error] = std::from_chars(at, at + 4, code, 16);
  return error == std::errc() && end == at + 4 ? static_cast<int32_t>(code) : -1;
}

// Reads the escape whose backslash is at `in` and moves past it. False if there is no such escape.
bool ReadEscape(const char*& in, char*& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (in[1] != 'u') {
    size_t which = kLetters.find(in[1]);
    if (which == std::string_view::npos) {
      return false;
    }
    *out++ = kMeanings[which];
    in += 2;
    return true;
  }
  int32_t code = ReadHex4(in + 2);
  if (code < 0) {
    return false;
  }
  in += 6;
  if (code >= 0xD800 && code < 0xDC00 && in[0] == '\\' && in[1] == 'u') {
    if (int32_t low = ReadHex4(in + 2); low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      in += 6;
    }
  }
  bool lone = code >= 0xD800 && code < 0xE000;
  out = AppendUtf8(lone ? 0xFFFD : static_cast<uint32_t>(code), out);
  return true;
}

// Unescapes a JSON string from behind its opening quote and returns the end of the output, or null
// if an escape is wrong. REQUIRES: a closing quote, and 8 bytes to read and to write behind each
// end.
char* Unescape(const char* in, char* out) {
  for (;;) {
    uint64_t word = LoadLittle<uint64_t>(in);
    StoreLittle(out, word);
    uint64_t special = ZeroBytes(word ^ EachByte('"')) | ZeroBytes(word ^ EachByte('\\'));
    if (special == 0) {
      in += 8;
      out += 8;
      continue;
    }
    size_t plain = std::countr_zero(special) / 8;
    in += plain;
    out += plain;
    if (*in == '"') {
      return out;
    }
    if (!ReadEscape(in, out)) {
      return nullptr;
    }
  }
}

const char* SkipDigits(const char* at) {
  while (*at >= '0' && *at <= '9') {
    ++at;
  }
  return at;
}

// Moves past the fraction and exponent of a JSON number. False if digits are missing.
bool SkipFraction(const char*& at) {
  if (*at == '.') {
    const char* digits = at + 1;
    at = SkipDigits(digits);
    if (at == digits) {
      return false;
    }
  }
  if (*at == 'e' || *at == 'E') {
    const char* digits = at + 1;
    digits += *digits == '+' || *digits == '-';
    at = SkipDigits(digits);
    return at != digits;
  }
  return true;
}

// A growing block of bytes that are not cleared first. Room() before writing through end().
class BsonBuffer {
 public:
  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
  char* at(size_t offset) { return data_.get() + offset; }
  char* end() { return data_.get() + size_; }
  void MoveEnd(char* end) { size_ = end - data_.get(); }
  void Room(size_t bytes) {
    if (capacity_ - size_ < bytes) {
      Grow(bytes);
    }
  }
  template <typename T>
  void Put(T value) {  // REQUIRES: room
    StoreLittle(end(), value);
    size_ += sizeof(T);
  }

 private:
  [[gnu::noinline]] void Grow(size_t bytes) {
    size_t capacity = std::max(2 * capacity_, size_ + bytes);
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) {
      std::memcpy(data.get(), data_.get(), size_);
    }
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

// What a thread keeps from one text to the next.
struct Scratch {
  ondemand::parser parser;
  std::string text;  // the padded copy
  BsonBuffer bson;
  std::vector<uint32_t> name_hashes;  // of the open objects, innermost last
  std::vector<uint32_t> sorted;
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

// Reads up to 7 bytes past the name, which the slack of the buffer allows.
uint32_t HashName(const char* name, size_t size) {
  uint64_t hash = size;
  auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
  };
  for (; size >= 8; size -= 8, name += 8) {
    mix(LoadLittle<uint64_t>(name));
  }
  if (size > 0) {
    mix(LoadLittle<uint64_t>(name) << (64 - 8 * size));
  }
  return static_cast<uint32_t>(hash);
}

// One parse: text in, BSON in the thread's buffer out.
class JsonReader {
 public:
  explicit JsonReader(Scratch& scratch) : scratch_(scratch), bson_(scratch.bson) {}

  Result<Document> ReadObjectText(std::string_view json);
  Result<Document> ReadValueText(std::string_view json);

 private:
  Status Start(std::string_view before, std::string_view json, std::string_view after);
  Result<Document> Finish(bool ok);
  bool Fail(simdjson::error_code error);
  bool Fail(Code code, std::string_view message);

  bool ReadObject(ondemand::object& object, int depth);
  bool ReadArray(ondemand::array& array, int depth);
  bool ReadOneElement(ondemand::array& array);
  bool ReadName(const char* raw);
  bool ReadValue(ondemand::value& value, size_t type_at, int depth);
  bool ReadContainer(ondemand::value& value, ondemand::json_type type, size_t type_at, int depth);
  bool ReadString(ondemand::value& value);
  bool ReadNumber(ondemand::value& value, size_t type_at);
  bool ReadDouble(const char* at, const char* end, size_t type_at);
  bool ReadBool(ondemand::value& value);
  bool ReadNull(ondemand::value& value);

  void PutInteger(int64_t value, size_t type_at);
  void PutDouble(double value, size_t type_at);
  void SetType(size_t type_at, BsonType type) { *bson_.at(type_at) = static_cast<char>(type); }
  size_t Begin();
  void End(size_t start);
  bool HashesRepeat(size_t first);
  void DropRepeatedNames(size_t start);

  Scratch& scratch_;
  BsonBuffer& bson_;
  ondemand::document document_;
  size_t before_ = 0;  // bytes of our own ahead of the text
  const char* text_end_ = nullptr;
  Status status_;
};

Status JsonReader::Start(std::string_view before, std::string_view json, std::string_view after) {
  if (json.size() > kJsonBytesMax) {
    return Status(Code::kTooLarge, "JSON text of " + std::to_string(json.size()) + " bytes");
  }
  std::string& text = scratch_.text;
  text.assign(before).append(json).append(after);
  size_t size = text.size();
  text.append(simdjson::SIMDJSON_PADDING, '\0');
  before_ = before.size();
  text_end_ = text.data() + size;
  bson_.Clear();
  scratch_.name_hashes.clear();
  ondemand::parser& parser = scratch_.parser;
  simdjson::error_code error = simdjson::SUCCESS;
  if (parser.capacity() < size) {  // in steps, lest each text a little larger allocates again
    error = parser.allocate(std::bit_ceil(size), parser.max_depth());
  }
  if (error == simdjson::SUCCESS) {
    error = parser.iterate(text.data(), size, text.size()).get(document_);
  }
  if (error == simdjson::EMPTY) {
    return Status(Code::kInvalidArgument, "the JSON text is empty");
  }
  if (error != simdjson::SUCCESS) {
    return Status(Code::kInvalidArgument,
                  std::string("invalid JSON: ") + simdjson::error_message(error));
  }
  return Status::Ok();
}

Result<Document> JsonReader::Finish(bool ok) {
  const char* rest = nullptr;
  if (ok && document_.current_location().get(rest) != simdjson::OUT_OF_BOUNDS) {
    ok = Fail(simdjson::TRAILING_CONTENT);
  }
  if (ok && bson_.size() > std::numeric_limits<int32_t>::max()) {
    ok = Fail(Code::kTooLarge, "the document is too large");
  }
  if (!ok) {
    return Error(std::move(status_));
  }
  return Document::Trusted(std::string(bson_.at(0), bson_.size()));
}

bool JsonReader::Fail(simdjson::error_code error) {
  return Fail(Code::kInvalidArgument, simdjson::error_message(error));
}

bool JsonReader::Fail(Code code, std::string_view message) {
  const char* at = text_end_;
  if (document_.current_location().get(at) != simdjson::SUCCESS) {
    at = text_end_;
  }
  size_t offset = at - scratch_.text.data();
  offset -= std::min(offset, before_);
  status_ =
      Status(code, "invalid JSON at byte " + std::to_string(offset) + ": " + std::string(message));
  return false;
}

Result<Document> JsonReader::ReadObjectText(std::string_view json) {
  ORRERY_TRY_STATUS(Start("", json, ""));
  ondemand::object object;
  auto error = document_.get_object().get(object);
  if (error == simdjson::INCORRECT_TYPE) {
    return Error(Code::kInvalidArgument, "a JSON object is expected, found another value");
  }
  return Finish(error == simdjson::SUCCESS ? ReadObject(object, 0) : Fail(error));
}

// The value is read as the only element of an array, so that scalars need no path of their own.
Result<Document> JsonReader::ReadValueText(std::string_view json) {
  ORRERY_TRY_STATUS(Start("[", json, "]"));
  ondemand::array array;
  auto error = document_.get_array().get(array);
  return Finish(error == simdjson::SUCCESS ? ReadOneElement(array) : Fail(error));
}

bool JsonReader::ReadOneElement(ondemand::array& array) {
  size_t start = Begin();
  size_t count = 0;
  for (auto element : array) {
    ondemand::value value;
    if (auto error = element.get(value); error != simdjson::SUCCESS) {
      return Fail(error);
    }
    if (count++ > 0) {
      return Fail(simdjson::TRAILING_CONTENT);
    }
    bson_.Room(scratch_.text.size() + kElementSlack);
    size_t type_at = bson_.size();
    bson_.MoveEnd(std::copy_n("?v", 3, bson_.end()));
    if (!ReadValue(value, type_at, 0)) {
      return false;
    }
  }
  if (count == 0) {
    return Fail(simdjson::EMPTY);
  }
  End(start);
  return true;
}

bool JsonReader::ReadObject(ondemand::object& object, int depth) {
  size_t start = Begin();
  size_t first_hash = scratch_.name_hashes.size();
  for (auto result : object) {
    ondemand::field field;
    if (auto error = std::move(result).get(field); error != simdjson::SUCCESS) {
      return Fail(error);
    }
    const char* raw_name = field.key().raw();
    bson_.Room(text_end_ - raw_name + kElementSlack);
    size_t type_at = bson_.size();
    bson_.Put('?');
    if (!ReadName(raw_name) || !ReadValue(field.value(), type_at, depth)) {
      return false;
    }
  }
  End(start);
  if (HashesRepeat(first_hash)) {
    DropRepeatedNames(start);
  }
  scratch_.name_hashes.resize(first_hash);
  return true;
}

bool JsonReader::ReadArray(ondemand::array& array, int depth) {
  size_t start = Begin();
  uint32_t index = 0;
  for (auto element : array) {
    ondemand::value value;
    if (auto error = element.get(value); error != simdjson::SUCCESS) {
      return Fail(error);
    }
    bson_.Room(value.raw_json_token().size() + kElementSlack);
    size_t type_at = bson_.size();
    bson_.Put('?');
    bson_.MoveEnd(std::to_chars(bson_.end(), bson_.end() + 10, index++).ptr);
    bson_.Put('\0');
    if (!ReadValue(value, type_at, depth)) {
      return false;
    }
  }
  End(start);
  return true;
}

bool JsonReader::ReadName(const char* raw) {
  char* name = bson_.end();
  char* end = Unescape(raw, name);
  if (end == nullptr) {
    return Fail(simdjson::STRING_ERROR);
  }
  if (FindNul(name, end) != nullptr) {
    return Fail(Code::kInvalidArgument, "a property name cannot hold \\u0000");
  }
  // Before the NUL is stored: a load over a fresh smaller store waits for it.
  scratch_.name_hashes.push_back(HashName(name, end - name));
  *end = 0;
  bson_.MoveEnd(end + 1);
  return true;
}

bool JsonReader::ReadValue(ondemand::value& value, size_t type_at, int depth) {
  ondemand::json_type type;
  if (auto error = value.type().get(type); error != simdjson::SUCCESS) {
    return Fail(error);
  }
  switch (type) {
    case ondemand::json_type::object:
    case ondemand::json_type::array: return ReadContainer(value, type, type_at, depth + 1);
    case ondemand::json_type::string: SetType(type_at, BsonType::kString); return ReadString(value);
    case ondemand::json_type::number: return ReadNumber(value, type_at);
    case ondemand::json_type::boolean: SetType(type_at, BsonType::kBool); return ReadBool(value);
    case ondemand::json_type::null: SetType(type_at, BsonType::kNull); return ReadNull(value);
  }
  return Fail(simdjson::TAPE_ERROR);
}

bool JsonReader::ReadContainer(ondemand::value& value, ondemand::json_type type, size_t type_at,
                               int depth) {
  if (depth > kNestingMax) {
    return Fail(Code::kTooLarge, "nested deeper than " + std::to_string(kNestingMax) + " levels");
  }
  if (type == ondemand::json_type::array) {
    SetType(type_at, BsonType::kArray);
    ondemand::array array;
    auto error = value.get_array().get(array);
    return error == simdjson::SUCCESS ? ReadArray(array, depth) : Fail(error);
  }
  SetType(type_at, BsonType::kObject);
  ondemand::object object;
  auto error = value.get_object().get(object);
  return error == simdjson::SUCCESS ? ReadObject(object, depth) : Fail(error);
}

bool JsonReader::ReadString(ondemand::value& value) {
  ondemand::raw_json_string raw;
  if (auto error = value.get_raw_json_string().get(raw); error != simdjson::SUCCESS) {
    return Fail(error);
  }
  char* length_at = bson_.end();
  char* end = Unescape(raw.raw(), length_at + 4);
  if (end == nullptr) {
    return Fail(simdjson::STRING_ERROR);
  }
  *end++ = 0;
  StoreLittle(length_at, static_cast<uint32_t>(end - length_at - 4));
  bson_.MoveEnd(end);
  return true;
}

bool JsonReader::ReadNumber(ondemand::value& value, size_t type_at) {
  std::string_view token = value.raw_json_token();
  const char* at = token.data();
  const char* digits = at + (*at == '-');
  const char* next = SkipDigits(digits);
  size_t count = next - digits;
  if (count == 0 || (count > 1 && *digits == '0')) {
    return Fail(simdjson::NUMBER_ERROR);
  }
  bool integer = *next != '.' && *next != 'e' && *next != 'E';
  if (!integer && !SkipFraction(next)) {
    return Fail(simdjson::NUMBER_ERROR);
  }
  // Only blanks may follow: they end a token, and nothing else can stand behind them in it.
  if (next != at + token.size() && *next != ' ' && *next != '\n' && *next != '\r' &&
      *next != '\t') {
    return Fail(simdjson::NUMBER_ERROR);
  }
  if (!integer) {
    return ReadDouble(at, next, type_at);
  }
  int64_t number = 0;
  if (std::from_chars(at, next, number).ec != std::errc()) {
    return ReadDouble(at, next, type_at);
  }
  PutInteger(number, type_at);
  return true;
}

// REQUIRES: a number by the grammar of JSON, with something else at `end`.
bool JsonReader::ReadDouble(const char* at, const char* end, size_t type_at) {
  double number = 0;
  if (std::from_chars(at, end, number).ec != std::errc()) {
    number =
        std::strtod(at, nullptr);  // out of range: zero or infinity, which from_chars does not say
    if (!std::isfinite(number)) {
      return Fail(simdjson::NUMBER_ERROR);
    }
  }
  PutDouble(number, type_at);
  return true;
}

bool JsonReader::ReadBool(ondemand::value& value) {
  bool is_true = false;
  if (auto error = value.get_bool().get(is_true); error != simdjson::SUCCESS) {
    return Fail(*value.raw_json_token().data() == 't' ? simdjson::T_ATOM_ERROR
                                                      : simdjson::F_ATOM_ERROR);
  }
  bson_.Put(static_cast<char>(is_true));
  return true;
}

bool JsonReader::ReadNull(ondemand::value& value) {
  bool is_null = false;
  if (value.is_null().get(is_null) != simdjson::SUCCESS || !is_null) {
    return Fail(simdjson::N_ATOM_ERROR);
  }
  return true;
}

void JsonReader::PutInteger(int64_t value, size_t type_at) {
  if (value == static_cast<int32_t>(value)) {
    SetType(type_at, BsonType::kInt32);
    bson_.Put(static_cast<int32_t>(value));
  } else {
    SetType(type_at, BsonType::kInt64);
    bson_.Put(value);
  }
}

void JsonReader::PutDouble(double value, size_t type_at) {
  SetType(type_at, BsonType::kDouble);
  bson_.Put(value == 0 ? 0.0 : value);  // -0.0 is not told from 0, also not by its hash
}

size_t JsonReader::Begin() {
  bson_.Room(kElementSlack);
  size_t start = bson_.size();
  bson_.Put(uint32_t{0});
  return start;
}

void JsonReader::End(size_t start) {
  bson_.Room(1);
  bson_.Put('\0');
  StoreLittle(bson_.at(start), static_cast<uint32_t>(bson_.size() - start));
}

// True if two names of the object may be the same; their hashes start at `first`.
bool JsonReader::HashesRepeat(size_t first) {
  const std::vector<uint32_t>& hashes = scratch_.name_hashes;
  if (hashes.size() - first > kNamesComparedMax) {
    std::vector<uint32_t>& sorted = scratch_.sorted;
    sorted.assign(hashes.begin() + first, hashes.end());
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }
  const uint32_t* end = hashes.data() + hashes.size();
  for (const uint32_t* one = hashes.data() + first; one < end; ++one) {
    for (const uint32_t* other = one + 1; other < end; ++other) {
      if (*one == *other) {
        return true;
      }
    }
  }
  return false;
}

// Rewrites the object at `start`, the last of the buffer: each name stays where it stood first,
// with the value that it had last.
void JsonReader::DropRepeatedNames(size_t start) {
  std::string copy(bson_.at(start), bson_.size() - start);
  std::unordered_map<std::string_view, size_t> places;
  std::vector<std::string_view> kept;  // whole elements
  std::string_view elements = Elements(copy);
  const char* at = elements.data();
  const char* end = at + elements.size();
  const char* before = at;
  for (BsonElement element; NextElement(at, end, element); before = at) {
    std::string_view whole(before, at - before);
    auto [place, is_new] = places.try_emplace(element.name, kept.size());
    if (is_new) {
      kept.push_back(whole);
    } else {
      kept[place->second] = whole;
    }
  }
  char* out = bson_.at(start + 4);
  for (std::string_view whole : kept) {
    out = std::copy(whole.begin(), whole.end(), out);
  }
  bson_.MoveEnd(out);
  End(start);
}

// Gives memory back that only a rare large text needed.
void TrimScratch(Scratch& scratch) {
  if (scratch.text.size() > kScratchTextBytesMax) {
    scratch = Scratch();
  }
}

}  // namespace

Result<Document> Document::FromJson(std::string_view json) {
  Scratch& scratch = ThreadScratch();
  auto result = JsonReader(scratch).ReadObjectText(json);
  TrimScratch(scratch);
  return result;
}

Result<Document> ParseJsonValue(std::string_view json) {
  Scratch& scratch = ThreadScratch();
  auto result = JsonReader(scratch).ReadValueText(json);
  TrimScratch(scratch);
  return result;
}

}  // namespace orrery::types
