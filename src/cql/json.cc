#include "cql/json.h"

#include <algorithm>

#include "base/bytes.h"
#include "types/utf8.h"

namespace orrery::cql {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Value(Json& out, int depth) {
    Space();
    if (depth > Json::kNestingMax) {
      return Fail("it is nested too deeply");
    }
    switch (Peek()) {
      case '{': return Object(out, depth);
      case '[': return Array(out, depth);
      case '"': out.kind = Json::Kind::kString; return String(out.text);
      case 't':
        out.boolean = true;
        out.kind = Json::Kind::kBool;
        return Word("true");
      case 'f': out.kind = Json::Kind::kBool; return Word("false");
      case 'n': return Word("null");
      default: return Number(out);
    }
  }
  bool End() {
    Space();
    return at_ == text_.size() || Fail("something follows the value");
  }
  std::string problem() const { return problem_ + " at byte " + std::to_string(at_); }

 private:
  bool Fail(std::string_view what) {
    problem_ = what;
    return false;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }
  void Space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool Word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) {
      return Fail("unknown word");
    }
    at_ += word.size();
    return true;
  }

  bool Object(Json& out, int depth) {
    out.kind = Json::Kind::kObject;
    Take('{');
    Space();
    if (Take('}')) {
      return true;
    }
    do {
      Json::Member member;
      Space();
      if (Peek() != '"') {
        return Fail("a name is missing");
      }
      if (!String(member.name)) {
        return false;
      }
      Space();
      if (!Take(':')) {
        return Fail("a colon is missing");
      }
      if (!Value(member.value, depth + 1)) {
        return false;
      }
      out.members.push_back(std::move(member));
      Space();
    } while (Take(','));
    KeepLast(out.members);
    return Take('}') || Fail("a brace is not closed");
  }

  static void KeepLast(std::vector<Json::Member>& members) {
    std::vector<size_t> order(members.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::ranges::sort(order, [&](size_t a, size_t b) {
      int by_name = members[a].name.compare(members[b].name);
      return by_name != 0 ? by_name < 0 : a < b;
    });
    std::vector<bool> dropped(members.size());
    bool any = false;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      bool doubled = members[order[i]].name == members[order[i + 1]].name;
      dropped[order[i]] = doubled;
      any = any || doubled;
    }
    if (!any) {
      return;
    }
    std::vector<Json::Member> kept;
    for (size_t i = 0; i < members.size(); ++i) {
      if (!dropped[i]) {
        kept.push_back(std::move(members[i]));
      }
    }
    members = std::move(kept);
  }

  bool Array(Json& out, int depth) {
    out.kind = Json::Kind::kArray;
    Take('[');
    Space();
    if (Take(']')) {
      return true;
    }
    do {
      out.items.emplace_back();
      if (!Value(out.items.back(), depth + 1)) {
        return false;
      }
      Space();
    } while (Take(','));
    return Take(']') || Fail("a bracket is not closed");
  }

  size_t Digits() {
    size_t start = at_;
    while (Peek() >= '0' && Peek() <= '9') {
      ++at_;
    }
    return at_ - start;
  }

  bool Number(Json& out) {
    size_t start = at_;
    Take('-');
    bool zero = Peek() == '0';
    size_t whole = Digits();
    bool good = whole == 1 || (whole > 1 && !zero);
    if (good && Take('.')) {
      good = Digits() > 0;
    }
    if (good && (Take('e') || Take('E'))) {
      if (!Take('+')) {
        Take('-');
      }
      good = Digits() > 0;
    }
    out.kind = Json::Kind::kNumber;
    out.text = text_.substr(start, at_ - start);
    return good || Fail("a value is missing or malformed");
  }

  bool String(std::string& out) {
    Take('"');
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<uint8_t>(c) < 0x20) {
        return Fail("a control character stands in a string");
      }
      if (c == '\\') {
        ++at_;
        if (!Escape(out)) {
          return Fail("an escape is malformed");
        }
        continue;
      }
      std::string_view rest = text_.substr(at_);
      size_t before = rest.size();
      if (types::TakeCodePoint(rest) == types::kNotUtf8) {
        return Fail("a string is not UTF-8");
      }
      out.append(text_.substr(at_, before - rest.size()));
      at_ += before - rest.size();
    }
    return Fail("a string is not closed");
  }

  bool Escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    char c = Peek();
    ++at_;
    if (size_t place = kFrom.find(c); place != std::string_view::npos && c != '\0') {
      out.push_back(kTo[place]);
      return true;
    }
    uint32_t code = 0;
    if (c != 'u' || !FourDigits(code)) {
      return false;
    }
    if (code >= 0xD800 && code < 0xDC00) {
      uint32_t low = 0;
      if (!Take('\\') || !Take('u') || !FourDigits(low) || low < 0xDC00 || low > 0xDFFF) {
        return false;
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return false;
    }
    types::AppendCodePoint(code, out);
    return true;
  }

  bool FourDigits(uint32_t& code) {
    for (int i = 0; i < 4; ++i) {
      int digit = HexDigit(Peek());
      if (digit < 0) {
        return false;
      }
      code = code << 4 | static_cast<uint32_t>(digit);
      ++at_;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace

Result<Json> Json::Parse(std::string_view text) {
  Json value;
  Reader reader(text);
  if (!reader.Value(value, 0) || !reader.End()) {
    return Error(Code::kInvalidArgument, reader.problem());
  }
  return value;
}

std::string Json::ToText() const {
  std::string out;
  switch (kind) {
    case Kind::kNull: return "null";
    case Kind::kBool: return boolean ? "true" : "false";
    case Kind::kNumber:
    case Kind::kString: return text;
    case Kind::kArray:
      for (const Json& item : items) {
        out += (out.empty() ? "" : ", ") + item.ToText();
      }
      return "[" + out + "]";
    case Kind::kObject:
      for (const auto& [name, member] : members) {
        out += (out.empty() ? "" : ", ") + name + "=" + member.ToText();
      }
      return "{" + out + "}";
  }
  return out;
}

}  // namespace orrery::cql
