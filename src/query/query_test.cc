#include "query/query.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "query/error.h"
#include "query/functions.h"
#include "query/like.h"
#include "query/numbers.h"
#include "types/document.h"

namespace orrery::query {
namespace {

constexpr std::string_view kItem = R"({
  "id":"a1", "n":5, "zero":0, "neg":-3, "half":2.5, "big":9007199254740993, "s":"Hello", "empty":"",
  "uni":"h\u00e9llo \ud83d\ude00", "t":true, "f":false, "nul":null, "tags":["red","green",3],
  "o":{"x":1,"y":{"z":[10,20]}}, "rows":[{"k":1,"v":"a"},{"k":2,"v":"b"}], "pct":"20%",
  "sp":"  pad\t",
  "order":7, "offset":8, "resource":"dbs/abc/"})";

types::Document Json(std::string_view json) {
  Result<types::Document> document = types::Document::FromJson(json);
  EXPECT_TRUE(document.has_value()) << json;
  return document ? std::move(*document) : types::Document();
}

// What the condition says about kItem: "true", "false" (or undefined), or the error.
std::string Answer(std::string_view condition) {
  static const types::Document item = Json(kItem);
  Result<Query> query = Query::Parse("SELECT * FROM c WHERE " + std::string(condition));
  if (!query) {
    return query.error().ToString();
  }
  return query->Matches(item.root()).value_or(false) ? "true" : "false";
}

struct Row {
  const char* condition;
  bool expected;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Answer(row.condition), row.expected ? "true" : "false") << row.condition;
  }
}

