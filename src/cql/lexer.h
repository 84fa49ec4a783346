// Lexer: cuts the text of a CQL statement into tokens, one at a time.
//
//   name        [A-Za-z][A-Za-z0-9_]*, or anything in "..." with "" for a quote
//   string      '...' with '' for a quote, or $$...$$
//   integer     12            a sign is a token of its own
//   float       1.5  1.  1e3
//   blob        0x0aFF
//   uuid        550e8400-e29b-41d4-a716-446655440000
//   duration    1y2mo3w4d5h6m7s8ms9us10ns  P1Y2M3DT4H5M6S  P3W  P0001-02-03T04:05:06
//   comment     -- or // to the end of the line, /* ... */
//
// A copy of a lexer goes on from where the original stands: that is how the parser looks ahead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cql/keywords.h"

namespace orrery::cql {

enum class TokenKind : uint8_t {
  kEnd,
  kBad,           // a character that begins no token
  kUnterminated,  // a string, quoted name or comment without its end
  kName,          // also keywords
  kQuotedName,
  kString,
  kInteger,
  kFloat,
  kBlob,
  kUuid,
  kDuration,
  // Punctuation.
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kDot,
  kRange,
  kColon,
  kSemicolon,
  kQuestion,
  kStar,
  kSlash,
  kPercent,
  kPlus,
  kMinus,
  kPlusEqual,
  kMinusEqual,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Keyword keyword = Keyword::kNone;  // of kName
  size_t start = 0;                  // bytes of the text
  size_t end = 0;
};

class Lexer {
 public:
  // REQUIRES: `text` is UTF-8 and outlives the lexer.
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Next();
  // Passes one run of blanks or one comment; false if there is none.
  bool SkipBlank();
  size_t at() const { return at_; }

 private:
  char At(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  Token Finish(TokenKind kind, size_t start) const { return {kind, Keyword::kNone, start, at_}; }
  bool TakeFixed(std::string_view pattern);
  bool TakeUnits();
  void TakeDigits();
  Token Word();
  Token Number();
  Token Quoted(TokenKind kind, char quote);
  Token DollarString();
  Token Punctuation();

  std::string_view text_;
  size_t at_ = 0;
};

// What the token means: a name in lower case if it is not quoted, the inside of a string; other
// tokens as written.
std::string TokenText(std::string_view text, const Token& token);

// How syntax errors call what they expect: K_FROM, IDENT, ')'.
std::string KeywordName(Keyword keyword);
std::string_view TokenName(TokenKind kind);

}  // namespace orrery::cql
