#include "cql/lexer.h"

#include <vector>

#include <gtest/gtest.h>

namespace orrery::cql {
namespace {

using enum TokenKind;

// The tokens of a text, as kinds and meanings.
std::vector<std::pair<TokenKind, std::string>> Tokens(std::string_view text) {
  std::vector<std::pair<TokenKind, std::string>> tokens;
  Lexer lexer(text);
  for (Token token = lexer.Next(); token.kind != kEnd; token = lexer.Next()) {
    tokens.emplace_back(token.kind, TokenText(text, token));
  }
  return tokens;
}

struct Row {
  std::string_view text;
  TokenKind kind;
  std::string_view meaning;
};

TEST(LexerTest, EachKindOfTokenIsRead) {
  const Row rows[] = {
      {"abc_1", kName, "abc_1"},
      {"AbC", kName, "abc"},
      {"\"AbC\"", kQuotedName, "AbC"},
      {"\"a\"\"b\"", kQuotedName, "a\"b"},
      {"'it''s'", kString, "it's"},
      {"''", kString, ""},
      {"''''", kString, "'"},
      {"$$it's$$", kString, "it's"},
      {"$$$$", kString, ""},
      {"'\u00e4\U0001F600'", kString, "\u00e4\U0001F600"},
      {"0", kInteger, "0"},
      {"123456789012345678901234567890", kInteger, "123456789012345678901234567890"},
      {"1.5", kFloat, "1.5"},
      {"1.", kFloat, "1."},
      {"1e10", kFloat, "1e10"},
      {"1.5E-3", kFloat, "1.5E-3"},
      {"0xCAFE", kBlob, "0xCAFE"},
      {"0x", kBlob, "0x"},
      {"0Xab", kBlob, "0Xab"},
      {"550e8400-e29b-41d4-a716-446655440000", kUuid, "550e8400-e29b-41d4-a716-446655440000"},
      {"ABCDEF01-e29b-41d4-a716-446655440000", kUuid, "ABCDEF01-e29b-41d4-a716-446655440000"},
      {"1y2mo3w4d5h6m7s8ms9us10ns", kDuration, "1y2mo3w4d5h6m7s8ms9us10ns"},
      {"5H", kDuration, "5H"},
      {"3\u00b5s", kDuration, "3\u00b5s"},
      {"P1Y2M3DT4H5M6S", kDuration, "P1Y2M3DT4H5M6S"},
      {"PT1H", kDuration, "PT1H"},
      {"P3W", kDuration, "P3W"},
      {"P0001-02-03T04:05:06", kDuration, "P0001-02-03T04:05:06"},
      {"P", kName, "p"},
      {"PT", kName, "pt"},
      {"P1", kName, "p1"},
      {"p1d", kName, "p1d"},
      {"..", kRange, ".."},
      {"+=", kPlusEqual, "+="},
      {"!=", kNotEqual, "!="},
      {"#", kBad, "#"},
      {"_", kBad, "_"},
      {"\u00e4", kBad, "\u00e4"},
      {"$", kBad, "$"},
      {"'open", kUnterminated, "'open"},
      {"\"open", kUnterminated, "\"open"},
      {"$$open$", kUnterminated, "$$open$"},
      {"/* open", kUnterminated, "/* open"},
  };
  for (const Row& row : rows) {
    auto tokens = Tokens(row.text);
    ASSERT_EQ(tokens.size(), 1u) << row.text;
    EXPECT_EQ(tokens[0].first, row.kind) << row.text;
    EXPECT_EQ(tokens[0].second, row.meaning) << row.text;
  }
}

TEST(LexerTest, TokensEndWhereTheNextBegins) {
  struct Case {
    std::string_view text;
    std::vector<TokenKind> kinds;
  };
  const Case cases[] = {
      {"a[1..2]", {kName, kLeftBracket, kInteger, kRange, kInteger, kRightBracket}},
      {"a.b", {kName, kDot, kName}},
      {"1d2", {kDuration, kInteger}},
      {"1WHERE", {kDuration, kName}},
      {"1e", {kInteger, kName}},
      {"-1", {kMinus, kInteger}},
      {"a-1", {kName, kMinus, kInteger}},
      {"c+=?", {kName, kPlusEqual, kQuestion}},
      {":a", {kColon, kName}},
      {"{a::b}", {kLeftBrace, kName, kColon, kColon, kName, kRightBrace}},
      {"list<set<int>>", {kName, kLess, kName, kLess, kName, kGreater, kGreater}},
      {"'a''b'\"c\"", {kString, kQuotedName}},
      {"a--b\nc", {kName, kName}},
      {"a//b\r\nc", {kName, kName}},
      {"a/*b\n*/c", {kName, kName}},
      {"a/b", {kName, kSlash, kName}},
      {"/**/ -- x", {}},
      {"", {}},
  };
  for (const Case& c : cases) {
    std::vector<TokenKind> kinds;
    for (const auto& token : Tokens(c.text)) {
      kinds.push_back(token.first);
    }
    EXPECT_EQ(kinds, c.kinds) << c.text;
  }
}

TEST(LexerTest, KeywordsAreKnownInAnyCase) {
  EXPECT_EQ(FindKeyword("select"), Keyword::kSelect);
  EXPECT_EQ(FindKeyword("SeLeCt"), Keyword::kSelect);
  EXPECT_EQ(FindKeyword("select_masked"), Keyword::kSelectMasked);
  EXPECT_EQ(FindKeyword("selec"), Keyword::kNone);
  EXPECT_EQ(FindKeyword("a_word_that_is_longer_than_any_of_them"), Keyword::kNone);
  EXPECT_TRUE(IsReserved(Keyword::kOrder));
  EXPECT_FALSE(IsReserved(Keyword::kKey));
  EXPECT_FALSE(IsReserved(Keyword::kNone));
}

TEST(LexerTest, ExpectedTokensHaveTheNamesThatClientsKnow) {
  EXPECT_EQ(KeywordName(Keyword::kFrom), "K_FROM");
  EXPECT_EQ(KeywordName(Keyword::kTable), "K_COLUMNFAMILY");
  EXPECT_EQ(TokenName(kRightParen), "')'");
  EXPECT_EQ(TokenName(kEnd), "EOF");
  EXPECT_EQ(TokenName(kString), "STRING_LITERAL");
}

}  // namespace
}  // namespace orrery::cql
