#include "cql/syntax_error.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "types/utf8.h"

namespace orrery::cql {
namespace {

constexpr size_t kTokensShown = 10;  // before the wrong one; blanks count
constexpr size_t kBytesShown = 200;  // of what stands before it, and of the token itself

std::string Place(std::string_view text, size_t offset) {
  std::string_view before = text.substr(0, offset);
  auto lines = 1 + std::ranges::count(before, '\n');
  size_t line_start = before.rfind('\n');
  std::string_view rest =
      line_start == std::string_view::npos ? before : before.substr(line_start + 1);
  size_t column = 0;
  while (!rest.empty()) {
    uint32_t code_point = types::TakeCodePoint(rest);
    column += code_point != types::kNotUtf8 && code_point > 0xFFFF ? 2 : 1;
  }
  return "line " + std::to_string(lines) + ":" + std::to_string(column) + " ";
}

// The start of a piece of text that fits, and never half a character.
std::string_view Head(std::string_view text) {
  size_t end = std::min(text.size(), kBytesShown);
  while (end < text.size() && (text[end] & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

std::string_view Tail(std::string_view text) {
  size_t start = text.size() - std::min(text.size(), kBytesShown);
  while (start > 0 && start < text.size() && (text[start] & 0xC0) == 0x80) {
    ++start;
  }
  return text.substr(start);
}

// Where the snippet begins: some tokens before `offset`.
size_t SnippetStart(std::string_view text, size_t offset) {
  std::vector<size_t> starts;
  Lexer lexer(text);
  while (lexer.at() < offset) {
    starts.push_back(lexer.at());
    if (!lexer.SkipBlank()) {
      lexer.Next();
    }
  }
  return starts.size() <= kTokensShown ? 0 : starts[starts.size() - kTokensShown];
}

std::string Snippet(std::string_view text, const Token& token) {
  size_t start = SnippetStart(text, token.start);
  std::string_view before = Tail(text.substr(start, token.start - start));
  std::string snippet = before.size() == token.start ? "(" : "(...";
  snippet += before;
  snippet += "[" + std::string(Head(text.substr(token.start, token.end - token.start))) + "]";
  snippet += token.end == text.size() ? ")" : "...)";
  std::erase_if(snippet, [](char c) { return c == '\n' || c == '\r'; });
  return snippet;
}

std::string Shown(std::string_view text, const Token& token) {
  if (token.kind == TokenKind::kEnd) {
    return "'<EOF>'";
  }
  return "'" + std::string(Head(text.substr(token.start, token.end - token.start))) + "'";
}

// A message about a token that is one.
Status About(std::string_view text, const Token& token, std::string message) {
  if (token.kind == TokenKind::kEnd) {
    return Status(Code::kInvalidArgument, "line 0:-1 " + message);
  }
  return Status(Code::kInvalidArgument,
                Place(text, token.start) + message + " " + Snippet(text, token));
}

Status BadToken(std::string_view text, const Token& token) {
  if (token.kind == TokenKind::kBad) {
    return Status(
        Code::kInvalidArgument,
        Place(text, token.start) + "no viable alternative at character " + Shown(text, token));
  }
  char first = text[token.start];
  std::string_view end = first == '/' ? "*" : text.substr(token.start, 1);
  return Status(Code::kInvalidArgument, Place(text, text.size()) +
                                            "mismatched character '<EOF>' expecting '" +
                                            std::string(end) + "'");
}

bool IsBad(const Token& token) {
  return token.kind == TokenKind::kBad || token.kind == TokenKind::kUnterminated;
}

}  // namespace

Status NoViableAlternative(std::string_view text, const Token& token) {
  if (IsBad(token)) {
    return BadToken(text, token);
  }
  return About(text, token, "no viable alternative at input " + Shown(text, token));
}

Status MismatchedInput(std::string_view text, const Token& token, std::string_view expected) {
  if (IsBad(token)) {
    return BadToken(text, token);
  }
  return About(text, token,
               "mismatched input " + Shown(text, token) + " expecting " + std::string(expected));
}

Status SyntaxError(std::string_view text, const Token& token, std::string_view message) {
  return IsBad(token) ? BadToken(text, token) : About(text, token, std::string(message));
}

}  // namespace orrery::cql
