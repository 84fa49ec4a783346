#include "cql/functions.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cql/compile.h"
#include "cql/node.h"
#include "cql/parse.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

const TypeScope kScope{"ks", [](std::string_view) { return std::optional<DataType>(); }};

// The value and its type, as if it stood in a selection; or what is wrong.
std::string Outcome(std::string_view text) {
  auto expression = ParseTerm(text);
  if (!expression) {
    return expression.error().message();
  }
  MarkerSpecs markers;
  Compiler compiler(kScope, nullptr, markers);
  auto node = compiler.CompileAny(*expression, {"ks", "t", "c", TypeId::kBlob});
  if (!node) {
    EXPECT_EQ(node.error().code(), Code::kInvalidArgument) << text;
    return node.error().message();
  }
  SeededRandom random(7);
  FunctionContext context{.now_micros = 1'700'000'000'123'456, .random = &random};
  auto value = (*node)->Evaluate({.markers = {}, .context = context});
  if (!value) {
    return value.error().message();
  }
  std::string type = (*node)->type().ToCql() + " ";
  if (!value->has_value()) {
    return type + "null";
  }
  EXPECT_TRUE(ValidateValue((*node)->type(), value->bytes()).ok()) << text;
  return type + ValueToText((*node)->type(), value->bytes());
}

struct Row {
  std::string text;
  std::string result;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Outcome(row.text), row.result) << row.text;
  }
}

TEST(OperationTest, TheWiderTypeWins) {
  struct TypeRow {
    TypeId left;
    TypeId right;
    TypeId result;
  };
  using enum TypeId;
  const TypeRow rows[] = {{kTinyint, kTinyint, kTinyint}, {kTinyint, kSmallint, kSmallint},
                          {kInt, kTinyint, kInt},         {kInt, kBigint, kBigint},
                          {kCounter, kInt, kBigint},      {kBigint, kVarint, kVarint},
                          {kFloat, kInt, kFloat},         {kFloat, kBigint, kDouble},
                          {kDouble, kInt, kDouble},       {kFloat, kDouble, kDouble},
                          {kFloat, kVarint, kDecimal},    {kDouble, kVarint, kDecimal},
                          {kDecimal, kInt, kDecimal},     {kTimestamp, kDuration, kTimestamp},
                          {kDate, kDuration, kDate}};
  for (const TypeRow& row : rows) {
    FunctionPtr function = FindOperation('+', row.left, row.right);
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(function->result.id(), row.result) << DataType(row.left).ToCql();
  }
  EXPECT_EQ(FindOperation('+', kText, kText), nullptr);
  EXPECT_EQ(FindOperation('*', kTimestamp, kDuration), nullptr);
  EXPECT_EQ(FindOperation('+', kDuration, kTimestamp), nullptr);
}

TEST(OperationTest, NumbersAreComputed) {
  Check({{"1 + 2 * 3", "int 7"},
         {"(1 + 2) * 3", "int 9"},
         {"10 - 2 - 3", "int 5"},
         {"7 / 2", "int 3"},
         {"-7 / 2", "int -3"},
         {"-7 % 3", "int -1"},
         {"7.0 / 2", "double 3.5"},
         {"7.5 % 2", "double 1.5"},
         {"2147483647 + 1", "int -2147483648"},
         {"(tinyint) 127 + (tinyint) 1", "tinyint -128"},
         {"9223372036854775807 + 1", "bigint -9223372036854775808"},
         {"(int) -2147483648 / -1", "int -2147483648"},
         {"99999999999999999999 * 99999999999999999999",
          "varint 9999999999999999999800000000000000000001"},
         {"(varint) 100000000000000000000000 / 7", "varint 14285714285714285714285"},
         {"(varint) -100000000000000000000000 % 7", "varint -5"},
         {"(decimal) 1.10 + (decimal) 2.005", "decimal 3.105"},
         {"(decimal) 1.5 * (decimal) 1.50", "decimal 2.250"},
         {"(decimal) 1 / (decimal) 3", "decimal 0.33333333333333333333333333333333"},
         {"(decimal) 10 / (decimal) 4", "decimal 2.5"},
         {"(decimal) 5.5 % (decimal) 2", "decimal 1.5"},
         {"(float) 1.5 + 1", "float 2.5"},
         {"1.0 / 0", "double Infinity"},
         {"-(1 + 2)", "int -3"},
         {"-(int) 5", "int -5"}});
}

TEST(OperationTest, WhatCannotBeComputedFails) {
  Check(
      {{"1 / 0", "the operation 'int / int' failed: / by zero"},
       {"1 % 0", "the operation 'int % int' failed: / by zero"},
       {"(varint) 1 / (varint) 0",
        "the operation 'varint / varint' failed: BigInteger divide by "
        "zero"},
       {"(decimal) 1 / (decimal) 0", "the operation 'decimal / decimal' failed: Division by zero"},
       {"1 + 'a'", "the '+' operation is not supported between 1 and 'a'"},
       {"(int) 1 + 2 + 'a'", "the '+' operation is not supported between (int)1 + 2 and 'a'"}});
}

