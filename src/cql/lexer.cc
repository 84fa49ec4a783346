#include "cql/lexer.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "cql/letters.h"
#include "types/utf8.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

struct Sign {
  std::string_view text;
  TokenKind kind;
  std::string_view name;
};

// In the order of their first characters; a sign stands before every sign that it begins with.
constexpr Sign kSigns[] = {
    {"!=", kNotEqual, "'!='"},     {"%", kPercent, "'%'"},      {"(", kLeftParen, "'('"},
    {")", kRightParen, "')'"},     {"*", kStar, "'*'"},         {"+=", kPlusEqual, "'+='"},
    {"+", kPlus, "'+'"},           {",", kComma, "','"},        {"-=", kMinusEqual, "'-='"},
    {"-", kMinus, "'-'"},          {"..", kRange, "RANGE"},     {".", kDot, "'.'"},
    {"/", kSlash, "'/'"},          {":", kColon, "':'"},        {";", kSemicolon, "';'"},
    {"<=", kLessEqual, "'<='"},    {"<", kLess, "'<'"},         {"=", kEqual, "'='"},
    {">=", kGreaterEqual, "'>='"}, {">", kGreater, "'>'"},      {"?", kQuestion, "QMARK"},
    {"[", kLeftBracket, "'['"},    {"]", kRightBracket, "']'"}, {"{", kLeftBrace, "'{'"},
    {"}", kRightBrace, "'}'"},
};
static_assert(std::ranges::is_sorted(kSigns, {}, [](const Sign& sign) { return sign.text[0]; }));

// The first sign that begins with a character, or the number of signs.
constexpr std::array<uint8_t, 256> kFirstSigns = [] {
  std::array<uint8_t, 256> first;
  first.fill(std::size(kSigns));
  for (size_t i = std::size(kSigns); i-- > 0;) {
    first[static_cast<unsigned char>(kSigns[i].text[0])] = static_cast<uint8_t>(i);
  }
  return first;
}();

// Longer ones before those that they begin with.
constexpr std::string_view kDurationUnits[] = {"mo", "ms", "us", "\u00B5s", "ns", "y",
                                               "w",  "d",  "h",  "m",       "s"};

bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsHex(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'f'); }

bool StartsWithWord(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && EqualsIgnoringCase(text.substr(0, lower.size()), lower);
}

// Takes digits and a letter off the front, if they are there.
bool TakePart(std::string_view& word, char letter) {
  size_t digits = 0;
  while (digits < word.size() && IsDigit(word[digits])) {
    ++digits;
  }
  if (digits == 0 || digits == word.size() || word[digits] != letter) {
    return false;
  }
  word.remove_prefix(digits + 1);
  return true;
}

// P1Y2M3DT4H5M6S or P3W, each part optional, but not all of them.
bool IsIsoDuration(std::string_view word) {
  if (!word.starts_with('P') || word.size() < 2) {
    return false;
  }
  word.remove_prefix(1);
  if (TakePart(word, 'W')) {
    return word.empty();
  }
  for (char letter : {'Y', 'M', 'D'}) {
    TakePart(word, letter);
  }
  if (!word.starts_with('T') || word.size() < 2) {
    return word.empty();
  }
  word.remove_prefix(1);
  for (char letter : {'H', 'M', 'S'}) {
    TakePart(word, letter);
  }
  return word.empty();
}

}  // namespace

Token Lexer::Next() {
  while (SkipBlank()) {
  }
  if (at_ == text_.size()) {
    return Finish(kEnd, at_);
  }
  size_t start = at_;
  char c = text_[at_];
  if (IsHex(c) && TakeFixed("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")) {
    return Finish(kUuid, start);
  }
  if (IsLetter(c)) {
    return Word();
  }
  if (IsDigit(c)) {
    return Number();
  }
  if (c == '\'') {
    return Quoted(kString, c);
  }
  if (c == '"') {
    return Quoted(kQuotedName, c);
  }
  if (c == '$' && At(at_ + 1) == '$') {
    return DollarString();
  }
  return Punctuation();
}

bool Lexer::SkipBlank() {
  size_t start = at_;
  while (at_ < text_.size() && IsBlank(text_[at_])) {
    ++at_;
  }
  if (at_ != start) {
    return true;
  }
  if (at_ == text_.size() || (text_[at_] != '-' && text_[at_] != '/')) {
    return false;
  }
  std::string_view rest = text_.substr(at_);
  if (rest.starts_with("--") || rest.starts_with("//")) {
    at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    return true;
  }
  size_t end = rest.starts_with("/*") ? text_.find("*/", at_ + 2) : std::string_view::npos;
  if (end == std::string_view::npos) {
    return false;
  }
  at_ = end + 2;
  return true;
}

// In a pattern x is a hexadecimal digit, 0 a decimal one, other characters are themselves.
bool Lexer::TakeFixed(std::string_view pattern) {
  if (text_.size() - at_ < pattern.size()) {
    return false;
  }
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = text_[at_ + i];
    bool fits = pattern[i] == 'x' ? IsHex(c) : pattern[i] == '0' ? IsDigit(c) : c == pattern[i];
    if (!fits) {
      return false;
    }
  }
  at_ += pattern.size();
  return true;
}

