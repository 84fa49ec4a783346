#include "partition/pricing.h"

#include <gtest/gtest.h>

namespace orrery::partition {
namespace {

constexpr size_t kKb = 1024;

struct Published {
  size_t kilobytes;
  const char* read;
  const char* write;
};
constexpr Published kPublished[] = {
    {1, "1", "4.95"},         {2, "1.04", "6.29"},    {4, "1.14", "6.67"},
    {8, "1.33", "7.04"},      {16, "1.67", "9.52"},   {32, "2.19", "11.23"},
    {64, "4.76", "22.67"},    {128, "9.95", "48.19"}, {256, "20.28", "98.29"},
    {512, "40.95", "184.57"}, {1024, "145.9", "625"}, {2048, "291.8", "1250"},
};

TEST(PricingTest, EveryRowOfThePublishedTableIsMet) {
  for (const Published& row : kPublished) {
    EXPECT_EQ(PriceOfRead(row.kilobytes * kKb).ToString(), row.read) << row.kilobytes;
    EXPECT_EQ(PriceOfCreate(row.kilobytes * kKb, 0).ToString(), row.write) << row.kilobytes;
    EXPECT_EQ(PriceOfDelete(row.kilobytes * kKb, 0).ToString(), row.write) << row.kilobytes;
  }
}

TEST(PricingTest, LessThanAKilobyteCostsAsOne) {
  EXPECT_EQ(PriceOfRead(0), RequestUnits(1));
  EXPECT_EQ(PriceOfRead(1), RequestUnits(1));
  EXPECT_EQ(PriceOfCreate(1023, 0), RequestUnits(4.95));
}

TEST(PricingTest, BetweenTwoRowsThePriceIsInterpolated) {
  EXPECT_EQ(PriceOfRead(3 * kKb), RequestUnits(1.09));
  EXPECT_EQ(PriceOfRead(768 * kKb), RequestUnits(93.43));  // 93.425
  EXPECT_EQ(PriceOfCreate(3 * kKb, 0), RequestUnits(6.48));
}

TEST(PricingTest, AboveTwoMegabytesTheLastSlopeGoesOn) {
  EXPECT_EQ(PriceOfRead(3072 * kKb), RequestUnits(437.70));
  EXPECT_EQ(PriceOfCreate(4096 * kKb, 0), RequestUnits(2500));
}

TEST(PricingTest, ALargerItemIsNeverCheaper) {
  for (size_t bytes = 512; bytes < 3000 * kKb; bytes += 777) {
    EXPECT_LE(PriceOfRead(bytes), PriceOfRead(bytes + 777));
    EXPECT_LE(PriceOfCreate(bytes, 0), PriceOfCreate(bytes + 777, 0));
    EXPECT_LE(PriceOfFeed(1, bytes), PriceOfFeed(1, bytes + 777));
    EXPECT_LE(PriceOfFeed(3, bytes), PriceOfFeed(3, bytes + 777));
  }
}

// The published examples count 5 where the table has 4.95.
TEST(PricingTest, TheWorkedExamplesAreMetButForTheirRounding) {
  EXPECT_EQ(PriceOfCreate(kKb, 10), RequestUnits(4.95 + 2));
  EXPECT_EQ(PriceOfReplace(kKb, kKb, 2, 2), RequestUnits(4.95 + 4.95 + 0.4 + 0.4));
  EXPECT_EQ(PriceOfPatch(kKb, kKb, 2, 2, 2), RequestUnits(4.95 + 4.95 + 0.4 + 0.4 + 0.8));
  EXPECT_EQ(PriceOfDelete(kKb, 10), RequestUnits(4.95 + 2));
}

TEST(PricingTest, AReplacePaysForBothVersions) {
  EXPECT_EQ(PriceOfReplace(4 * kKb, 64 * kKb, 3, 5), RequestUnits(6.67 + 22.67 + 0.6 + 1.0));
}

TEST(PricingTest, StrongReadsCostTwice) {
  EXPECT_EQ(PriceOfRead(4 * kKb, ReadPrice::kTwoReplicas), RequestUnits(2.28));
  EXPECT_EQ(PriceOfMiss(ReadPrice::kTwoReplicas), RequestUnits(2));
  EXPECT_EQ(PriceOfFeed(10, 5000, ReadPrice::kTwoReplicas), PriceOfFeed(10, 5000) * 2);
}

// Charges that the service gave for small items under the default index (about nine terms each).
TEST(PricingTest, MeasuredChargesAreClose) {
  EXPECT_NEAR(PriceOfCreate(300, 9).value(), 6.67, 0.1);
  EXPECT_NEAR(PriceOfDelete(300, 9).value(), 6.67, 0.1);
  EXPECT_NEAR(PriceOfReplace(300, 300, 3, 3).value(), 11.05, 0.1);
  EXPECT_EQ(PriceOfFeed(1, 300), RequestUnits(2.26));
  EXPECT_NEAR(PriceOfFeed(1000, 150'000).value(), 17.16, 0.5);
  EXPECT_NEAR(PriceOfFeed(2500, 375'000).value(), 34.72, 7);
}

TEST(PricingTest, AnEmptyPageCostsAsMuchAsOneSmallItem) {
  EXPECT_EQ(PriceOfFeed(0, 0), RequestUnits(2.26));
}

TEST(PricingTest, APageOfOneItemCostsItsReadAndTheRequest) {
  EXPECT_EQ(PriceOfFeed(1, 8 * kKb), PriceOfRead(8 * kKb) + RequestUnits(1.26));
  EXPECT_EQ(PriceOfFeed(1, 2048 * kKb), PriceOfRead(2048 * kKb) + RequestUnits(1.26));
}

TEST(PricingTest, APageOfLargeItemsCostsTheSumOfTheirReads) {
  EXPECT_NEAR(PriceOfFeed(4, 4 * 1024 * kKb).value(), 4 * 145.90 + 1.26, 0.1);
  EXPECT_NEAR(PriceOfFeed(10, 10 * 256 * kKb).value(), 10 * 20.28 + 1.26, 3);
}

TEST(PricingTest, CuttingAPageInTwoAddsOnlyTheRequest) {
  const RequestUnits halves = PriceOfFeed(500, 500 * kKb) * 2;
  EXPECT_EQ(halves - PriceOfFeed(1000, 1000 * kKb), RequestUnits(1.26));
}

TEST(PricingTest, SmallFixedPrices) {
  EXPECT_EQ(PriceOfMiss(), RequestUnits(1));
  EXPECT_EQ(PriceOfRefusedWrite(), RequestUnits(1.24));
  EXPECT_EQ(PriceOfThrottled(), RequestUnits(0.38));
  EXPECT_EQ(PriceOfControl(false), RequestUnits(1));
  EXPECT_EQ(PriceOfControl(true), RequestUnits(4.95));
}

TEST(PricingTest, TheLeastPriceIsNotAboveAnyRealOne) {
  EXPECT_EQ(LeastPriceOfRead(), RequestUnits(1));
  EXPECT_EQ(LeastPriceOfWrite(0), RequestUnits(4.95));
  EXPECT_LE(LeastPriceOfWrite(5 * kKb), PriceOfCreate(5 * kKb, 0));
  EXPECT_LE(LeastPriceOfWrite(5 * kKb), PriceOfReplace(100, 5 * kKb, 0, 0));
}

TEST(RequestUnitsTest, TextHasAtMostTwoDecimalsAndNoTrailingZeros) {
  EXPECT_EQ(RequestUnits().ToString(), "0");
  EXPECT_EQ(RequestUnits(1).ToString(), "1");
  EXPECT_EQ(RequestUnits(100).ToString(), "100");
  EXPECT_EQ(RequestUnits(4.95).ToString(), "4.95");
  EXPECT_EQ(RequestUnits(10.8).ToString(), "10.8");
  EXPECT_EQ(RequestUnits(0.05).ToString(), "0.05");
  EXPECT_EQ(RequestUnits(-0.5).ToString(), "-0.5");
}

TEST(RequestUnitsTest, SumsOfHundredthsAreExact) {
  RequestUnits sum;
  for (int i = 0; i < 1000; ++i) {
    sum += RequestUnits(0.01);
  }
  EXPECT_EQ(sum, RequestUnits(10));
}

}  // namespace
}  // namespace orrery::partition
