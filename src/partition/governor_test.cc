#include "partition/governor.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;

Instant At(Duration since) { return Instant(since); }

// Reserves one unit at a time until the governor refuses; gives back how many it admitted.
int AdmittedUnits(Governor& governor, Duration since, const Claim& claim = {}) {
  int admitted = 0;
  while (admitted < 100'000 &&
         governor.Reserve(RequestUnits(1), At(since), claim) == Duration::zero()) {
    ++admitted;
  }
  return admitted;
}

constexpr Claim kLow{.priority = Priority::kLow};

TEST(GovernorTest, AWindowGivesExactlyItsShare) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(AdmittedUnits(governor, 100ms), 400);
  EXPECT_EQ(AdmittedUnits(governor, 999ms), 0);
  EXPECT_EQ(AdmittedUnits(governor, 1000ms), 400);
}

TEST(GovernorTest, ARefusedRequestIsToldToComeBackInTheNextWindow) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400), At(100ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(300ms)), Duration(700ms));
}

TEST(GovernorTest, TheRetryTimeIsWholeMillisecondsAndAtLeastOne) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400), At(100ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(999'999us)), Duration(1ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(998'001us)), Duration(2ms));
}

TEST(GovernorTest, ARefusedRequestTakesNothing) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400), At(0ms));
  EXPECT_EQ(AdmittedUnits(governor, 500ms), 0);
  EXPECT_EQ(governor.UsedLastSecond(At(1s)), RequestUnits(400));
}

TEST(GovernorTest, ARequestIsAdmittedWhileAnythingIsLeft) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(399.99), At(0ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(700), At(0ms)), Duration::zero());
  EXPECT_GT(governor.Reserve(RequestUnits(1), At(0ms)), Duration::zero());
}

TEST(GovernorTest, DebtOfOneWindowDelaysTheNext) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(900), At(0ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(0ms)), Duration(2s));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(1000ms)), Duration(1s));
  EXPECT_EQ(AdmittedUnits(governor, 2000ms), 300);
  EXPECT_EQ(AdmittedUnits(governor, 3000ms), 400);
}

TEST(GovernorTest, ADebtOfWholeWindowsLeavesNothingInTheLastOfThem) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(800), At(0ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(500ms)), Duration(1500ms));
  EXPECT_EQ(AdmittedUnits(governor, 1000ms), 0);
  EXPECT_EQ(AdmittedUnits(governor, 2000ms), 400);
}

TEST(GovernorTest, ADebtIsPaidAlsoByWindowsThatNobodyUsed) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400 * 1000 + 100), At(0ms));
  EXPECT_EQ(AdmittedUnits(governor, 999s), 0);
  EXPECT_EQ(AdmittedUnits(governor, 1000s), 300);
}

TEST(GovernorTest, UnitsOfAnUnusedWindowAreLostWithoutBurst) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(AdmittedUnits(governor, 0s), 400);
  EXPECT_EQ(AdmittedUnits(governor, 100s), 400);
}

TEST(GovernorTest, WhatWasReservedTooMuchIsGivenBack) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(governor.Reserve(RequestUnits(400), At(0ms)), Duration::zero());
  governor.Settle(RequestUnits(-100), At(10ms));
  EXPECT_EQ(AdmittedUnits(governor, 20ms), 100);
  EXPECT_EQ(governor.UsedLastSecond(At(1s)), RequestUnits(400));
}

TEST(GovernorTest, WhatAnEarlierWindowGaveDoesNotEnlargeThisOne) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(governor.Reserve(RequestUnits(100), At(900ms)), Duration::zero());
  governor.Settle(RequestUnits(-100), At(1100ms));
  EXPECT_EQ(AdmittedUnits(governor, 1200ms), 400);
}

TEST(GovernorTest, ALaterWindowCannotBeLeftByACallerWithAnOlderTime) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400), At(2100ms));
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(1900ms)), Duration(1100ms));
}