TEST(OperationTest, TimesMoveByDurations) {
  Check({{"(timestamp) '2024-01-31' + 1mo", "timestamp 2024-02-29T00:00:00.000Z"},
         {"(timestamp) '2024-03-31 10:00' - 1mo2h", "timestamp 2024-02-29T08:00:00.000Z"},
         {"(timestamp) -9223372036854775808 - 1d",
          "the operation 'timestamp - duration' failed: the result is out of range"},
         {"(timestamp) -1 + 1ms", "timestamp 1970-01-01T00:00:00.000Z"},
         {"(date) '2024-01-31' + 1d", "date 2024-02-01"},
         {"(date) '2024-03-31' - 1y1mo", "date 2023-02-28"},
         {"(date) '2024-03-31' + 48h", "date 2024-04-02"},
         {"(date) '2024-03-31' + 1h",
          "the operation 'date + duration' failed: The duration must have a day precision. Was: "
          "1h"}});
}

TEST(FunctionsTest, TheCurrentTime) {
  Check({{"currentTimestamp()", "timestamp 2023-11-14T22:13:20.123Z"},
         {"current_timestamp()", "timestamp 2023-11-14T22:13:20.123Z"},
         {"currentDate()", "date 2023-11-14"},
         {"current_time()", "time 22:13:20.123456000"},
         {"toTimestamp(currentTimeUUID())", "timestamp 2023-11-14T22:13:20.123Z"},
         {"dateOf(now())", "timestamp 2023-11-14T22:13:20.123Z"},
         {"unixTimestampOf(now())", "bigint 1700000000123"},
         {"to_unix_timestamp(current_date())", "bigint 1699920000000"},
         {"toDate((timestamp) -1)", "date 1969-12-31"},
         {"maxTimeuuid((timestamp) 9223372036854775807)",
          "timeuuid 13813fff-1dd2-11b2-7f7f-7f7f7f7f7f7f"}});
}

TEST(FunctionsTest, EveryTypeIsABlobAndBack) {
  Check({{"bigintAsBlob(1)", "blob 0x0000000000000001"},
         {"blobAsText(textAsBlob('a'))", "text a"},
         {"blob_as_varchar(varchar_as_blob('a'))", "text a"},
         {"blobAsBoolean(0x01)", "boolean true"},
         {"blobAsInt(0x01)",
          "In call to function system.blobasint, value 0x01 is not a valid binary representation "
          "for type int"}});
}

TEST(FunctionsTest, Casts) {
  Check({{"cast(1.9 AS int)", "int 1"},
         {"cast(-1.9 AS int)", "int -1"},
         {"cast(1e30 AS int)", "int 2147483647"},
         {"cast(NaN AS bigint)", "bigint 0"},
         {"cast(300 AS tinyint)", "tinyint 44"},
         {"cast(1 AS double)", "double 1.0"},
         {"cast(1 AS decimal)", "decimal 1"},
         {"cast(1.5 AS decimal)", "decimal 1.5"},
         {"cast((float) 1.1 AS decimal)", "decimal 1.1"},
         {"cast((decimal) 1.9 AS varint)", "varint 1"},
         {"cast((varint) 18446744073709551617 AS bigint)", "bigint 1"},
         {"cast(1 AS text)", "text 1"},
         {"cast(true AS text)", "text true"},
         {"cast(1 AS boolean)", "int cannot be cast to boolean"},
         {"cast(1 AS date)",
          "Invalid call to function system.cast_as_date, none of its type signatures match (known "
          "type signatures: system.cast_as_date : (timeuuid) -> date, system.cast_as_date : "
          "(timestamp) -> date)"},
         {"cast((date) '2024-01-02' AS timestamp)", "timestamp 2024-01-02T00:00:00.000Z"},
         {"cast((timestamp) '2024-01-02 10:00' AS date)", "date 2024-01-02"},
         {"cast((timestamp) '2024-01-02' AS text)", "text 2024-01-02T00:00:00.000Z"}});
}