Token Lexer::Word() {
  size_t start = at_;
  if (text_[at_] == 'P' && TakeFixed("P0000-00-00T00:00:00")) {
    return Finish(kDuration, start);
  }
  while (IsWordChar(At(at_))) {
    ++at_;
  }
  std::string_view word = text_.substr(start, at_ - start);
  if (IsIsoDuration(word)) {
    return Finish(kDuration, start);
  }
  Token token = Finish(kName, start);
  token.keyword = FindKeyword(word);
  return token;
}

void Lexer::TakeDigits() {
  while (IsDigit(At(at_))) {
    ++at_;
  }
}

// After the digits of a number: a unit, then more digits and units. False if there is no unit.
bool Lexer::TakeUnits() {
  bool found = false;
  size_t good = at_;
  for (bool more = true; more;) {
    more = false;
    for (std::string_view unit : kDurationUnits) {
      if (StartsWithWord(text_.substr(at_), unit)) {
        at_ += unit.size();
        good = at_;
        TakeDigits();
        found = true;
        more = at_ != good;
        break;
      }
    }
  }
  at_ = good;
  return found;
}

Token Lexer::Number() {
  size_t start = at_;
  if (text_[at_] == '0' && Lower(At(at_ + 1)) == 'x') {
    at_ += 2;
    while (IsHex(At(at_))) {
      ++at_;
    }
    return Finish(kBlob, start);
  }
  TakeDigits();
  if (TakeUnits()) {
    return Finish(kDuration, start);
  }
  TokenKind kind = kInteger;
  if (At(at_) == '.' && At(at_ + 1) != '.') {
    kind = kFloat;
    ++at_;
    TakeDigits();
  }
  size_t sign = At(at_ + 1) == '+' || At(at_ + 1) == '-' ? 1 : 0;
  if (Lower(At(at_)) == 'e' && IsDigit(At(at_ + 1 + sign))) {
    kind = kFloat;
    at_ += 1 + sign;
    TakeDigits();
  }
  return Finish(kind, start);
}

Token Lexer::Quoted(TokenKind kind, char quote) {
  size_t start = at_++;
  while (true) {
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      return Finish(kUnterminated, start);
    }
    at_ = end + 1;
    if (At(at_) != quote) {
      return Finish(kind, start);
    }
    ++at_;
  }
}

Token Lexer::DollarString() {
  size_t start = at_;
  size_t end = text_.find("$$", at_ + 2);
  bool found = end != std::string_view::npos;
  at_ = found ? end + 2 : text_.size();
  return Finish(found ? kString : kUnterminated, start);
}

Token Lexer::Punctuation() {
  size_t start = at_;
  std::string_view rest = text_.substr(at_);
  if (rest.starts_with("/*")) {
    at_ = text_.size();
    return Finish(kUnterminated, start);
  }
  for (size_t i = kFirstSigns[static_cast<unsigned char>(rest[0])];
       i < std::size(kSigns) && kSigns[i].text[0] == rest[0]; ++i) {
    if (rest.starts_with(kSigns[i].text)) {
      at_ += kSigns[i].text.size();
      return Finish(kSigns[i].kind, start);
    }
  }
  types::TakeCodePoint(rest);
  at_ = text_.size() - rest.size();
  return Finish(kBad, start);
}

std::string TokenText(std::string_view text, const Token& token) {
  std::string_view raw = text.substr(token.start, token.end - token.start);
  if (token.kind == kName) {
    return Lower(raw);
  }
  if (token.kind != kString && token.kind != kQuotedName) {
    return std::string(raw);
  }
  if (raw.starts_with('$')) {
    return std::string(raw.substr(2, raw.size() - 4));
  }
  std::string inside;
  inside.reserve(raw.size() - 2);
  for (size_t i = 1; i + 1 < raw.size(); ++i) {
    inside.push_back(raw[i]);
    if (raw[i] == raw.front()) {
      ++i;  // the second of two
    }
  }
  return inside;
}

std::string KeywordName(Keyword keyword) {
  if (keyword == Keyword::kTable) {
    return "K_COLUMNFAMILY";  // the two are one word, and this is its older form
  }
  std::string name = "K_" + std::string(KeywordText(keyword));
  std::ranges::transform(name, name.begin(), Upper);
  return name;
}

std::string_view TokenName(TokenKind kind) {
  for (const Sign& sign : kSigns) {
    if (sign.kind == kind) {
      return sign.name;
    }
  }
  switch (kind) {
    case kEnd: return "EOF";
    case kName: return "IDENT";
    case kQuotedName: return "QUOTED_NAME";
    case kString: return "STRING_LITERAL";
    case kInteger: return "INTEGER";
    case kFloat: return "FLOAT";
    case kBlob: return "HEXNUMBER";
    case kUuid: return "UUID";
    case kDuration: return "DURATION";
    default: return "a token";
  }
}

}  // namespace orrery::cql
