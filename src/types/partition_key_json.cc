// The JSON form of a partition key, as the header `x-ms-documentdb-partitionkey` carries it. It is
// small and on the path of every request, so it has its own reader:
//
//   key       = "[" [ component *( "," component ) ] "]"
//   component = string | number | "true" | "false" | "null" | "{" "}"
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "types/partition_key.h"
#include "types/utf8.h"

namespace orrery::types {
namespace {

constexpr size_t kJsonMax = 16 << 10;

bool IsHighSurrogate(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class KeyReader {
 public:
  explicit KeyReader(std::string_view json) : json_(json), rest_(json) {}

  Result<PartitionKey> Read() {
    PartitionKey key;
    if (!Take('[')) {
      return Wrong("wanted an array");
    }
    if (!Take(']')) {
      do {
        ORRERY_TRY(KeyComponent component, ReadComponent());
        key.components.push_back(std::move(component));
      } while (Take(','));
      if (!Take(']')) {
        return Wrong("wanted ',' or ']'");
      }
    }
    SkipSpace();
    if (!rest_.empty()) {
      return Wrong("wanted nothing more");
    }
    return key;
  }

 private:
  std::unexpected<Status> Wrong(std::string_view what) const {
    return Error(Code::kInvalidArgument, "partition key: " + std::string(what) + " at byte " +
                                             std::to_string(json_.size() - rest_.size()));
  }

  void SkipSpace() {
    size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }

  // Takes the character, after any space.
  bool Take(char c) {
    SkipSpace();
    return TakeNext(c);
  }

  bool TakeNext(char c) {
    if (!rest_.starts_with(c)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  bool TakeWord(std::string_view word) {
    if (!rest_.starts_with(word)) {
      return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }

  Result<KeyComponent> ReadComponent() {
    if (Take('"')) {
      ORRERY_TRY(std::string text, ReadString());
      return KeyComponent::String(std::move(text));
    }
    if (TakeNext('{')) {
      if (!Take('}')) {
        return Wrong("an object must be {}, for undefined,");
      }
      return KeyComponent();
    }
    if (TakeWord("null")) {
      return KeyComponent::Null();
    }
    if (TakeWord("true")) {
      return KeyComponent::Bool(true);
    }
    if (TakeWord("false")) {
      return KeyComponent::Bool(false);
    }
    return ReadNumber();
  }

  // Takes digits; false if there is none.
  bool TakeDigits() {
    size_t count = 0;
    while (count < rest_.size() && IsDigit(rest_[count])) {
      ++count;
    }
    rest_.remove_prefix(count);
    return count > 0;
  }

  bool TakeNumber() {
    TakeNext('-');
    if (!TakeNext('0') && !TakeDigits()) {
      return false;
    }
    if (TakeNext('.') && !TakeDigits()) {
      return false;
    }
    if (TakeNext('e') || TakeNext('E')) {
      if (!TakeNext('+')) {
        TakeNext('-');
      }
      return TakeDigits();
    }
    return true;
  }

  Result<KeyComponent> ReadNumber() {
    std::string_view start = rest_;
    if (!TakeNumber()) {
      return Wrong("wanted a string, number, true, false, null or {}");
    }
    std::string_view text = start.substr(0, start.size() - rest_.size());
    double number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
      number =
          std::strtod(std::string(text).c_str(), nullptr);  // too large, or so small that it is 0
    }
    if (!std::isfinite(number)) {
      return Wrong("wanted a number that a double can hold");
    }
    return KeyComponent::Number(number);
  }

  // Reads to the closing quote; the opening one is taken.
  Result<std::string> ReadString() {
    std::string text;
    while (!TakeNext('"')) {
      if (rest_.empty()) {
        return Wrong("wanted a closing quote");
      }
      if (TakeNext('\\')) {
        if (!ReadEscape(text)) {
          return Wrong("wanted an escape of JSON");
        }
        continue;
      }
      if (static_cast<unsigned char>(rest_[0]) < 0x20) {
        return Wrong("wanted an escape instead of a control character");
      }
      std::string_view before = rest_;
      if (TakeCodePoint(rest_) == kNotUtf8) {
        return Wrong("wanted UTF-8");
      }
      text.append(before.substr(0, before.size() - rest_.size()));
    }
    return text;
  }

  bool ReadEscape(std::string& out) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (TakeNext('u')) {
      return ReadCodePoint(out);
    }
    size_t which = rest_.empty() ? std::string_view::npos : kEscapes.find(rest_[0]);
    if (which == std::string_view::npos) {
      return false;
    }
    out.push_back(kMeanings[which]);
    rest_.remove_prefix(1);
    return true;
  }

  // Reads the digits of \uXXXX, and of a second one if the first is half of a pair. A half alone is
  // no character, and refused.
  bool ReadCodePoint(std::string& out) {
    std::optional<uint32_t> unit = TakeUnit();
    if (!unit || IsLowSurrogate(*unit)) {
      return false;
    }
    if (!IsHighSurrogate(*unit)) {
      AppendCodePoint(*unit, out);
      return true;
    }
    std::optional<uint32_t> low = TakeWord("\\u") ? TakeUnit() : std::nullopt;
    if (!low || !IsLowSurrogate(*low)) {
      return false;
    }
    AppendCodePoint(0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00), out);
    return true;
  }

  // Takes four hex digits.
  std::optional<uint32_t> TakeUnit() {
    std::string_view digits = rest_.substr(0, 4);
    uint32_t unit = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) {
      return std::nullopt;
    }
    rest_.remove_prefix(4);
    return unit;
  }

  std::string_view json_;
  std::string_view rest_;
};

void AppendUnit(uint32_t unit, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    out.push_back(kDigits[unit >> shift & 15]);
  }
}

// Only ASCII comes out, so that it fits a header.
void AppendString(std::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    uint32_t code_point = TakeCodePoint(text);
    if (code_point == kNotUtf8) {
      code_point = 0xFFFD;
    }
    if (code_point == '"' || code_point == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(code_point));
    } else if (code_point >= 0x20 && code_point < 0x7F) {
      out.push_back(static_cast<char>(code_point));
    } else if (code_point < 0x10000) {
      AppendUnit(code_point, out);
    } else {
      AppendUnit(0xD800 + ((code_point - 0x10000) >> 10), out);
      AppendUnit(0xDC00 + ((code_point - 0x10000) & 0x3FF), out);
    }
  }
  out.push_back('"');
}

