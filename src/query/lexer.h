// Lexer: cuts the text of a query into tokens, one at a time.
//
//   name        [A-Za-z_][A-Za-z0-9_]*; a keyword in any case is its own kind
//   parameter   @ name
//   string      '...' or "...", with \' \" \\ \/ \b \f \n \r \t \uXXXX
//   number      12  1.5  .5  1e3  0x1F
//   comment     -- to the end of the line
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "query/error.h"
#include "types/document.h"

namespace orrery::query {

enum class TokenKind : uint8_t {
  kEnd,
  kBad,  // no token of the language, such as `;` or a string without its end
  kName,
  kParameter,
  kString,
  kNumber,
  // Keywords.
  kAnd,
  kAs,
  kAsc,
  kBetween,
  kBy,
  kDesc,
  kDistinct,
  kEscape,
  kFalse,
  kFrom,
  kGroup,
  kIn,
  kJoin,
  kLike,
  kLimit,
  kNot,
  kNull,
  kOffset,
  kOr,
  kOrder,
  kSelect,
  kTop,
  kTrue,
  kUndefined,
  kValue,
  kWhere,
  // Punctuation.
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kDot,
  kColon,
  kQuestion,
  kCoalesce,
  kStar,
  kSlash,
  kPercent,
  kPlus,
  kMinus,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kShiftLeft,
  kShiftRight,
  kShiftRightZero,
  kAmpersand,
  kBar,
  kConcat,
  kCaret,
  kTilde,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Span span;
  std::string text;     // a name or parameter as written, a string decoded
  types::Value number;  // of kNumber
};

// Keywords that are still good as the name of a property: `c.offset`. The others need c["order"].
bool IsSoftKeyword(TokenKind kind);

// Equal but for the case of ASCII letters.
bool SameWord(std::string_view a, std::string_view b);

class Lexer {
 public:
  // REQUIRES: `text` is UTF-8 and outlives the lexer.
  explicit Lexer(std::string_view text) : text_(text) {}
  Token Next();

 private:
  void SkipBlanks();
  char At(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  Token Finish(TokenKind kind, size_t start);
  Token Name();
  Token Parameter();
  Token String();
  Token Number();
  Token HexNumber();
  Token Punctuation();
  bool TakeEscape(std::string& out);
  bool TakeHex4(uint32_t& unit);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace orrery::query