TEST(GovernorTest, UsedLastSecondIsTheWholeWindowBefore) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(governor.Reserve(RequestUnits(5), At(100ms)), Duration::zero());
  governor.Settle(RequestUnits(1.5), At(200ms));
  EXPECT_EQ(governor.UsedLastSecond(At(500ms)), RequestUnits(0));
  EXPECT_EQ(governor.UsedLastSecond(At(1500ms)), RequestUnits(6.5));
  EXPECT_EQ(governor.UsedLastSecond(At(2500ms)), RequestUnits(0));
}

TEST(GovernorTest, AClockThatGoesALongWayForwardStartsAFreshWindow) {
  for (bool burst : {false, true}) {
    Governor governor(RequestUnits(400), burst);
    governor.Settle(RequestUnits(10'000'000), At(0s));
    EXPECT_EQ(governor.Reserve(RequestUnits(1), At(std::chrono::hours(24 * 365 * 200))),
              Duration::zero());
    EXPECT_EQ(governor.UsedLastSecond(At(std::chrono::hours(24 * 365 * 201))), RequestUnits(0));
  }
}

TEST(GovernorTest, ALargerShareIsGoodInTheSameWindow) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(AdmittedUnits(governor, 0ms), 400);
  governor.SetShare(RequestUnits(1000), At(100ms));
  EXPECT_EQ(governor.share(), RequestUnits(1000));
  EXPECT_EQ(AdmittedUnits(governor, 200ms), 600);
  EXPECT_EQ(AdmittedUnits(governor, 1000ms), 1000);
}

TEST(GovernorTest, ASmallerShareMakesNoDebt) {
  Governor governor(RequestUnits(1000));
  governor.Settle(RequestUnits(900), At(0ms));
  governor.SetShare(RequestUnits(400), At(100ms));
  EXPECT_EQ(AdmittedUnits(governor, 200ms), 0);
  EXPECT_EQ(AdmittedUnits(governor, 1000ms), 400);
}

TEST(GovernorTest, AShareThatFallsAndRisesGivesNothingTwice) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(300), At(0ms));
  governor.SetShare(RequestUnits(100), At(100ms));
  governor.SetShare(RequestUnits(400), At(200ms));
  EXPECT_EQ(AdmittedUnits(governor, 300ms), 100);
}

TEST(GovernorTest, ANewShareLeavesAnOldDebt) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(1000), At(0ms));
  governor.SetShare(RequestUnits(100), At(100ms));
  EXPECT_EQ(AdmittedUnits(governor, 6000ms), 0);
  EXPECT_EQ(AdmittedUnits(governor, 7000ms), 100);
}

TEST(GovernorBurstTest, ANewGovernorHasNothingSaved) {
  Governor governor(RequestUnits(400), true);
  EXPECT_EQ(AdmittedUnits(governor, 1'000'000s), 400);
}

TEST(GovernorBurstTest, UnusedUnitsAreSpentLater) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(100), At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 2s), 400 + 300 + 400);
  EXPECT_EQ(AdmittedUnits(governor, 3s), 400);
}

TEST(GovernorBurstTest, NoMoreThanThreeThousandInAWindow) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(0), At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 100s), 3000);
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(100'500ms)), Duration(500ms));
  EXPECT_EQ(AdmittedUnits(governor, 101s), 3000);
}

TEST(GovernorBurstTest, NoMoreThanThreeHundredSecondsAreSaved) {
  Governor governor(RequestUnits(100), true);
  governor.Settle(RequestUnits(0), At(0s));
  int burst = 0;
  for (int second = 0; second < 20; ++second) {
    burst += AdmittedUnits(governor, std::chrono::seconds(100'000 + second)) - 100;
  }
  EXPECT_EQ(burst, 300 * 100);
}

TEST(GovernorBurstTest, APartitionAtTheCeilingDoesNotBurst) {
  Governor governor(RequestUnits(3000), true);
  governor.Settle(RequestUnits(0), At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 100s), 3000);
}

TEST(GovernorBurstTest, SavedUnitsPayADebtUpToTheCeiling) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(0), At(0s));
  governor.Settle(RequestUnits(10'000), At(100s));  // 3,000 at once, then 3,000 a window
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(100s)), Duration(3s));
  EXPECT_EQ(AdmittedUnits(governor, 102s), 0);
  EXPECT_EQ(AdmittedUnits(governor, 103s), 2000);
}

