#include "cql/value_json.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/random_value.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

const DataType kAddress =
    DataType::Udt("ks", "address", {{"street", TypeId::kText}, {"Zip", TypeId::kInt}}, true);

std::string ToJson(const DataType& type, std::optional<std::string_view> value) {
  std::string out;
  AppendValueJson(type, value, out);
  return out;
}

TEST(ValueJsonTest, ValuesReadAndPrintAsCassandraDoes) {
  const std::tuple<DataType, std::string, std::string> rows[] = {
      {TypeId::kInt, "5", "5"},
      {TypeId::kInt, "\"5\"", "5"},
      {TypeId::kBigint, "-9223372036854775808", "-9223372036854775808"},
      {TypeId::kVarint, "123456789012345678901234567890", "123456789012345678901234567890"},
      {TypeId::kDecimal, "1.10", "1.10"},
      {TypeId::kDecimal, "\"0.1000000000000000000000000000001\"",
       "0.1000000000000000000000000000001"},
      {TypeId::kDouble, "1", "1.0"},
      {TypeId::kDouble, "1e10", "1.0E10"},
      {TypeId::kFloat, "\"1.5\"", "1.5"},
      {TypeId::kDouble, "\"NaN\"", "null"},
      {TypeId::kBoolean, "true", "true"},
      {TypeId::kBoolean, "\"false\"", "false"},
      {TypeId::kText, R"("a\"\u00e4\n")", "\"a\\\"ä\\n\""},
      {TypeId::kBlob, "\"0xFF00\"", "\"0xff00\""},
      {TypeId::kUuid, "\"550e8400-e29b-41d4-a716-446655440000\"",
       "\"550e8400-e29b-41d4-a716-446655440000\""},
      {TypeId::kInet, "\"127.0.0.1\"", "\"127.0.0.1\""},
      {TypeId::kTimestamp, "0", "\"1970-01-01 00:00:00.000Z\""},
      {TypeId::kTimestamp, "\"2011-02-03 04:05+0000\"", "\"2011-02-03 04:05:00.000Z\""},
      {TypeId::kDate, "\"2011-02-03\"", "\"2011-02-03\""},
      {TypeId::kTime, "\"08:12:54\"", "\"08:12:54.000000000\""},
      {TypeId::kDuration, "\"P1D\"", "\"1d\""},
      {TypeId::kInt, "null", "null"},
      {DataType::List(TypeId::kInt), "[1,2]", "[1, 2]"},
      {DataType::List(TypeId::kInt), "\"[1,2]\"", "[1, 2]"},
      {DataType::Set(TypeId::kText), R"(["b","a","b"])", R"(["a", "b"])"},
      {DataType::Map(TypeId::kInt, TypeId::kText), R"({"2":"b","1":"a"})",
       R"({"1": "a", "2": "b"})"},
      {DataType::Map(DataType::List(TypeId::kInt), TypeId::kInt), R"({"[1, 2]": 3})",
       R"({"[1, 2]": 3})"},
      {DataType::Tuple({TypeId::kInt, TypeId::kText}), R"([1, null])", R"([1, null])"},
      {kAddress, R"({"Street": "x", "\"Zip\"": 5})", R"({"street": "x", "\"Zip\"": 5})"},
      {kAddress, R"({"street": "x"})", R"({"street": "x", "\"Zip\"": null})"},
      {DataType::Vector(TypeId::kFloat, 2), "[1, 2.5]", "[1.0, 2.5]"},
  };
  for (const auto& [type, json, printed] : rows) {
    auto value = ValueFromJson(type, json);
    ASSERT_TRUE(value) << json << ": " << value.error().message();
    EXPECT_EQ(ToJson(type, *value), printed);
  }
}

