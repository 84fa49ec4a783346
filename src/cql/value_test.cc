#include "cql/value.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/number.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

std::string Bytes(std::string_view hex) {
  std::string bytes;
  EXPECT_TRUE(FromHex(hex, &bytes)) << hex;
  return bytes;
}

std::string Text(const DataType& type, std::string_view text) {
  auto value = ValueFromText(type, text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message());
  return value.value_or("");
}

struct ValidateCase {
  DataType type;
  std::string hex;
  std::string message;  // empty: good
};

void Check(const std::vector<ValidateCase>& rows) {
  for (const ValidateCase& row : rows) {
    EXPECT_EQ(ValidateValue(row.type, Bytes(row.hex)).message(), row.message)
        << row.type.ToCql() << " " << row.hex;
  }
}

TEST(ValidateTest, TypesOfFixedSizeTakeNoOther) {
  Check({{TypeId::kInt, "00000001", ""},
         {TypeId::kInt, "", ""},
         {TypeId::kInt, "0001", "Expected 4 or 0 byte int (2)"},
         {TypeId::kBigint, "01", "Expected 8 or 0 byte long (1)"},
         {TypeId::kCounter, "01", "Expected 8 or 0 byte long (1)"},
         {TypeId::kTimestamp, "01", "Expected 8 or 0 byte long for date (1)"},
         {TypeId::kSmallint, "", "Expected 2 bytes for a smallint (0)"},
         {TypeId::kTinyint, "0102", "Expected 1 byte for a tinyint (2)"},
         {TypeId::kBoolean, "0000", "Expected 1 or 0 byte value (2)"},
         {TypeId::kDouble, "00", "Expected 8 or 0 byte value for a double (1)"},
         {TypeId::kFloat, "00", "Expected 4 or 0 byte value for a float (1)"},
         {TypeId::kDate, "", "Expected 4 byte long for date (0)"},
         {TypeId::kTime, "00", "Expected 8 byte long for time (1)"},
         {TypeId::kUuid, "00", "UUID should be 16 or 0 bytes (1)"},
         {TypeId::kInet, "7F0000", "Expected 4 or 16 byte inetaddress; got 7F0000"},
         {TypeId::kTimeuuid, "550E8400E29B41D4A716446655440000",
          "Invalid version for TimeUUID type."},
         {TypeId::kTimeuuid, "550E8400E29B11D4A716446655440000", ""}});
}

TEST(ValidateTest, TextMustBeInItsAlphabet) {
  Check({{TypeId::kAscii, "61", ""},
         {TypeId::kAscii, "61C3A4", "Invalid byte for ascii: -61"},
         {TypeId::kText, "C3A4E282ACF09F9880", ""},
         {TypeId::kText, "616161616161616161C3", "String didn't validate."},
         {TypeId::kText, "EDA080", "String didn't validate."},
         {TypeId::kBlob, "FF00", ""}});
}

TEST(ValidateTest, NumbersAndDurations) {
  Check({{TypeId::kVarint, "", ""},
         {TypeId::kDecimal, "000000", "Expected 0 or at least 4 bytes (3)"},
         {TypeId::kDecimal, "0000000005", ""},
         {TypeId::kDuration, "0204", "Expected at least 3 bytes for a duration (2)"},
         {TypeId::kDuration, "020406", ""},
         {TypeId::kDuration, "010406",
          "The duration months, days and nanoseconds must be all of the same sign (-1, 2, 3)"},
         {TypeId::kDuration, "F2000000000000",
          "The duration months must be a 32 bits integer but was: 4294967296"},
         {TypeId::kDuration, "02040600",
          "The duration cannot be read: it is not made of three integers"}});
  EXPECT_FALSE(ValidateValue(TypeId::kVarint, std::string(kNumberBytesMax + 1, 'x')).ok());
}

TEST(ValidateTest, CollectionsAreChecked) {
  DataType list = DataType::List(TypeId::kInt);
  DataType map = DataType::Map(TypeId::kText, TypeId::kInt);
  Check({{list, "00000000", ""},
         {list, "000000010000000400000007", ""},
         {list, "", "Not enough bytes to read a list"},
         {list, "0000000100000004000000", "Not enough bytes to read a list"},
         {list, "7FFFFFFF", "Not enough bytes to read a list"},
         {list, "FFFFFFFF", "The data cannot be deserialized as a list"},
         {list, "00000000FF", "Unexpected extraneous bytes after list value"},
         {list, "00000001FFFFFFFF", "null is not supported inside collections"},
         {list, "00000001000000020000", "Expected 4 or 0 byte int (2)"},
         {map, "00000001000000016100000004000000FF", ""},
         {map, "000000010000000161", "Not enough bytes to read a map"},
         {DataType::Set(TypeId::kText), "000000010000000161FF",
          "Unexpected extraneous bytes after set value"}});
}