TEST(GovernorBurstTest, TheRetryTimeKnowsWhenTheSavingsEnd) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(0), At(0s));
  governor.Settle(RequestUnits(10'000), At(5s));  // 2,000 are saved, so 7,600 are left to pay
  const Duration wait = governor.Reserve(RequestUnits(1), At(5s));
  EXPECT_EQ(wait, Duration(20s));
  EXPECT_EQ(AdmittedUnits(governor, 24s), 0);
  EXPECT_EQ(AdmittedUnits(governor, 25s), 400);
}

TEST(GovernorBurstTest, WhatComesBackFillsTheSavings) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(0), At(0s));
  governor.Settle(RequestUnits(700), At(1s));
  governor.Settle(RequestUnits(-300), At(1s));
  EXPECT_EQ(AdmittedUnits(governor, 1s), 400);
  EXPECT_EQ(AdmittedUnits(governor, 2s), 400);
}

TEST(GovernorBurstTest, APartitionAtTheCeilingSavesNothingForASmallerShare) {
  Governor governor(RequestUnits(3000), true);
  governor.Settle(RequestUnits(0), At(0s));
  governor.SetShare(RequestUnits(400), At(100s));
  EXPECT_EQ(AdmittedUnits(governor, 101s), 400 + 400);  // what the last window did not use
}

TEST(GovernorBurstTest, SavingsAreLostAboveTheCeiling) {
  Governor governor(RequestUnits(400), true);
  governor.Settle(RequestUnits(0), At(0s));
  governor.SetShare(RequestUnits(5000), At(100s));
  governor.SetShare(RequestUnits(400), At(100s));
  EXPECT_EQ(AdmittedUnits(governor, 100s), 400);
}

TEST(GovernorSustainedTest, OnlyWhatEveryOneOfFiveSecondsUsedIsSustained) {
  Governor governor(RequestUnits(1000));
  for (int second = 0; second < 5; ++second) {
    EXPECT_EQ(governor.Sustained(At(std::chrono::seconds(second))), RequestUnits(0)) << second;
    governor.Settle(RequestUnits(300 + 100 * second), At(std::chrono::seconds(second)));
  }
  EXPECT_EQ(governor.Sustained(At(5s)), RequestUnits(300));
  governor.Settle(RequestUnits(900), At(5s));
  EXPECT_EQ(governor.Sustained(At(6s)), RequestUnits(400));
}

TEST(GovernorSustainedTest, ASecondWithoutUseEndsIt) {
  Governor governor(RequestUnits(1000));
  for (int second = 0; second < 6; ++second) {
    governor.Settle(RequestUnits(500), At(std::chrono::seconds(second)));
  }
  EXPECT_EQ(governor.Sustained(At(6s)), RequestUnits(500));
  EXPECT_EQ(governor.Sustained(At(7s)), RequestUnits(0));
  EXPECT_EQ(governor.Sustained(At(1'000'000s)), RequestUnits(0));
}

TEST(GovernorPriorityTest, LowAloneMayUseEverything) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(AdmittedUnits(governor, 0s, kLow), 400);
  EXPECT_EQ(AdmittedUnits(governor, 1s, kLow), 400);
}

TEST(GovernorPriorityTest, LowLeavesToHighWhatHighUsedInTheSecondBefore) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(300), At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 1s, kLow), 100);
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(1200ms), kLow), Duration(800ms));
  EXPECT_EQ(AdmittedUnits(governor, 1s), 300);
}

TEST(GovernorPriorityTest, WhatHighHasTakenIsNotKeptAgain) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(300), At(0s));
  governor.Settle(RequestUnits(250), At(1s));
  EXPECT_EQ(AdmittedUnits(governor, 1s, kLow), 100);
}

