#include "query/lexer.h"

#include <charconv>
#include <utility>

#include "types/utf8.h"

namespace orrery::query {
namespace {

using enum TokenKind;

struct Word {
  std::string_view text;
  TokenKind kind;
};

constexpr Word kKeywords[] = {
    {"AND", kAnd},       {"AS", kAs},       {"ASC", kAsc},       {"BETWEEN", kBetween},
    {"BY", kBy},         {"DESC", kDesc},   {"ESCAPE", kEscape}, {"DISTINCT", kDistinct},
    {"FALSE", kFalse},   {"FROM", kFrom},   {"GROUP", kGroup},   {"IN", kIn},
    {"JOIN", kJoin},     {"LIKE", kLike},   {"LIMIT", kLimit},   {"NOT", kNot},
    {"NULL", kNull},     {"OR", kOr},       {"OFFSET", kOffset}, {"ORDER", kOrder},
    {"SELECT", kSelect}, {"TOP", kTop},     {"TRUE", kTrue},     {"UNDEFINED", kUndefined},
    {"VALUE", kValue},   {"WHERE", kWhere},
};

// A sign stands before every sign that it begins with.
constexpr Word kSigns[] = {
    {">>>", kShiftRightZero},
    {"<<", kShiftLeft},
    {">>", kShiftRight},
    {"<=", kLessEqual},
    {">=", kGreaterEqual},
    {"<>", kNotEqual},
    {"!=", kNotEqual},
    {"||", kConcat},
    {"??", kCoalesce},
    {"/*", kBad},
    {"(", kLeftParen},
    {")", kRightParen},
    {"[", kLeftBracket},
    {"]", kRightBracket},
    {"{", kLeftBrace},
    {"}", kRightBrace},
    {",", kComma},
    {".", kDot},
    {":", kColon},
    {"?", kQuestion},
    {"*", kStar},
    {"/", kSlash},
    {"%", kPercent},
    {"+", kPlus},
    {"-", kMinus},
    {"=", kEqual},
    {"<", kLess},
    {">", kGreater},
    {"&", kAmpersand},
    {"|", kBar},
    {"^", kCaret},
    {"~", kTilde},
};

constexpr std::string_view kEscapes = "'\"\\/bfnrt";
constexpr std::string_view kEscaped = "'\"\\/\b\f\n\r\t";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }
char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

int HexDigit(char c) {
  if (IsDigit(c)) {
    return c - '0';
  }
  char upper = Upper(c);
  return upper >= 'A' && upper <= 'F' ? upper - 'A' + 10 : -1;
}

}  // namespace

bool SameWord(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (Upper(a[i]) != Upper(b[i])) {
      return false;
    }
  }
  return true;
}

bool IsSoftKeyword(TokenKind kind) {
  return kind == kAsc || kind == kDesc || kind == kEscape || kind == kLimit || kind == kOffset;
}

Token Lexer::Next() {
  SkipBlanks();
  if (at_ == text_.size()) {
    return Finish(kEnd, at_);
  }
  char c = text_[at_];
  if (IsNameStart(c)) {
    return Name();
  }
  if (c == '@') {
    return Parameter();
  }
  if (c == '\'' || c == '"') {
    return String();
  }
  if (c == '0' && Upper(At(at_ + 1)) == 'X') {
    return HexNumber();
  }
  if (IsDigit(c) || (c == '.' && IsDigit(At(at_ + 1)))) {
    return Number();
  }
  return Punctuation();
}

void Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (c == '-' && At(at_ + 1) == '-') {
      size_t end = text_.find_first_of("\r\n", at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

Token Lexer::Finish(TokenKind kind, size_t start) {
  return {.kind = kind, .span = {start, at_}, .text = {}, .number = {}};
}

Token Lexer::Name() {
  size_t start = at_;
  while (IsNameChar(At(at_))) {
    ++at_;
  }
  Token token = Finish(kName, start);
  token.text = text_.substr(start, at_ - start);
  for (const Word& word : kKeywords) {
    if (SameWord(word.text, token.text)) {
      token.kind = word.kind;
    }
  }
  return token;
}

Token Lexer::Parameter() {
  size_t start = at_++;
  while (IsNameChar(At(at_))) {
    ++at_;
  }
  Token token = Finish(at_ - start > 1 ? kParameter : kBad, start);
  token.text = text_.substr(start, at_ - start);
  return token;
}

Token Lexer::String() {
  size_t start = at_;
  char quote = text_[at_++];
  std::string decoded;
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] != '\\') {
      decoded.push_back(text_[at_++]);
    } else if (!TakeEscape(decoded)) {
      return Finish(kBad, start);
    }
  }
  if (at_ == text_.size()) {
    return Finish(kBad, start);
  }
  ++at_;
  Token token = Finish(kString, start);
  token.text = std::move(decoded);
  return token;
}

bool Lexer::TakeEscape(std::string& out) {
  ++at_;
  if (At(at_) != 'u') {
    size_t which = kEscapes.find(At(at_));
    if (at_ == text_.size() || which == std::string_view::npos) {
      return false;
    }
    out.push_back(kEscaped[which]);
    ++at_;
    return true;
  }
  uint32_t code_point = 0;
  if (!TakeHex4(code_point)) {
    return false;
  }
  if (code_point >= 0xD800 && code_point < 0xDC00 && At(at_) == '\\' && At(at_ + 1) == 'u') {
    size_t before = at_++;
    uint32_t low = 0;
    if (!TakeHex4(low)) {
      return false;
    }
    if (low >= 0xDC00 && low < 0xE000) {
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at_ = before;
    }
  }
  bool lone_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  types::AppendCodePoint(lone_surrogate ? 0xFFFD : code_point, out);
  return true;
}

// At the `u` of an escape.
bool Lexer::TakeHex4(uint32_t& unit) {
  ++at_;
  unit = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = HexDigit(At(at_));
    if (digit < 0) {
      return false;
    }
    unit = unit << 4 | static_cast<uint32_t>(digit);
    ++at_;
  }
  return true;
}

Token Lexer::Number() {
  size_t start = at_;
  auto skip_digits = [this] {
    while (IsDigit(At(at_))) {
      ++at_;
    }
  };
  skip_digits();
  if (At(at_) == '.') {
    ++at_;
    skip_digits();
  }
  size_t sign = At(at_ + 1) == '+' || At(at_ + 1) == '-' ? 1 : 0;
  if (Upper(At(at_)) == 'E' && IsDigit(At(at_ + 1 + sign))) {
    at_ += 1 + sign;
    skip_digits();
  }
  Token token = Finish(kNumber, start);
  const char* begin = text_.data() + start;
  const char* end = text_.data() + at_;
  int64_t integer = 0;
  auto whole = std::from_chars(begin, end, integer);
  if (whole.ec == std::errc() && whole.ptr == end) {
    token.number = types::Value::Integer(integer);
    return token;
  }
  double number = 0;
  if (std::from_chars(begin, end, number).ec != std::errc()) {
    token.kind = kBad;
  }
  token.number = types::Value::Double(number);
  return token;
}

Token Lexer::HexNumber() {
  size_t start = at_;
  at_ += 2;
  uint64_t integer = 0;
  double number = 0;  // for what does not fit 64 bits
  while (HexDigit(At(at_)) >= 0) {
    int digit = HexDigit(At(at_++));
    integer = integer << 4 | static_cast<uint64_t>(digit);
    number = number * 16 + digit;
  }
  bool fits = number < 0x1p63;
  Token token = Finish(at_ - start > 2 && number < 1e300 ? kNumber : kBad, start);
  token.number =
      fits ? types::Value::Integer(static_cast<int64_t>(integer)) : types::Value::Double(number);
  return token;
}

Token Lexer::Punctuation() {
  size_t start = at_;
  for (const Word& sign : kSigns) {
    if (text_.substr(at_).starts_with(sign.text)) {
      at_ += sign.text.size();
      return Finish(sign.kind, start);
    }
  }
  std::string_view rest = text_.substr(at_);
  types::TakeCodePoint(rest);
  at_ = text_.size() - rest.size();
  return Finish(kBad, start);
}

}  // namespace orrery::query
