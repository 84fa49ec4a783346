#include "query/string_functions.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "query/numbers.h"
#include "query/text.h"
#include "types/utf8.h"

namespace orrery::query {
namespace {

using types::Kind;
using types::Value;

bool IsString(Value value) { return value.kind() == Kind::kString; }

// A test of two strings, without regard to case if the third argument is true.
Value Test(Arguments arguments, bool (*test)(std::string_view, std::string_view)) {
  bool folded = arguments.size() > 2;
  if (!IsString(arguments[0]) || !IsString(arguments[1]) ||
      (folded && arguments[2].kind() != Kind::kBool)) {
    return {};
  }
  if (folded && arguments[2].boolean()) {
    return Value::Bool(test(ToLower(arguments[0].string()), ToLower(arguments[1].string())));
  }
  return Value::Bool(test(arguments[0].string(), arguments[1].string()));
}

// A part of the text, by code points. What lies outside of it is left out.
Value Slice(std::string_view text, int64_t start, int64_t length) {
  if (start < 0 || length <= 0) {
    return Value::String({});
  }
  text.remove_prefix(ByteOffset(text, static_cast<size_t>(start)));
  return Value::String(text.substr(0, ByteOffset(text, static_cast<size_t>(length))));
}

bool IsBlank(uint32_t code_point) {
  return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x85 ||
         code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

// What is trimmed: blanks, or the code points of the second argument.
class Trimmed {
 public:
  explicit Trimmed(Arguments arguments) : given_(arguments.size() > 1) {
    std::string_view rest = given_ ? arguments[1].string() : std::string_view();
    while (!rest.empty()) {
      code_points_.push_back(types::TakeCodePoint(rest));
    }
    std::ranges::sort(code_points_);
  }
  bool Has(uint32_t code_point) const {
    return given_ ? std::ranges::binary_search(code_points_, code_point) : IsBlank(code_point);
  }

 private:
  bool given_;
  std::vector<uint32_t> code_points_;
};

std::string_view TrimLeft(std::string_view text, const Trimmed& trimmed) {
  std::string_view rest = text;
  while (!rest.empty() && trimmed.Has(types::TakeCodePoint(rest))) {
    text = rest;
  }
  return text;
}

std::string_view TrimRight(std::string_view text, const Trimmed& trimmed) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
      --start;
    }
    std::string_view last = text.substr(start, end - start);
    if (!trimmed.Has(types::TakeCodePoint(last))) {
      break;
    }
    end = start;
  }
  return text.substr(0, end);
}

bool AllStrings(Arguments arguments) { return std::ranges::all_of(arguments, IsString); }

Value Computed(std::string text, Arena& arena) {
  return arena.Reserve(text.size()) ? arena.Keep(std::move(text)) : Value();
}

}  // namespace

Value Concat(Arguments arguments, Arena& arena) {
  size_t size = 0;
  for (Value value : arguments) {
    if (!IsString(value)) {
      return {};
    }
    size += value.string().size();
  }
  if (!arena.Reserve(size)) {
    return {};
  }
  std::string out;
  out.reserve(size);
  for (Value value : arguments) {
    out += value.string();
  }
  return arena.Keep(std::move(out));
}

Value Contains(Arguments arguments, Arena&) {
  return Test(arguments, [](std::string_view text, std::string_view part) {
    return FindText(text, part) != std::string_view::npos;
  });
}

Value EndsWith(Arguments arguments, Arena&) {
  return Test(arguments,
              [](std::string_view text, std::string_view part) { return text.ends_with(part); });
}

Value IndexOf(Arguments arguments, Arena&) {
  int64_t start = 0;
  if (arguments.size() > 2) {
    std::optional<int64_t> given = WholeNumber(arguments[2]);
    if (!given) {
      return {};
    }
    start = std::max<int64_t>(*given, 0);
  }
  if (!IsString(arguments[0]) || !IsString(arguments[1])) {
    return {};
  }
  std::string_view text = arguments[0].string();
  size_t from = ByteOffset(text, static_cast<size_t>(start));
  size_t found = FindText(text, arguments[1].string(), from);
  return Value::Integer(found == std::string_view::npos
                            ? -1
                            : static_cast<int64_t>(CountCodePoints(text.substr(0, found))));
}