// The shortest text that reads back the same, -0 too: it is another key than 0.
void AppendNumber(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  double size = std::abs(number);
  bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
  char text[64];
  auto [end, error] =
      std::to_chars(text, text + sizeof(text), number,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  out.append(text, end);
}

}  // namespace

Result<PartitionKey> PartitionKey::FromJson(std::string_view json) {
  if (json.size() > kJsonMax) {
    return Error(Code::kInvalidArgument, "partition key: wanted at most " +
                                             std::to_string(kJsonMax) + " bytes, found " +
                                             std::to_string(json.size()));
  }
  return KeyReader(json).Read();
}

std::string PartitionKey::ToJson() const {
  std::string out = "[";
  for (const KeyComponent& component : components) {
    if (out.size() > 1) {
      out.push_back(',');
    }
    switch (component.kind()) {
      case KeyComponent::Kind::kUndefined: out += "{}"; break;
      case KeyComponent::Kind::kNull: out += "null"; break;
      case KeyComponent::Kind::kFalse: out += "false"; break;
      case KeyComponent::Kind::kTrue: out += "true"; break;
      case KeyComponent::Kind::kNumber: AppendNumber(component.number(), out); break;
      case KeyComponent::Kind::kString: AppendString(component.string(), out); break;
    }
  }
  return out + "]";
}

}  // namespace orrery::types