TEST(GovernorPriorityTest, AfterHighWasRefusedLowGetsNothingInTheNextSecond) {
  Governor governor(RequestUnits(400));
  governor.Settle(RequestUnits(400), At(0s), kLow);
  EXPECT_GT(governor.Reserve(RequestUnits(1), At(500ms)), Duration::zero());
  EXPECT_EQ(AdmittedUnits(governor, 1s, kLow), 0);
  EXPECT_EQ(AdmittedUnits(governor, 1s), 400);
  EXPECT_EQ(AdmittedUnits(governor, 3s, kLow), 400) << "a second without High is between";
}

TEST(GovernorPriorityTest, ARefusedLowTakesNothingFromLow) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(AdmittedUnits(governor, 0s, kLow), 400);
  EXPECT_GT(governor.Reserve(RequestUnits(1), At(0s), kLow), Duration::zero());
  EXPECT_EQ(AdmittedUnits(governor, 1s, kLow), 400);
}

constexpr Claim Bucket(uint8_t bucket) { return {.bucket = bucket}; }

TEST(GovernorBucketTest, ABucketGetsItsPercentageAndTheRestStaysForOthers) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20, 50}}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(1)), 200);
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(2)), 500);
  EXPECT_EQ(AdmittedUnits(governor, 0s), 300);
  EXPECT_EQ(AdmittedUnits(governor, 1s, Bucket(1)), 200);
}

TEST(GovernorBucketTest, NothingIsKeptForABucket) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20}}, At(0s));
  bool bucket_full = false;
  EXPECT_EQ(AdmittedUnits(governor, 0s), 1000);
  EXPECT_GT(governor.Reserve(RequestUnits(1), At(0s), Bucket(1), &bucket_full), Duration::zero());
  EXPECT_FALSE(bucket_full);
}

TEST(GovernorBucketTest, ARefusalForTheBucketSaysSo) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20}}, At(0s));
  governor.Settle(RequestUnits(500), At(0s), Bucket(1));
  bool bucket_full = false;
  EXPECT_EQ(governor.Reserve(RequestUnits(1), At(0s), Bucket(1), &bucket_full), Duration(2s));
  EXPECT_TRUE(bucket_full);
  EXPECT_EQ(AdmittedUnits(governor, 2s, Bucket(1)), 100) << "its own windows pay its debt";
}

TEST(GovernorBucketTest, ABucketThatDoesNotExistLimitsNothing) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20}}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(4)), 1000);
}

TEST(GovernorBucketTest, RequestsThatNameNoneAreInTheDefaultBucket) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20, 50}, .unmarked = 1}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s), 200);
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(2)), 500);
  EXPECT_EQ(governor.Lend(RequestUnits(10), RequestUnits(0), At(0s)), RequestUnits(10));
}

TEST(GovernorBucketTest, ABucketCannotSpendWhatWasSaved) {
  Governor governor(RequestUnits(400), true);
  governor.SetBuckets({.percent = {100}}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 100s, Bucket(1)), 400);
  EXPECT_EQ(AdmittedUnits(governor, 100s), 2600);
}

TEST(GovernorBucketTest, CapsFollowTheShareAndNewPercentages) {
  Governor governor(RequestUnits(1000));
  governor.SetBuckets({.percent = {20}}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(1)), 200);
  governor.SetShare(RequestUnits(2000), At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(1)), 200);
  governor.SetBuckets({.percent = {50}}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(1)), 600);
  governor.SetBuckets({}, At(0s));
  EXPECT_EQ(AdmittedUnits(governor, 0s, Bucket(1)), 1000);
}

TEST(GovernorTest, ThreadsTogetherGetExactlyTheShare) {
  Governor governor(RequestUnits(10'000));
  std::atomic<int> admitted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { admitted += AdmittedUnits(governor, 1s); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admitted, 10'000);
}

}  // namespace
}  // namespace orrery::partition
