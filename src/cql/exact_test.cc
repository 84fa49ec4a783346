#include "cql/exact.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cql/number.h"

namespace orrery::cql {
namespace {

std::string V(std::string_view text) { return VarintFromText(text).value(); }
std::string D(std::string_view text) { return DecimalFromText(text).value(); }
std::string Text(const std::optional<std::string>& decimal) {
  return decimal ? DecimalToText(*decimal) : "nothing";
}

// Of up to 40 bytes; now and then with many zero or one bits, where carries go far.
std::string RandomVarint(Random& random) {
  std::string bytes(random.Next() % 40 + 1, '\0');
  uint64_t kind = random.Next() % 4;
  for (char& c : bytes) {
    c = static_cast<char>(kind == 0 ? 0xFF : kind == 1 ? 0 : random.Next());
  }
  bytes[random.Next() % bytes.size()] = static_cast<char>(random.Next());
  return ShortestVarint(bytes);
}

TEST(ExactTest, QuotientTimesDivisorPlusRemainderIsTheDividend) {
  SeededRandom random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string a = RandomVarint(random);
    std::string b = RandomVarint(random);
    if (IsZero(b)) {
      continue;
    }
    auto [quotient, remainder] = *DivideVarints(a, b);
    std::string again = *AddVarints(*MultiplyVarints(quotient, b), remainder);
    ASSERT_EQ(VarintToText(again), VarintToText(a)) << VarintToText(b);
    std::string size = VarintToText(remainder);
    std::string limit = VarintToText(b);
    std::string rest = VarintFromText(size.starts_with('-') ? size.substr(1) : size).value();
    std::string by = VarintFromText(limit.starts_with('-') ? limit.substr(1) : limit).value();
    ASSERT_LT(CompareVarints(rest, by), 0);
    ASSERT_TRUE(IsZero(remainder) || size.starts_with('-') == VarintToText(a).starts_with('-'));
  }
}

TEST(ExactTest, SumsAndProductsObeyTheirLaws) {
  SeededRandom random(12);
  for (int i = 0; i < 20'000; ++i) {
    std::string a = RandomVarint(random);
    std::string b = RandomVarint(random);
    std::string c = RandomVarint(random);
    ASSERT_EQ(*SubtractVarints(*AddVarints(a, b), b), a);
    ASSERT_EQ(*MultiplyVarints(a, *AddVarints(b, c)),
              *AddVarints(*MultiplyVarints(a, b), *MultiplyVarints(a, c)));
    ASSERT_EQ(NegateVarint(NegateVarint(a)), a);
  }
}

TEST(ExactTest, KnownNumbers) {
  EXPECT_EQ(VarintToText(*MultiplyVarints(V("-123456789012345678901"), V("987654321098765432109"))),
            "-121932631137021795225845145533336229232209");
  auto division =
      *DivideVarints(V("340282366920938463463374607431768211455"), V("-18446744073709551616"));
  EXPECT_EQ(VarintToText(division.quotient), "-18446744073709551615");
  EXPECT_EQ(VarintToText(division.remainder), "18446744073709551615");
  EXPECT_EQ(DivideVarints(V("1"), V("0")), std::nullopt);
}

TEST(ExactTest, DecimalsKeepTheirScale) {
  EXPECT_EQ(Text(AddDecimals(D("1.10"), D("-0.1"))), "1.00");
  EXPECT_EQ(Text(AddDecimals(D("1E+3"), D("1"))), "1001");
  EXPECT_EQ(Text(AddDecimals(D("1E+100000"), D("1"))), "nothing");
  EXPECT_EQ(Text(MultiplyDecimals(D("-1.5"), D("0.20"))), "-0.300");
  EXPECT_EQ(Text(DivideDecimals(D("-2"), D("3"))), "-0.66666666666666666666666666666667");
  EXPECT_EQ(Text(DivideDecimals(D("1000"), D("10"))), "1E+2");
  EXPECT_EQ(Text(DivideDecimals(D("0"), D("3"))), "0");
  EXPECT_EQ(Text(RemainderOfDecimals(D("-7.5"), D("2"))), "-1.5");
  EXPECT_EQ(DecimalToText(DecimalAverage(D("1.5"), 2)), "0.8");
  EXPECT_EQ(DecimalToText(DecimalAverage(D("0.5"), 2)), "0.2");
  EXPECT_EQ(VarintToText(*DecimalToVarint(D("-12.9"))), "-12");
  EXPECT_EQ(VarintToText(*DecimalToVarint(D("1.2E+3"))), "1200");
  EXPECT_EQ(DecimalToVarint(D("1E+2000000000")), std::nullopt);
}

}  // namespace
}  // namespace orrery::cql