TEST(ValidateTest, TuplesAndUserTypesMayEndEarly) {
  DataType tuple = DataType::Tuple({TypeId::kInt, TypeId::kText});
  DataType udt = DataType::Udt("ks", "t", {{"a", TypeId::kInt}, {"b", TypeId::kText}});
  Check({{tuple, "", ""},
         {tuple, "0000000400000007", ""},
         {tuple, "FFFFFFFF0000000161", ""},
         {tuple, "000000040000", "Not enough bytes to read 0th component"},
         {tuple, "FFFFFFFF0000000161FF", "Invalid remaining data after end of tuple value"},
         {udt, "FFFFFFFF000000", "Not enough bytes to read 1th field b"},
         {udt, "FFFFFFFFFFFFFFFFFF", "Invalid remaining data after end of UDT value"}});
}

TEST(ValidateTest, VectorsHaveTheirDimension) {
  DataType floats = DataType::Vector(TypeId::kFloat, 2);
  DataType texts = DataType::Vector(TypeId::kText, 2);
  Check({{floats, "3F80000040000000", ""},
         {floats, "3F800000", "Not enough bytes to read a vector"},
         {floats, "3F8000004000000000", "Unexpected extraneous bytes after vector value"},
         {texts, "01610162", ""},
         {texts, "0161", "Not enough bytes to read a vector"},
         {texts, "FFFFFFFFFFFFFFFFFF", "Not enough bytes to read a vector"}});
}

// Each list is in ascending order.
void CheckOrder(const DataType& type, const std::vector<std::string>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      int order = CompareValues(type, values[i], values[j]);
      EXPECT_EQ(order < 0, i < j) << type.ToCql() << " " << ToHex(values[i]) << " "
                                  << ToHex(values[j]);
      EXPECT_EQ(order > 0, i > j) << type.ToCql() << " " << ToHex(values[i]) << " "
                                  << ToHex(values[j]);
    }
  }
}

void CheckOrderOfTexts(const DataType& type, const std::vector<std::string>& texts) {
  std::vector<std::string> values = {""};  // below all
  for (const std::string& text : texts) {
    values.push_back(Text(type, text));
  }
  CheckOrder(type, values);
}

TEST(CompareTest, NumbersByValue) {
  CheckOrderOfTexts(TypeId::kInt, {"-2147483648", "-1", "0", "1", "2147483647"});
  CheckOrderOfTexts(TypeId::kBigint, {"-9223372036854775808", "-1", "0", "5"});
  CheckOrderOfTexts(TypeId::kSmallint, {"-32768", "-1", "0", "255", "256"});
  CheckOrderOfTexts(TypeId::kTinyint, {"-128", "-1", "0", "127"});
  CheckOrderOfTexts(TypeId::kVarint, {"-99999999999999999999", "-256", "-1", "0", "1", "127", "128",
                                      "99999999999999999999"});
  CheckOrderOfTexts(TypeId::kDecimal, {"-1E+9", "-1.5", "-0.001", "0", "0.001", "1.49", "1.5"});
  CheckOrderOfTexts(TypeId::kDouble,
                    {"-Infinity", "-1.5", "-0.0", "0.0", "1.5", "Infinity", "NaN"});
  CheckOrderOfTexts(TypeId::kFloat, {"-Infinity", "-1.5", "-0.0", "0.0", "1.5", "Infinity", "NaN"});
}

TEST(CompareTest, TextByBytes) {
  CheckOrderOfTexts(TypeId::kText, {"A", "a", "aa", "b", "ä", "€"});
  CheckOrderOfTexts(TypeId::kBlob, {"00", "0000", "01", "7f", "80", "ff"});
  CheckOrderOfTexts(TypeId::kBoolean, {"false", "true"});
}