Value Left(Arguments arguments, Arena&) {
  std::optional<int64_t> length = WholeNumber(arguments[1]);
  return IsString(arguments[0]) && length ? Slice(arguments[0].string(), 0, *length) : Value();
}

Value Length(Arguments arguments, Arena&) {
  return IsString(arguments[0])
             ? Value::Integer(static_cast<int64_t>(CountCodePoints(arguments[0].string())))
             : Value();
}

Value Lower(Arguments arguments, Arena& arena) {
  return IsString(arguments[0]) ? Computed(ToLower(arguments[0].string()), arena) : Value();
}

Value LeftTrim(Arguments arguments, Arena&) {
  return AllStrings(arguments) ? Value::String(TrimLeft(arguments[0].string(), Trimmed(arguments)))
                               : Value();
}

Value Replace(Arguments arguments, Arena& arena) {
  if (!AllStrings(arguments) || arguments[1].string().empty()) {
    return {};
  }
  std::string_view text = arguments[0].string();
  std::string_view wanted = arguments[1].string();
  std::string_view other = arguments[2].string();
  std::string out;
  size_t at = 0;
  for (;;) {
    size_t found = FindText(text, wanted, at);
    size_t end = std::min(found, text.size());
    size_t added = end - at + (found == std::string_view::npos ? 0 : other.size());
    if (!arena.Reserve(added)) {
      return {};
    }
    out += text.substr(at, end - at);
    if (found == std::string_view::npos) {
      return arena.Keep(std::move(out));
    }
    out += other;
    at = found + wanted.size();
  }
}

Value Right(Arguments arguments, Arena&) {
  std::optional<int64_t> length = WholeNumber(arguments[1]);
  if (!IsString(arguments[0]) || !length) {
    return {};
  }
  std::string_view text = arguments[0].string();
  int64_t size = static_cast<int64_t>(CountCodePoints(text));
  int64_t taken = std::clamp<int64_t>(*length, 0, size);
  return Slice(text, size - taken, taken);
}

Value RightTrim(Arguments arguments, Arena&) {
  return AllStrings(arguments) ? Value::String(TrimRight(arguments[0].string(), Trimmed(arguments)))
                               : Value();
}

Value StartsWith(Arguments arguments, Arena&) {
  return Test(arguments,
              [](std::string_view text, std::string_view part) { return text.starts_with(part); });
}

Value StringEquals(Arguments arguments, Arena&) {
  return Test(arguments, [](std::string_view a, std::string_view b) { return a == b; });
}

Value Substring(Arguments arguments, Arena&) {
  std::optional<int64_t> start = WholeNumber(arguments[1]);
  std::optional<int64_t> length =
      arguments.size() > 2 ? WholeNumber(arguments[2]) : std::numeric_limits<int64_t>::max();
  return IsString(arguments[0]) && start && length ? Slice(arguments[0].string(), *start, *length)
                                                   : Value();
}

Value ToString(Arguments arguments, Arena& arena) {
  if (IsString(arguments[0])) {
    return arguments[0];
  }
  std::string out;
  types::AppendJson(arguments[0], out);
  return Computed(std::move(out), arena);
}

Value Trim(Arguments arguments, Arena&) {
  if (!AllStrings(arguments)) {
    return {};
  }
  Trimmed trimmed(arguments);
  return Value::String(TrimRight(TrimLeft(arguments[0].string(), trimmed), trimmed));
}

Value Upper(Arguments arguments, Arena& arena) {
  return IsString(arguments[0]) ? Computed(ToUpper(arguments[0].string()), arena) : Value();
}

}  // namespace orrery::query