TEST(QueryTest, LiteralsHaveTheirValues) {
  Check({
      {"true", true},
      {"false", false},
      {"TRUE", true},
      {"null = null", true},
      {"undefined", false},
      {"1", false},
      {"'true'", false},
      {"255 = 0xFF", true},
      {"0X10 = 16", true},
      {"0xFFFFFFFFFFFFFFFFFF > 1e21", true},
      {".5 = 0.50", true},
      {"1.5e1 = 15", true},
      {"2E-1 = 0.2", true},
      {"1. = 1", true},
      {"9223372036854775807 != 9223372036854775806", true},
      {"9223372036854775808 = 9.223372036854775808e18", true},
      {"-9223372036854775808 < -9223372036854775807", true},
      {"'a' = \"a\"", true},
      {R"('it\'s' = "it's")", true},
      {R"("say \"x\"" = 'say "x"')", true},
      {R"("\u0041\u00e9" = 'Aé')", true},
      {R"("\ud83d\ude00" = '😀')", true},
      {R"("\ud83d!" = "\ufffd!")", true},
      {R"("\ud83d\u0041" = "\ufffdA")", true},
      {R"(LENGTH("\b\f\n\r\t\/\\") = 7)", true},
      {"[1,'a',null] = [1,\"a\",null]", true},
      {"{a:1, 'b':[2]} = {\"b\":[2],\"a\":1}", true},
      {"{a:1, a:2} = {a:2}", true},
      {"[] = []", true},
      {"{} = {}", true},
  });
}

TEST(QueryTest, PathsReachIntoTheItem) {
  Check({
      {"c.n = 5", true},
      {"c['n'] = 5", true},
      {"c[\"o\"].y[\"z\"][1] = 20", true},
      {"c.o.y.z[0] = 10", true},
      {"c.tags[0] = 'red'", true},
      {"c.tags[1+1] = 3", true},
      {"c.tags[2.0] = 3", true},
      {"IS_DEFINED(c.tags[3])", false},
      {"IS_DEFINED(c.tags[-1])", false},
      {"IS_DEFINED(c.tags[0.5])", false},
      {"IS_DEFINED(c.tags['0'])", false},
      {"IS_DEFINED(c.o[0])", false},
      {"IS_DEFINED(c.s.x)", false},
      {"IS_DEFINED(c.missing.deeper.still)", false},
      {"c['order'] = 7", true},
      {"c.offset = 8", true},
      {"c.rows[c.o.x].v = 'b'", true},
      {"[7,8,9][1] = 8", true},
      {"{a:{b:3}}.a.b = 3", true},
      {"[c.n, c.missing, c.s] = [5, 'Hello']", true},
      {"{a: c.n, b: c.missing} = {a: 5}", true},
      {"c.N = 5", false},
      {"c.id = 'a1'", true},
  });
}

TEST(QueryTest, ValuesAreComparedByTypeAndValue) {
  Check({
      {"c.n = 5.0", true},
      {"c.n != 5", false},
      {"c.n <> 6", true},
      {"c.n < 6", true},
      {"c.n <= 5", true},
      {"c.n > 5", false},
      {"c.n >= 5", true},
      {"c.s < 'Hello!'", true},
      {"c.s > 'HELLO'", true},
      {"'é' > 'z'", true},
      {"c.f < c.t", true},
      {"c.nul <= null", true},
      {"c.nul < null", false},
      {"c.big = 9007199254740993", true},
      {"c.big = 9007199254740992", false},
      {"c.big > 9007199254740992.0", true},
      {"9007199254740992.0 < c.big", true},
      {"c.o = {y:{z:[10,20]}, x:1.0}", true},
      {"c.o != {x:2}", true},
      {"c.tags = ['red','green',3]", true},
      {"c.tags = ['green','red',3]", false},
      {"c.tags < ['z']", false},
      {"c.o >= c.o", false},
      {"1 < 2 = true", true},
  });
}

TEST(QueryTest, ValuesOfDifferentTypesAreUnequalAndHaveNoOrder) {
  Check({
      {"c.n = '5'", false},
      {"NOT (c.n = '5')", true},
      {"c.n != '5'", true},
      {"c.n < '6'", false},
      {"c.s != null", true},
      {"c.nul = false", false},
      {"c.missing = undefined", false},
      {"c.missing != 1", false},
      {"IS_DEFINED(1 = 'a')", true},
      {"IS_DEFINED(1 = 2)", true},
      {"c.n NOT IN ('a', 'b')", true},
  });
}

TEST(QueryTest, LogicHasThreeValues) {
  Check({
      {"c.t AND c.t", true},
      {"c.t and c.f", false},
      {"c.t OR c.missing", true},
      {"c.missing OR c.t", true},
      {"c.f OR c.missing", false},
      {"NOT (c.f AND c.missing)", true},
      {"NOT (c.missing AND c.f)", true},
      {"NOT (c.t AND c.missing)", false},
      {"NOT (c.f OR c.missing)", false},
      {"NOT c.missing", false},
      {"NOT c.n", false},
      {"NOT c.f", true},
      {"NOT NOT c.t", true},
      {"c.t AND c.n", false},
      {"c.n OR c.t", true},
      {"c.f AND c.f OR c.t", true},
      {"c.t OR c.t AND c.f", true},
      {"(c.t OR c.t) AND c.f", false},
      {"NOT c.f AND c.t", true},
      {"NOT c.t OR c.t", true},
      {"NOT c.n = 6", true},
      {"NOT c.n IN (6, 7)", true},
      {"c.t = NOT c.f", true},
  });
}

TEST(QueryTest, OperatorsBindInOrder) {
  Check({
      {"1 + 2 * 3 = 7", true},
      {"(1 + 2) * 3 = 9", true},
      {"10 - 4 - 3 = 3", true},
      {"100 / 10 / 5 = 2", true},
      {"7 % 4 = 3", true},
      {"-7 % 4 = -3", true},
      {"-c.neg = 3", true},
      {"+c.n = 5", true},
      {"- - c.n = 5", true},
      {"2 * -3 = -6", true},
      {"2 * -c.n = -10", true},
      {"c.n + ~c.n = -1", true},
      {"c.n & 4 = 4", true},
      {"(5 | 2) = 7", true},
      {"(5 ^ 1) = 4", true},
      {"~5 = -6", true},
      {"1 << 4 = 16", true},
      {"-16 >> 2 = -4", true},
      {"-1 >>> 0 = 4294967295", true},
      {"1 << 33 = 2", true},
      {"(1 | 2 ^ 3 & 1) = 3", true},
      {"4294967297 | 0 = 1", true},
      {"2147483648 | 0 = -2147483648", true},
      {"1 + 1 << 2 = 8", true},
      {"'a' || 'b' || c.s = 'abHello'", true},
      {"IS_DEFINED('a' || 1)", false},
      {"IS_DEFINED(1 + '1')", false},
      {"IS_DEFINED(1 / 0)", false},
      {"IS_DEFINED(1 % 0)", false},
      {"IS_DEFINED(1e308 * 10)", false},
      {"IS_DEFINED(-c.s)", false},
      {"0.1 + 0.2 != 0.3", true},
      {"c.missing ?? c.n = 5", true},
      {"(c.missing ?? c.n) = 5", true},
      {"(c.nul ?? 1) = null", true},
      {"(c.missing ?? c.gone ?? 3) = 3", true},
      {"c.t ? c.n = 5 : false", true},
      {"(c.f ? 1 : c.t ? 2 : 3) = 2", true},
      {"(c.missing ? 1 : 2) = 2", true},
      {"(c.n ? 1 : 2) = 2", true},
      {"c.missing ?? true ? true : false", true},
  });
}

TEST(QueryTest, PredicatesTestSetsRangesAndPatterns) {
  Check({
      {"c.n IN (1, 5)", true},
      {"c.n IN (1, 6)", false},
      {"c.n NOT IN (1, 6)", true},
      {"c.n IN ('5', 5)", true},
      {"c.s IN ('x', c.s)", true},
      {"c.missing IN (1)", false},
      {"c.missing NOT IN (1)", false},
      {"c.tags IN (['red','green',3])", true},
      {"c.n BETWEEN 1 AND 5", true},
      {"c.n BETWEEN 6 AND 9", false},
      {"c.n NOT BETWEEN 6 AND 9", true},
      {"c.n BETWEEN 1 AND 3 + 2 AND c.t", true},
      {"c.s BETWEEN 'A' AND 'Z'", true},
      {"c.s BETWEEN 1 AND 9", false},
      {"c.s LIKE 'H%'", true},
      {"c.s like '%LLO'", false},
      {"c.s LIKE '%llo'", true},
      {"c.s LIKE '%ell%'", true},
      {"c.s LIKE 'H_llo'", true},
      {"c.s LIKE 'H_lo'", false},
      {"c.s NOT LIKE 'x%'", true},
      {"c.s LIKE '[A-K]%'", true},
      {"c.s LIKE '[^A-K]%'", false},
      {"c.s LIKE '%l[a-z][^a-n]'", true},
      {"c.pct LIKE '20[%]'", true},
      {"c.pct LIKE '%!%' ESCAPE '!'", true},
      {"c.s LIKE '%!%' ESCAPE '!'", false},
      {"c.uni LIKE 'h_llo _'", true},
      {"c.n LIKE '5'", false},
      {"c.n NOT LIKE '5'", false},
      {"c.s LIKE 'H' || '%'", true},
      {"(c.s LIKE 'H%') = true AND c.n IN (5)", true},
  });
}

TEST(QueryTest, FunctionsOfTypes) {
  Check({
      {"IS_DEFINED(c.nul)", true},
      {"NOT IS_DEFINED(c.missing)", true},
      {"IS_NULL(c.nul)", true},
      {"IS_NULL(c.missing)", false},
      {"NOT IS_NULL(c.missing)", true},
      {"IS_NUMBER(c.half)", true},
      {"IS_STRING(c.s)", true},
      {"IS_STRING(c.n)", false},
      {"IS_BOOL(c.f)", true},
      {"IS_ARRAY(c.tags)", true},
      {"IS_ARRAY(c.o)", false},
      {"IS_OBJECT(c.o)", true},
      {"IS_OBJECT(c)", true},
      {"IS_PRIMITIVE(c.nul)", true},
      {"IS_PRIMITIVE(c.tags)", false},
      {"IS_INTEGER(c.n)", true},
      {"IS_INTEGER(c.half)", false},
      {"IS_INTEGER(c.half * 2)", true},
      {"is_finite_number(c.half)", true},
      {"Is_Defined(c.n)", true},
  });
}

TEST(QueryTest, FunctionsOfStrings) {
  Check({
      {"STARTSWITH(c.s, 'He')", true},
      {"STARTSWITH(c.s, 'he')", false},
      {"StartsWith(c.s, 'he', true)", true},
      {"STARTSWITH(c.n, '5')", false},
      {"IS_DEFINED(STARTSWITH(c.s, 'he', 1))", false},
      {"ENDSWITH(c.s, 'LLO', true)", true},
      {"ENDSWITH(c.s, 'LLO', false)", false},
      {"CONTAINS(c.s, 'ell')", true},
      {"CONTAINS(c.s, '')", true},
      {"CONTAINS(c.uni, 'ÉL', true)", true},
      {"NOT CONTAINS(c.missing, 'x')", false},
      {"STRINGEQUALS(c.s, 'HELLO', true)", true},
      {"STRINGEQUALS(c.s, 'HELLO')", false},
      {"LENGTH(c.uni) = 7", true},
      {"LENGTH(c.empty) = 0", true},
      {"LOWER(c.s) = 'hello'", true},
      {"UPPER('éß1') = 'Éß1'", true},
      {"CONCAT(c.s, '-', c.id) = 'Hello-a1'", true},
      {"IS_DEFINED(CONCAT(c.s, c.n))", false},
      {"SUBSTRING(c.s, 1, 3) = 'ell'", true},
      {"SUBSTRING(c.uni, 5, 9) = ' 😀'", true},
      {"SUBSTRING(c.s, 0, -1) = ''", true},
      {"SUBSTRING(c.s, 9, 1) = ''", true},
      {"IS_DEFINED(SUBSTRING(c.s, 0.5, 1))", false},
      {"LEFT(c.s, 2) = 'He'", true},
      {"LEFT(c.s, 99) = 'Hello'", true},
      {"RIGHT(c.s, 2) = 'lo'", true},
      {"RIGHT(c.s, 99) = 'Hello'", true},
      {"RIGHT(c.s, -9223372036854775808) = ''", true},
      {"TRIM(c.sp) = 'pad'", true},
      {"LTRIM(c.sp) = 'pad\\t'", true},
      {"RTRIM(c.sp) = '  pad'", true},
      {"TRIM('xxayx', 'xy') = 'a'", true},
      {"TRIM('   ') = ''", true},
      {"INDEX_OF(c.s, 'l') = 2", true},
      {"INDEX_OF(c.s, 'l', 3) = 3", true},
      {"INDEX_OF(c.s, 'x') = -1", true},
      {"INDEX_OF(c.uni, '😀') = 6", true},
      {"REPLACE(c.s, 'l', 'LL') = 'HeLLLLo'", true},
      {"IS_DEFINED(REPLACE(c.s, '', 'x'))", false},
      {"TOSTRING(c.n) = '5'", true},
      {"TOSTRING(c.half) = '2.5'", true},
      {"TOSTRING(c.o) = '{\"x\":1,\"y\":{\"z\":[10,20]}}'", true},
      {"TOSTRING(c.s) = 'Hello'", true},
      {"ToString(null) = 'null'", true},
  });
}

TEST(QueryTest, FunctionsOfNumbersAndArrays) {
  Check({
      {"ABS(c.neg) = 3", true},
      {"CEILING(c.half) = 3", true},
      {"FLOOR(-c.half) = -3", true},
      {"ROUND(c.half) = 3", true},
      {"ROUND(-2.5) = -3", true},
      {"ROUND(2.345, 1) = 2.3", true},
      {"SQRT(16) = 4", true},
      {"IS_DEFINED(SQRT(-1))", false},
      {"POWER(2, 10) = 1024", true},
      {"SIGN(c.neg) = -1", true},
      {"SIGN(c.zero) = 0", true},
      {"TRUNC(-2.7) = -2", true},
      {"SQUARE(c.n) = 25", true},
      {"PI() > 3.14159 AND PI() < 3.1416", true},
      {"LOG(8, 2) = 3", true},
      {"IS_DEFINED(ABS(c.s))", false},
      {"ARRAY_LENGTH(c.tags) = 3", true},
      {"IS_DEFINED(ARRAY_LENGTH(c.s))", false},
      {"ARRAY_CONTAINS(c.tags, 'red')", true},
      {"ARRAY_CONTAINS(c.tags, 3.0)", true},
      {"ARRAY_CONTAINS(c.tags, '3')", false},
      {"NOT ARRAY_CONTAINS(c.tags, 'blue')", true},
      {"ARRAY_CONTAINS(c.rows, {k:2})", false},
      {"ARRAY_CONTAINS(c.rows, {k:2}, true)", true},
      {"ARRAY_CONTAINS(c.rows, {k:2, v:'a'}, true)", false},
      {"ARRAY_CONTAINS([1,2,5], c.n)", true},
      {"IS_DEFINED(ARRAY_CONTAINS(c.s, 'H'))", false},
      {"IIF(c.t, 1, 2) = 1", true},
      {"IIF(c.missing, 1, 2) = 2", true},
      {"IIF(c.s, 1, c.n) = 5", true},
  });
}

TEST(QueryTest, TheFormsOfAStatementAreRead) {
  types::Document item = Json(R"({"id":"a","resource":"dbs/abc/"})");
  struct {
    const char* text;
    bool expected;
  } const rows[] = {
      {"SELECT * from c", true},
      {"select * FROM root", true},
      {"SELECT * FROM root r WHERE r.id = 'a'", true},
      {"SELECT * FROM c AS x WHERE x.id = 'b'", false},
      {"SELECT * from root where root.resource = \"dbs/abc/\"", true},
      {" SELECT\t*\r\nFROM c -- all of them\nWHERE c.id = 'a' -- but one", true},
      {"SELECT * FROM first WHERE first.id = 'a'", true},
  };
  for (const auto& row : rows) {
    Result<Query> query = Query::Parse(row.text);
    ASSERT_TRUE(query.has_value()) << row.text << ": " << query.error().ToString();
    EXPECT_EQ(query->Matches(item.root()).value_or(!row.expected), row.expected) << row.text;
  }
}

TEST(QueryTest, AConditionHasNoSelect) {
  types::Document item = Json(R"({"a":1})");
  Result<Query> query = Query::ParseCondition("from c where c.a = 1");
  ASSERT_TRUE(query.has_value()) << query.error().ToString();
  EXPECT_TRUE(query->Matches(item.root()).value_or(false));
  EXPECT_TRUE(query->has_filter());
  EXPECT_FALSE(Query::ParseCondition("from c")->has_filter());
  EXPECT_FALSE(Query::ParseCondition("select * from c").has_value());
  EXPECT_FALSE(Query::ParseCondition("from c order by c.a").has_value());
  EXPECT_FALSE(Query::Parse("from c where c.a = 1").has_value());
}

TEST(QueryTest, ParametersAreBoundByName) {
  types::Document item = Json(R"({"a":1,"list":[1,2]})");
  Result<types::Document> parameters = types::ParseJsonValue(
      R"([{"name":"@a","value":1},{"name":"@list","value":[5,1]},{"name":"@o","value":{"k":"a"}},
          {"name":"@extra","value":0}])");
  ASSERT_TRUE(parameters.has_value());
  auto answer = [&](std::string_view condition) {
    Result<Query> query =
        Query::Parse("SELECT * FROM c WHERE " + std::string(condition), parameters->Get("v"));
    return query.has_value() && query->Matches(item.root()).value_or(false);
  };
  EXPECT_TRUE(answer("c.a = @a"));
  EXPECT_TRUE(answer("ARRAY_CONTAINS(@list, c.a)"));
  EXPECT_TRUE(answer("@list[1] = c.a"));
  EXPECT_TRUE(answer("c[@o.k] = 1"));
  EXPECT_FALSE(answer("c.a = @unknown"));
  EXPECT_FALSE(answer("c.a = @A"));
  EXPECT_TRUE(answer("NOT IS_DEFINED(@unknown)"));
}

