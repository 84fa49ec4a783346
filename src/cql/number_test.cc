#include "cql/number.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"

namespace orrery::cql {
namespace {

TEST(VarintTest, TextAndShortestBytesBelongTogether) {
  const std::pair<std::string, std::string> rows[] = {
      {"0", "00"},
      {"1", "01"},
      {"127", "7F"},
      {"128", "0080"},
      {"129", "0081"},
      {"-1", "FF"},
      {"-128", "80"},
      {"-129", "FF7F"},
      {"255", "00FF"},
      {"65536", "010000"},
      {"-32768", "8000"},
      {"9223372036854775808", "008000000000000000"},
      {"-9223372036854775808", "8000000000000000"},
      {"-9223372036854775809", "FF7FFFFFFFFFFFFFFF"},
      {"123456789012345678901234567890", "018EE90FF6C373E0EE4E3F0AD2"},
      {"1000000000", "3B9ACA00"},
  };
  for (const auto& [text, hex] : rows) {
    auto bytes = VarintFromText(text);
    ASSERT_TRUE(bytes) << text;
    EXPECT_EQ(ToHex(*bytes), hex) << text;
    EXPECT_EQ(VarintToText(*bytes), text);
  }
}

TEST(VarintTest, WhatIsNoIntegerIsRefused) {
  for (std::string_view text : {"", "-", "+", "1.0", "1e3", " 1", "1 ", "0x10", "--1"}) {
    EXPECT_FALSE(VarintFromText(text)) << text;
  }
}

TEST(VarintTest, LengthHasALimit) {
  EXPECT_TRUE(VarintFromText(std::string(4'931, '9')));
  EXPECT_FALSE(VarintFromText(std::string(4'934, '9')));
  EXPECT_FALSE(VarintFromText(std::string(10'000'000, '9')));
}

TEST(VarintTest, RandomNumbersComeBack) {
  SeededRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string digits = random.Next() % 2 == 0 ? "-" : "";
    digits.push_back(static_cast<char>('1' + random.Next() % 9));
    for (size_t i = random.Next() % 80; i > 0; --i) {
      digits.push_back(static_cast<char>('0' + random.Next() % 10));
    }
    auto bytes = VarintFromText(digits);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(VarintToText(*bytes), digits);
    EXPECT_EQ(ShortestVarint(*bytes), *bytes);
    std::string longer =
        ((*bytes)[0] & 0x80) != 0 ? "\xFF\xFF" + *bytes : std::string(3, '\0') + *bytes;
    EXPECT_EQ(ShortestVarint(longer), *bytes);
    EXPECT_EQ(VarintToText(longer), digits);
    EXPECT_EQ(CompareVarints(longer, *bytes), 0);
  }
}

TEST(DecimalTest, TextKeepsTheScaleAndPrintsAsJavaDoes) {
  const std::pair<std::string, std::string> rows[] = {
      {"0", "0000000000"},      {"1", "0000000001"},        {"1.50", "000000020096"},
      {"-1.5", "00000001F1"},   {"0.00", "0000000200"},     {"1E+3", "FFFFFFFD01"},
      {"1.5E-7", "000000080F"}, {"0.000001", "0000000601"}, {"1E-7", "0000000701"},
      {"-0.05", "00000002FB"},
  };
  for (const auto& [text, hex] : rows) {
    auto bytes = DecimalFromText(text);
    ASSERT_TRUE(bytes) << text;
    EXPECT_EQ(ToHex(*bytes), hex) << text;
    EXPECT_EQ(DecimalToText(*bytes), text);
  }
}

TEST(DecimalTest, OtherFormsOfTextAreUnderstood) {
  const std::pair<std::string, std::string> rows[] = {
      {"+1.5", "1.5"},  {".5", "0.5"}, {"5.", "5"},         {"1e3", "1E+3"},
      {"12E-1", "1.2"}, {"007", "7"},  {"1.5e+2", "1.5E+2"}};
  for (const auto& [text, printed] : rows) {
    auto bytes = DecimalFromText(text);
    ASSERT_TRUE(bytes) << text;
    EXPECT_EQ(DecimalToText(*bytes), printed) << text;
  }
  for (std::string_view text : {"", ".", "-", "1.2.3", "1e", "e5", "1e99999999999", "abc", "1,5"}) {
    EXPECT_FALSE(DecimalFromText(text)) << text;
  }
}

TEST(DecimalTest, ComparesByValueWithoutExpandingExponents) {
  auto compare = [](std::string_view a, std::string_view b) {
    int order = CompareDecimals(*DecimalFromText(a), *DecimalFromText(b));
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  };
  EXPECT_EQ(compare("1.0", "1.00"), 0);
  EXPECT_EQ(compare("100", "1E+2"), 0);
  EXPECT_EQ(compare("-1.0", "-1.00"), 0);
  EXPECT_EQ(compare("0.0", "0E+10"), 0);
  EXPECT_EQ(compare("1E+2000000000", "9E+1999999999"), 1);
  EXPECT_EQ(compare("-1E+2000000000", "1E-2000000000"), -1);
  EXPECT_EQ(compare("-2", "-1.99"), -1);
  EXPECT_EQ(compare("0", "-0.1"), 1);
  EXPECT_EQ(compare("1.2", "1.19"), 1);
}

TEST(DecimalTest, ValueComesBack) {
  for (std::string_view text : {"0", "1", "-1.5", "1E+3", "1E+100", "123.456", "-0.001"}) {
    std::string bytes = *DecimalFromText(text);
    auto again = DecimalFromValue(DecimalToValue(bytes));
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(CompareDecimals(bytes, *again), 0) << text;
    EXPECT_EQ(DecimalToValue(*again), DecimalToValue(bytes)) << text;
  }
}

TEST(FloatTextTest, PrintsAsJavaDoes) {
  const std::pair<double, std::string> rows[] = {
      {1, "1.0"},
      {0, "0.0"},
      {-0.0, "-0.0"},
      {1.5, "1.5"},
      {100, "100.0"},
      {1e7, "1.0E7"},
      {1234567, "1234567.0"},
      {12345678, "1.2345678E7"},
      {0.001, "0.001"},
      {1e-4, "1.0E-4"},
      {-1.5e-10, "-1.5E-10"},
      {0.1, "0.1"},
      {std::numeric_limits<double>::infinity(), "Infinity"},
      {-std::numeric_limits<double>::infinity(), "-Infinity"}};
  for (const auto& [value, text] : rows) {
    EXPECT_EQ(DoubleToText(value), text);
    EXPECT_EQ(DoubleFromText(text), value);
  }
  EXPECT_EQ(FloatToText(0.1f), "0.1");
  EXPECT_EQ(DoubleToText(std::nan("")), "NaN");
  EXPECT_TRUE(std::isnan(*FloatFromText("NaN")));
  EXPECT_EQ(DoubleFromText("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(DoubleFromText("1e-999"), 0.0);
  for (std::string_view text : {"", "abc", "1.0x", "nan", "inf", "-", "0x1p3"}) {
    EXPECT_FALSE(DoubleFromText(text)) << text;
  }
}

}  // namespace
}  // namespace orrery::cql