TEST(FunctionsTest, Mathematics) {
  Check({{"abs(-5)", "int 5"},
         {"abs((decimal) -1.50)", "decimal 1.50"},
         {"abs((varint) -99999999999999999999)", "varint 99999999999999999999"},
         {"abs(-1.5)", "double 1.5"},
         {"exp(0.0)", "double 1.0"},
         {"log(1.0)", "double 0.0"},
         {"log10(1000)", "int 3"},
         {"round(1.5)", "double 2.0"},
         {"round(-1.5)", "double -1.0"},
         {"round((decimal) 2.5)", "decimal 3"},
         {"round((decimal) -2.5)", "decimal -3"},
         {"round((decimal) 0.004)", "decimal 0"},
         {"abs('a')",
          "Invalid call to function abs, none of its type signatures match (known type signatures: "
          "system.abs : (tinyint) -> tinyint, system.abs : (smallint) -> smallint, system.abs : "
          "(int) -> int, system.abs : (bigint) -> bigint, system.abs : (varint) -> varint, "
          "system.abs : (float) -> float, system.abs : (double) -> double, system.abs : (decimal) "
          "-> decimal, system.abs : (counter) -> bigint)"}});
}

TEST(FunctionsTest, Collections) {
  Check({{"map_keys((map<text, int>) {'a': 1, 'b': 2})", "set<text> {'a', 'b'}"},
         {"map_values((map<text, int>) {'a': 1, 'b': 2})", "list<int> [1, 2]"},
         {"collection_count((map<text, int>) {'a': 1})", "int 1"},
         {"collection_count([1, 2, 3])", "int 3"},
         {"collection_min([3, 1, 2])", "int 1"},
         {"collection_max({3, 1, 2})", "int 3"},
         {"collection_sum([3, 1, 3])", "int 7"},
         {"collection_avg([3, 1, 3])", "int 2"},
         {"collection_avg((list<double>) [1, 2])", "double 1.5"},
         {"collection_max((list<int>) [])", "int null"},
         {"map_keys([1])",
          "Function system.map_keys requires a map argument, but found argument [1] of type "
          "list<int>"},
         {"collection_sum(['a'])",
          "Function system.collection_sum requires a numeric set/list argument, but found argument "
          "['a'] of type list<text>"}});
}

TEST(FunctionsTest, Vectors) {
  Check({{"similarity_cosine((vector<float, 2>) [1, 0], [1, 0])", "float 1.0"},
         {"similarity_cosine((vector<float, 2>) [1, 0], [0, 1])", "float 0.5"},
         {"similarity_euclidean((vector<float, 2>) [0, 0], [0, 1])", "float 0.5"},
         {"similarity_dot_product([0.5, 0], (vector<float, 2>) [1, 0])", "float 0.75"},
         {"similarity_cosine((vector<float, 1>) [0], [1])",
          "Function system.similarity_cosine doesn't support all-zero vectors."},
         {"similarity_cosine((vector<float, 1>) [0], (vector<float, 2>) [1, 2])",
          "All arguments must have the same vector dimensions"}});
}

TEST(FunctionsTest, Masks) {
  Check({{"mask_null((int) 5)", "int null"},
         {"mask_default((int) 5)", "int 0"},
         {"mask_default((text) 'a')", "text ****"},
         {"mask_default((date) '2024-01-01')", "date 1970-01-01"},
         {"mask_default((list<int>) [1])", "list<int> []"},
         {"mask_default((tuple<int, text>) (1, 'a'))", "frozen<tuple<int, text>> (0, '****')"},
         {"mask_replace((int) 5, 7)", "int 7"},
         {"mask_inner((text) 'h\u00e4llo', 1, 2)", "text h**lo"},
         {"mask_outer((text) 'hello', 1, 2)", "text *el**"},
         {"mask_inner((text) 'hello', null, 1, '#')", "text ####o"},
         {"mask_inner((text) 'hello', 1, 2, 'ab')",
          "The padding argument for function system.mask_inner should be single-character, but "
          "'ab' has 2 characters."}});
}

TEST(FunctionsTest, NullsGoThrough) {
  Check({{"abs((int) null)", "int null"},
         {"1 + (int) null", "int null"},
         {"toDate((timestamp) null)", "date null"},
         // Empty values are as good as null where there is something to compute.
         {"abs(blobAsInt(0x))", "int null"},
         {"blobAsInt(0x) + 1", "int null"},
         {"-blobAsDecimal(0x)", "decimal null"},
         {"-blobAsDecimal(0x00000001)", "decimal 0.0"},
         {"toDate(blobAsTimestamp(0x))", "date null"},
         {"cast(blobAsInt(0x) AS bigint)", "bigint null"},
         {"collection_sum([blobAsInt(0x), 2])", "int 2"}});
}

// Each level asks for the types below it; the cost must not double with each.
TEST(FunctionsTest, DeepCallsAreNotDear) {
  std::string text = "1";
  for (int i = 0; i < 40; ++i) {
    text = "abs(" + text + " + 1)";
  }
  EXPECT_EQ(Outcome(text), "int 41");
  text = "1";
  for (int i = 0; i < 40; ++i) {
    text = "collection_count([" + text + "])";
  }
  EXPECT_EQ(Outcome(text), "int 1");
}

}  // namespace
}  // namespace orrery::cql