TEST(ValueJsonTest, MessagesAreCassandras) {
  const std::tuple<DataType, std::string, std::string> rows[] = {
      {TypeId::kInt, "1.5", "Expected an int value, but got a Double: 1.5"},
      {TypeId::kInt, "\"x\"", "Unable to make int from 'x'"},
      {TypeId::kInt, "[1]", "Expected an int value, but got a ArrayList: [1]"},
      {TypeId::kText, "5", "Expected a UTF-8 string, but got a Integer: 5"},
      {TypeId::kAscii, "5", "Expected an ascii string, but got a Integer: 5"},
      {TypeId::kBoolean, "5", "Expected a boolean value, but got a Integer: 5"},
      {TypeId::kBlob, "\"ff\"", "String representation of blob is missing 0x prefix: ff"},
      {TypeId::kUuid, "5", "Expected a string representation of a uuid, but got a Integer: 5"},
      {TypeId::kDecimal, "\"x\"", "Value 'x' is not a valid representation of a decimal value"},
      {TypeId::kVarint, "1.5", "Value '1.5' is not a valid representation of a varint value"},
      {DataType::List(TypeId::kInt), "5", "Expected a list, but got a Integer: 5"},
      {DataType::List(TypeId::kInt), "[null]", "Invalid null element in list"},
      {DataType::Set(TypeId::kInt), "[null]", "Invalid null element in set"},
      {DataType::Set(TypeId::kInt), "{}",
       "Expected a list (representing a set), but got a LinkedHashMap: {}"},
      {DataType::Map(TypeId::kText, TypeId::kInt), "{\"a\":null}", "Invalid null value in map"},
      {DataType::Tuple({TypeId::kInt}), "[1,2]", "Tuple contains extra items (expected 1): [1, 2]"},
      {DataType::Tuple({TypeId::kInt}), "[]", "Tuple is missing items (expected 1): []"},
      {kAddress, "{\"zip\":1}", "Unknown fields [zip] in value of user defined type address"},
  };
  for (const auto& [type, json, message] : rows) {
    auto value = ValueFromJson(type, json);
    ASSERT_FALSE(value) << json;
    EXPECT_EQ(value.error().message(), message);
  }
}

TEST(ValueJsonTest, WhatIsNotJsonIsRefused) {
  for (std::string_view text : {"",
                                "{",
                                "[1",
                                "[1,]",
                                "{\"a\"}",
                                "{\"a\":}",
                                "{a:1}",
                                "01",
                                "1.",
                                "1e",
                                "-",
                                "+1",
                                "tru",
                                "\"",
                                "\"\\x\"",
                                "\"\\ud800\"",
                                "\"\\ud800\\u0041\"",
                                "\"\\udc00\"",
                                "\"\n\"",
                                "\"\xFF\"",
                                "1 2",
                                "nan",
                                "'a'"}) {
    EXPECT_FALSE(Json::Parse(text)) << text;
  }
  EXPECT_FALSE(Json::Parse(std::string(100'000, '[')));
}

TEST(ValueJsonTest, RowsHaveNamesInLowerCaseUnlessQuoted) {
  auto row = ParseJsonRow(R"({"Id": 1, "\"Name\"": "x", "id2": null})");
  ASSERT_TRUE(row);
  ASSERT_EQ(row->size(), 3u);
  EXPECT_EQ((*row)[0].name, "id");
  EXPECT_EQ((*row)[1].name, "Name");
  EXPECT_EQ((*row)[1].value.text, "x");
  EXPECT_EQ((*row)[2].value.kind, Json::Kind::kNull);
  EXPECT_FALSE(ParseJsonRow("[1]"));
  EXPECT_FALSE(ParseJsonRow("{"));
}

TEST(ValueJsonTest, OfEqualNamesTheLastOneStays) {
  auto value =
      ValueFromJson(DataType::Map(TypeId::kText, TypeId::kInt), R"({"a": 1, "b": 2, "a": 3})");
  ASSERT_TRUE(value);
  EXPECT_EQ(ToJson(DataType::Map(TypeId::kText, TypeId::kInt), *value), R"({"a": 3, "b": 2})");
}

TEST(ValueJsonTest, RandomValuesComeBack) {
  RandomValues random(5);
  for (int i = 0; i < 3000; ++i) {
    DataType type = random.Type();
    std::string value = random.Value(type, false);
    std::string json = ToJson(type, value);
    auto parsed = Json::Parse(json);
    ASSERT_TRUE(parsed) << json << " " << parsed.error().message();
    auto again = ValueFromJson(type, *parsed);
    // Empty values and numbers that JSON does not have do not survive.
    if (again && *again && json.find("\"\"") == std::string::npos) {
      EXPECT_EQ(ToJson(type, **again), json) << type.ToCql();
    }
  }
}

}  // namespace
}  // namespace orrery::cql