TEST(CompareTest, Times) {
  CheckOrderOfTexts(TypeId::kTimestamp, {"1969-12-31", "1970-01-01", "2020-01-01"});
  CheckOrderOfTexts(TypeId::kDate, {"-0001-01-01", "1969-12-31", "1970-01-01", "2020-01-01"});
  CheckOrderOfTexts(TypeId::kTime, {"00:00:00", "12:00:00", "23:59:59.999999999"});
  CheckOrderOfTexts(TypeId::kInet, {"1.2.3.4", "9.0.0.1", "127.0.0.1", "200.0.0.1", "fe80::1"});
}

TEST(CompareTest, UuidsByVersionThenTime) {
  CheckOrderOfTexts(TypeId::kUuid,
                    {"00000001-0000-1000-8000-000000000000", "ffffffff-0000-1000-8000-000000000000",
                     "00000000-0001-1000-8000-000000000000", "00000000-0000-1001-8000-000000000000",
                     "00000000-0000-1001-8000-000000000001", "00000000-0000-4000-8000-000000000000",
                     "80000000-0000-4000-8000-000000000000"});
}

TEST(CompareTest, TimeuuidsByTimeThenSignedBytes) {
  CheckOrderOfTexts(
      TypeId::kTimeuuid,
      {"00000001-0000-1000-8080-808080808080", "00000001-0000-1000-80ff-808080808080",
       "00000001-0000-1000-8000-808080808080", "00000001-0000-1000-807f-7f7f7f7f7f7f",
       "00000002-0000-1000-8080-808080808080", "00000001-0001-1000-8080-808080808080"});
}

TEST(CompareTest, CollectionsElementByElement) {
  DataType list = DataType::List(TypeId::kInt, true);
  CheckOrder(list, {"", Text(list, "[]"), Text(list, "[-1, 9]"), Text(list, "[1]"),
                    Text(list, "[1, 1]"), Text(list, "[2]")});
  DataType map = DataType::Map(TypeId::kText, TypeId::kInt, true);
  CheckOrder(map, {Text(map, "{}"), Text(map, R"({"a": 1})"), Text(map, R"({"a": 1, "b": 0})"),
                   Text(map, R"({"a": 2})"), Text(map, R"({"b": 0})")});
  DataType vector = DataType::Vector(TypeId::kFloat, 2);
  CheckOrder(vector, {Text(vector, "[-1, 5]"), Text(vector, "[1, 2]"), Text(vector, "[1, 3]")});
}

TEST(CompareTest, NullsInTuplesComeFirstAndAtTheEndDoNotCount) {
  DataType tuple = DataType::Tuple({TypeId::kInt, TypeId::kText});
  CheckOrder(tuple, {Text(tuple, R"([null, null])"), Text(tuple, R"([null, "a"])"),
                     Text(tuple, R"([1, null])"), Text(tuple, R"([1, "a"])")});
  EXPECT_EQ(CompareValues(tuple, Bytes("0000000400000001"), Text(tuple, "[1, null]")), 0);
  EXPECT_LT(CompareValues(tuple, Bytes("0000000400000001"), Text(tuple, "[1, \"\"]")), 0);
}

TEST(CanonicalTest, SetsAndMapsAreSortedWithoutDoubles) {
  DataType set = DataType::Set(TypeId::kInt);
  std::string out;
  PartWriter writer(set, out);
  for (int value : {3, -1, 3, 2}) {
    writer.Add(IntBytes(value));
  }
  writer.Finish();
  EXPECT_EQ(ValueToText(set, CanonicalValue(set, out)), "{-1, 2, 3}");

  DataType map = DataType::List(DataType::Map(TypeId::kText, TypeId::kInt));
  std::string inner;
  PartWriter pairs(map.element(), inner);
  for (auto [key, value] : {std::pair{"b", 1}, {"a", 2}, {"b", 3}}) {
    pairs.Add(key);
    pairs.Add(IntBytes(value));
  }
  pairs.Finish();
  std::string outer;
  PartWriter list(map, outer);
  list.Add(inner);
  list.Finish();
  EXPECT_EQ(ValueToText(map, CanonicalValue(map, outer)), "[{'a': 2, 'b': 3}]");
}

struct TextCase {
  DataType type;
  std::string text;
  std::string hex;
  std::string literal;
};