TEST(QueryTest, ParametersOutliveTheRequest) {
  types::Document item = Json(R"({"a":"a text that is too long to be kept in place"})");
  Result<Query> query = [] {
    Result<types::Document> parameters = types::ParseJsonValue(
        R"([{"name":"@a","value":"a text that is too long to be kept in place"}])");
    return Query::Parse("SELECT * FROM c WHERE c.a = @a", parameters->Get("v"));
  }();
  ASSERT_TRUE(query.has_value());
  Query moved = std::move(*query);
  EXPECT_TRUE(moved.Matches(item.root()).value_or(false));
}

TEST(QueryTest, BadParametersAreRefused) {
  for (const char* json : {R"([{"name":"a","value":1}])", R"([{"name":"@a"},{"name":"@a"}])",
                           R"([1])", R"([{"value":1}])", R"({"name":"@a"})", "null"}) {
    Result<types::Document> parameters = types::ParseJsonValue(json);
    ASSERT_TRUE(parameters.has_value());
    Result<Query> query = Query::Parse("SELECT * FROM c", parameters->Get("v"));
    ASSERT_FALSE(query.has_value()) << json;
    EXPECT_EQ(query.error().code(), Code::kInvalidArgument);
  }
}

TEST(QueryTest, ASyntaxErrorSaysWhereAndNearWhat) {
  Result<Query> query = Query::Parse("SELECT * FRO c");
  ASSERT_FALSE(query.has_value());
  EXPECT_EQ(query.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(query.error().message(),
            R"({"errors":[{"severity":"Error","location":{"start":9,"end":12},"code":"SC1001",)"
            R"("message":"Syntax error, incorrect syntax near 'FRO'."}]})");
}

TEST(QueryTest, LocationsCountUtf16Units) {
  Result<Query> query = Query::Parse("SELECT * FROM c WHERE '😀é' = = 1");
  ASSERT_FALSE(query.has_value());
  EXPECT_NE(query.error().message().find(R"("start":30,"end":31)"), std::string::npos)
      << query.error().message();
}

TEST(QueryTest, TextThatIsNotTheLanguageIsRefused) {
  struct {
    const char* text;
    const char* found;
  } const rows[] = {
      {"", "SC1002"},
      {"   -- nothing", "SC1002"},
      {"SELECT * FROM", "SC1002"},
      {"SELECT * FROM c WHERE", "SC1002"},
      {"SELECT * FROM c WHERE (c.a = 1", "SC1002"},
      {"SELECT * FROM c;", "SC1010"},
      {"SELECT * /* all */ FROM c", "SC1010"},
      {"SELECT * FROM c WHERE c.a = 'x", "SC1010"},
      {R"(SELECT * FROM c WHERE c.a = '\q')", "SC1010"},
      {R"(SELECT * FROM c WHERE c.a = '\u12')", "SC1010"},
      {R"(SELECT * FROM c WHERE c.a = '\ud83d\u')", "SC1010"},
      {"SELECT * FROM c WHERE c.a = '\\", "SC1010"},
      {"SELECT * FROM c WHERE c.a = 1e999", "SC1010"},
      {"SELECT * FROM c WHERE c.a = 0x", "SC1010"},
      {"SELECT * FROM c WHERE @ = 1", "SC1010"},
      {"SELECT * FROM c WHERE !c.a", "SC1010"},
      {"SELECT * FROM c WHERE c.é = 1", "SC1010"},
      {"SELECT * FROM c WHERE c.order = 1", "near 'order'"},
      {"SELECT * FROM c WHERE c.a == 1", "near '='"},
      {"SELECT * FROM c WHERE c.a = 1 c.b = 2", "near 'c'"},
      {"SELECT * FROM c WHERE c.a IN ()", "near ')'"},
      {"SELECT * FROM c WHERE c.a IN (1) IN (2)", "near 'IN'"},
      {"SELECT * FROM c WHERE NOT c.a IN (1) IN (2)", "near 'IN'"},
      {"SELECT * FROM c WHERE c.a BETWEEN 1", "SC1002"},
      {"SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE 'yz'", "near ''yz''"},
      {"SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE 1", "near '1'"},
      {"SELECT * FROM c WHERE c.a ? 1", "SC1002"},
      {"SELECT * FROM c WHERE {1:2}", "near '1'"},
      {"SELECT * FROM c WHERE {'\\u0000':2}", "SC1001"},
      {"SELECT * FROM c WHERE [1,]", "near ']'"},
      {"SELECT * FROM c AS WHERE", "near 'WHERE'"},
      {"SELECT FROM c", "near 'FROM'"},
      {"SELECT * FROM c ORDER c.a", "near 'c'"},
      {"SELECT c.a FROM c WHERE", "SC1002"},
      {"SELECT TOP x * FROM c", "near 'x'"},
      {"SELECT * FROM c OFFSET 1", "SC1002"},
      {"INSERT INTO c", "near 'INSERT'"},
      {"UPDATE c", "near 'UPDATE'"},
      {"SELECT *", "SC2040"},
      {"SELECT * FROM c WHERE d.a = 1", "'d' could not be resolved"},
      {"SELECT * FROM c AS x WHERE c.a = 1", "'c' could not be resolved"},
      {"SELECT * FROM c WHERE FOO(c.a)", "'FOO' is not a recognized"},
      {"SELECT * FROM c WHERE ABS()", "SC2050"},
      {"SELECT * FROM c WHERE IS_DEFINED(c.a, c.b)", "SC2050"},
      {"SELECT * FROM c WHERE '\xff' = 1", "not UTF-8"},
  };
  for (const auto& row : rows) {
    Result<Query> query = Query::Parse(row.text);
    ASSERT_FALSE(query.has_value()) << row.text;
    EXPECT_EQ(query.error().code(), Code::kInvalidArgument) << row.text;
    EXPECT_NE(query.error().message().find(row.found), std::string::npos)
        << row.text << ": " << query.error().message();
  }
}

TEST(QueryTest, TheRestOfTheLanguageIsNotSupported) {
  struct {
    const char* text;
    const char* found;
  } const rows[] = {
      {"SELECT c.a, c.b AS x FROM c", "A SELECT list"},
      {"SELECT c.a x FROM c WHERE c.a = 1", "A SELECT list"},
      {"SELECT 1", "A SELECT list"},
      {"SELECT VALUE c.a FROM c", "SELECT VALUE"},
      {"SELECT DISTINCT * FROM c", "DISTINCT"},
      {"SELECT TOP 10 * FROM c", "TOP"},
      {"SELECT TOP @n * FROM c", "TOP"},
      {"SELECT * FROM c JOIN t IN c.tags WHERE t = 1", "JOIN"},
      {"SELECT * FROM c JOIN (SELECT VALUE t FROM t IN c.tags) AS s", "JOIN"},
      {"SELECT * FROM t IN c.tags", "IN in FROM"},
      {"SELECT * FROM c.tags[0]['x']", "A path in FROM"},
      {"SELECT * FROM (SELECT * FROM c) AS s", "A subquery"},
      {"SELECT * FROM c GROUP BY c.a, c.b", "GROUP BY"},
      {"SELECT * FROM c WHERE c.a > 1 ORDER BY c.a DESC, c.b", "ORDER BY"},
      {"SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'x')", "ORDER BY"},
      {"SELECT * FROM c OFFSET 10 LIMIT @n", "OFFSET LIMIT"},
      {"SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags)", "A subquery"},
      {"SELECT * FROM c WHERE (SELECT VALUE 1) = 1", "A subquery"},
      {"SELECT * FROM c WHERE ARRAY(SELECT * FROM c)[0] = 1", "A subquery"},
      {"SELECT * FROM c WHERE udf.f(c.a, 1)", "user-defined function"},
      {"SELECT * FROM c WHERE udf.f()", "user-defined function"},
      {"SELECT * FROM c WHERE RegexMatch(c.a, 'x')", "REGEXMATCH"},
      {"SELECT * FROM c WHERE ST_DISTANCE(c.a, c.b) < 1", "ST_DISTANCE"},
      {"SELECT VALUE COUNT(1) FROM c", "SELECT VALUE"},
  };
  for (const auto& row : rows) {
    Result<Query> query = Query::Parse(row.text);
    ASSERT_FALSE(query.has_value()) << row.text;
    EXPECT_EQ(query.error().code(), Code::kNotSupported) << row.text << query.error().ToString();
    EXPECT_NE(query.error().message().find(row.found), std::string::npos)
        << row.text << ": " << query.error().message();
  }
}

std::string Repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

TEST(QueryTest, NestingIsBounded) {
  EXPECT_EQ(Answer(Repeat("(", 100) + "c.t" + Repeat(")", 100)), "true");
  EXPECT_EQ(Answer("c.n = " + Repeat("(1*(1+", 60) + "0" + Repeat("))", 60)), "false");
  for (const std::string& deep :
       {Repeat("(", 200'000), Repeat("[", 200'000), Repeat("{a:", 100'000), Repeat("- ", 200'000),
        Repeat("NOT ", 100'000), Repeat("c.t?", 100'000), Repeat("ABS(", 100'000),
        Repeat("c[", 200'000), Repeat("(SELECT ", 50'000), "c.t ?" + Repeat("1:c.t?", 80'000)}) {
    EXPECT_NE(Answer(deep).find("nested too deep"), std::string::npos) << deep.substr(0, 20);
  }
}

TEST(QueryTest, LongChainsAreNotDeep) {
  EXPECT_EQ(Answer("c.t" + Repeat(" AND c.t", 50'000)), "true");
  EXPECT_EQ(Answer("c.f" + Repeat(" OR c.f", 50'000)), "false");
  EXPECT_EQ(Answer("0" + Repeat(" + c.n", 10'000) + " = 50000"), "true");
  EXPECT_EQ(Answer("c" + Repeat(".a", 200'000)), "false");
  EXPECT_EQ(Answer("c.n IN (1" + Repeat(",1", 200'000) + ",5)"), "true");
  EXPECT_EQ(Answer("c.n" + Repeat(" = c.n < 1", 10'000)), "true");
}

TEST(QueryTest, AConditionThatTakesTooMuchWorkIsRefusedAndNotAnswered) {
  types::Document item =
      *types::Document::FromJson("{\"s\":\"" + std::string(1 << 20, 'a') + "\"}");
  std::string hard = "c.s LIKE '%" + std::string(58, 'a') + "_b%'";
  auto query = Query::Parse("SELECT * FROM c WHERE " + hard + Repeat(" OR " + hard, 20));
  ASSERT_TRUE(query);
  Result<bool> matches = query->Matches(item.root());
  ASSERT_FALSE(matches);
  EXPECT_EQ(matches.error().code(), Code::kInvalidArgument);
}

TEST(QueryTest, LongTextIsRefused) {
  std::string text = "SELECT * FROM c --" + std::string(kTextBytesMax, ' ');
  Result<Query> query = Query::Parse(text);
  ASSERT_FALSE(query.has_value());
  EXPECT_EQ(query.error().code(), Code::kInvalidArgument);
}

TEST(QueryTest, ValuesThatMultiplyEndAtALimit) {
  std::string big = "c.s";
  for (int i = 0; i < 60; ++i) {
    big = "REPLACE(" + big + ", 'l', '" + std::string(1000, 'l') + "')";
  }
  EXPECT_EQ(Answer("IS_DEFINED(" + big + ")"), "false");
  EXPECT_EQ(Answer("IS_DEFINED([" + std::string(20, '[') + "c" + std::string(20, ']') + "])"),
            "true");
}

TEST(QueryTest, ThePlanHasEveryKey) {
  Result<Query> query = Query::Parse("SELECT * FROM c");
  ASSERT_TRUE(query.has_value());
  EXPECT_EQ(
      QueryPlanJson(*query, "", "FF"),
      R"({"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None",)"
      R"("top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],)"
      R"("groupByExpressions":[],"groupByAliases":[],"aggregates":[],)"
      R"("groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":false,)"
      R"("dCountInfo":null,"hasNonStreamingOrderBy":false},)"
      R"("queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]})");
  EXPECT_NE(QueryPlanJson(*query, "05C1", "05C1").find(R"("isMaxInclusive":true)"),
            std::string::npos);
}

TEST(LikeTest, PatternsMatchWholeText) {
  struct {
    const char* text;
    const char* pattern;
    bool expected;
  } const rows[] = {
      {"", "", true},
      {"", "%", true},
      {"", "_", false},
      {"a", "", false},
      {"abc", "a%c", true},
      {"abcbc", "a%bc", true},
      {"abcb", "a%bc", false},
      {"ab", "ab%b", false},
      {"aXbXc", "%X%X%", true},
      {"aXb", "%X%X%", false},
      {"abc", "%%%", true},
      {"abc", "%_%_%_%", true},
      {"ab", "%_%_%_%", false},
      {"mississippi", "m%iss%pi", true},
      {"mississippi", "%i_s%p_", true},
      {"a[b", "a[b", true},
      {"a[b", "a[[]b", true},
      {"a]b", "a]b", true},
      {"a-b", "a[a-]b", true},
      {"a", "[]", false},
      {"a", "[^]", true},
      {"é", "[à-ï]", true},
      {"%_", "[%][_]", true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(LikeMatches(row.text, row.pattern), row.expected) << row.text << " " << row.pattern;
  }
  EXPECT_TRUE(LikeMatches("a%b", "a!%b", '!'));
  EXPECT_TRUE(LikeMatches("xx_y!z", "%!_y!!%", '!'));
  EXPECT_FALSE(LikeMatches("xxay", "%!_y", '!'));
  EXPECT_TRUE(LikeMatches("[a]", "![a]", '!'));
  EXPECT_TRUE(LikeMatches("a!", "a!", '!'));
}

TEST(LikeTest, LongTextsTakeLinearTime) {
  std::string text(2'000'000, 'a');
  EXPECT_FALSE(LikeMatches(text, "%" + std::string(500'000, 'a') + "b%"));
  EXPECT_FALSE(LikeMatches(text, Repeat("%a", 100'000) + "%b"));
  EXPECT_FALSE(LikeMatches(text, Repeat("[", 500'000)));
  EXPECT_FALSE(LikeMatches(text, "%_" + std::string(500'000, 'a') + "b%"));
}

TEST(FunctionsTest, NamesAreFoundInAnyCase) {
  ASSERT_NE(FindFunction("array_Contains"), nullptr);
  EXPECT_EQ(FindFunction("array_Contains")->name, "ARRAY_CONTAINS");
  EXPECT_EQ(FindFunction("NOSUCH"), nullptr);
  ASSERT_NE(FindFunction("VectorDistance"), nullptr);
  EXPECT_EQ(FindFunction("VectorDistance")->call, nullptr);
}

TEST(NumbersTest, IntegersAndDoublesHaveOneOrder) {
  using types::Value;
  EXPECT_TRUE(CompareNumbers(Value::Integer(INT64_MAX), Value::Double(0x1p63)) < 0);
  EXPECT_TRUE(CompareNumbers(Value::Double(-0x1p63), Value::Integer(INT64_MIN)) == 0);
  EXPECT_TRUE(CompareNumbers(Value::Double(2.5), Value::Integer(2)) > 0);
  EXPECT_TRUE(CompareNumbers(Value::Integer(-2), Value::Double(-2.5)) > 0);
  EXPECT_TRUE(CompareNumbers(Value::Integer(1), Value::Double(1e300)) < 0);
}

}  // namespace
}  // namespace orrery::query