TEST(ValueTextTest, TextAndBytesBelongTogether) {
  const TextCase rows[] = {
      {TypeId::kInt, "-5", "FFFFFFFB", "-5"},
      {TypeId::kBigint, "5", "0000000000000005", "5"},
      {TypeId::kTinyint, "-128", "80", "-128"},
      {TypeId::kSmallint, "256", "0100", "256"},
      {TypeId::kText, "it's", "69742773", "'it''s'"},
      {TypeId::kBlob, "0x00ff", "00FF", "0x00ff"},
      {TypeId::kBoolean, "true", "01", "true"},
      {TypeId::kUuid, "550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000",
       "550e8400-e29b-41d4-a716-446655440000"},
      {TypeId::kInet, "127.0.0.1", "7F000001", "'127.0.0.1'"},
      {TypeId::kInet, "0:0:0:0:0:0:0:1", "00000000000000000000000000000001", "'0:0:0:0:0:0:0:1'"},
      {TypeId::kDate, "1970-01-02", "80000001", "'1970-01-02'"},
      {TypeId::kTime, "00:00:00.000000001", "0000000000000001", "'00:00:00.000000001'"},
      {TypeId::kTimestamp, "1970-01-01T00:00:00.001Z", "0000000000000001",
       "'1970-01-01T00:00:00.001Z'"},
      {TypeId::kDuration, "1mo2d3ns", "020406", "1mo2d3ns"},
      {TypeId::kDouble, "1.5", "3FF8000000000000", "1.5"},
      {TypeId::kFloat, "1.5", "3FC00000", "1.5"},
  };
  for (const TextCase& row : rows) {
    std::string bytes = Text(row.type, row.text);
    EXPECT_EQ(ToHex(bytes), row.hex) << row.text;
    EXPECT_EQ(ValueToText(row.type, bytes), row.text);
    EXPECT_EQ(ValueToLiteral(row.type, bytes), row.literal);
    EXPECT_TRUE(ValidateValue(row.type, bytes).ok());
  }
  EXPECT_EQ(ToHex(Text(TypeId::kInet, "::1")), "00000000000000000000000000000001");
  EXPECT_EQ(ToHex(Text(TypeId::kInet, "::ffff:1.2.3.4")), "01020304");
  EXPECT_EQ(ToHex(Text(TypeId::kBoolean, "FALSE")), "00");
}

TEST(ValueTextTest, MessagesAreCassandras) {
  const std::tuple<DataType, std::string, std::string> rows[] = {
      {TypeId::kInt, "abc", "Unable to make int from 'abc'"},
      {TypeId::kInt, "2147483648", "Unable to make int from '2147483648'"},
      {TypeId::kBigint, "1.5", "Unable to make long from '1.5'"},
      {TypeId::kSmallint, "32768", "Unable to make short from '32768'"},
      {TypeId::kTinyint, "128", "Unable to make byte from '128'"},
      {TypeId::kBoolean, "yes", "Unable to make boolean from 'yes'"},
      {TypeId::kUuid, "x", "Unable to make UUID from 'x'"},
      {TypeId::kInet, "1.2.3", "Unable to make inet address from '1.2.3'"},
      {TypeId::kBlob, "0xabc", "cannot parse '0xabc' as hex bytes"},
      {TypeId::kTimestamp, "x", "Unable to parse a date/time from 'x'"},
      {TypeId::kDate, "x", "Unable to coerce 'x' to a formatted date (long)"},
      {TypeId::kTime, "x", "(TimeType) Unable to coerce 'x' to a formatted time (long)"},
      {TypeId::kDuration, "x", "Unable to convert 'x' to a duration"},
      {TypeId::kAscii, "ä", "Invalid byte for ascii: -61"},
      {TypeId::kTimeuuid, "550e8400-e29b-41d4-a716-446655440000",
       "TimeUUID supports only version 1 UUIDs"},
  };
  for (const auto& [type, text, message] : rows) {
    auto value = ValueFromText(type, text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().message(), message);
  }
}

TEST(ValueTextTest, ConstantsFitTheTypesThatCassandraLetsThem) {
  EXPECT_TRUE(AcceptsConstant(TypeId::kTimestamp, ExpressionKind::kInteger));
  EXPECT_TRUE(AcceptsConstant(TypeId::kDouble, ExpressionKind::kInteger));
  EXPECT_FALSE(AcceptsConstant(TypeId::kInt, ExpressionKind::kFloat));
  EXPECT_FALSE(AcceptsConstant(TypeId::kInt, ExpressionKind::kString));
  EXPECT_FALSE(AcceptsConstant(TypeId::kText, ExpressionKind::kInteger));
  EXPECT_FALSE(AcceptsConstant(TypeId::kBlob, ExpressionKind::kString));
}

}  // namespace
}  // namespace orrery::cql
