#include "partition/budget.h"

#include <gtest/gtest.h>

namespace orrery::partition {
namespace {

using std::chrono::milliseconds;

Instant At(int64_t ms) { return Instant(std::chrono::seconds(1000) + milliseconds(ms)); }

TEST(BudgetTest, WithoutASliceNothingIsTakenAndOneAsksAtATime) {
  Budget budget(RequestUnits(400));
  EXPECT_FALSE(budget.HasSlice(At(0)));
  EXPECT_FALSE(budget.Take(RequestUnits(1), At(0)));
  auto ask = budget.BeginBorrow(At(0));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->want, RequestUnits(10));
  EXPECT_EQ(ask->back, RequestUnits());
  EXPECT_FALSE(budget.BeginBorrow(At(0)));
  budget.EndBorrow(RequestUnits(10), At(1));
  EXPECT_FALSE(budget.BeginBorrow(At(1))) << "there is a slice";
  EXPECT_TRUE(budget.Take(RequestUnits(4), At(2)));
}

TEST(BudgetTest, WhatIsLeftAfterATenthOfASecondGoesBack) {
  Budget budget(RequestUnits(400));
  ASSERT_TRUE(budget.BeginBorrow(At(0)));
  budget.EndBorrow(RequestUnits(10), At(0));
  EXPECT_TRUE(budget.Take(RequestUnits(4), At(99)));
  EXPECT_FALSE(budget.Take(RequestUnits(1), At(100)));
  auto ask = budget.BeginBorrow(At(100));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->back, RequestUnits(6));
}

TEST(BudgetTest, WhenTheOwnerHasNothingASliceIsForHighPriorityOnly) {
  Budget budget(RequestUnits(400));
  ASSERT_TRUE(budget.BeginBorrow(At(0)));
  budget.EndBorrow(RequestUnits(0), At(0));
  ASSERT_TRUE(budget.BeginBorrow(At(20)));
  budget.EndBorrow(RequestUnits(10), At(20));
  EXPECT_FALSE(budget.Take(RequestUnits(1), At(30), Priority::kLow));
  EXPECT_TRUE(budget.Take(RequestUnits(1), At(30)));
  ASSERT_FALSE(budget.HasSlice(At(1000)));
  ASSERT_TRUE(budget.BeginBorrow(At(1000)));
  budget.EndBorrow(RequestUnits(10), At(1000));
  EXPECT_TRUE(budget.Take(RequestUnits(1), At(1001), Priority::kLow));
}

TEST(BudgetTest, WhoNeedsMoreAsksForMore) {
  Budget budget(RequestUnits(400));
  ASSERT_TRUE(budget.BeginBorrow(At(0)));
  budget.EndBorrow(RequestUnits(10), At(0));
  EXPECT_TRUE(budget.Take(RequestUnits(8), At(1)));
  budget.Settle(RequestUnits(5), At(1));  // it cost more than was known: overdrawn
  EXPECT_FALSE(budget.Take(RequestUnits(1), At(2)));
  auto ask = budget.BeginBorrow(At(2));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->want, RequestUnits(23)) << "twice as much, and what was overdrawn";
  budget.EndBorrow(RequestUnits(3), At(3));
  EXPECT_FALSE(budget.HasSlice(At(3))) << "the debt is paid, no more";
  EXPECT_FALSE(budget.BeginBorrow(At(4))) << "the owner has nothing: not again at once";
  EXPECT_TRUE(budget.BeginBorrow(At(30)));
}

TEST(BudgetTest, AnOwnerLendsAQuarterOfWhatIsLeftAndTakesBackWhatWasNotSpent) {
  Governor governor(RequestUnits(400));
  EXPECT_EQ(governor.Lend(RequestUnits(1000), RequestUnits(), At(0)), RequestUnits(100));
  EXPECT_EQ(governor.Lend(RequestUnits(50), RequestUnits(), At(1)), RequestUnits(50));
  EXPECT_EQ(governor.Lend(RequestUnits(1000), RequestUnits(50), At(2)), RequestUnits(75));
  // All that is lent in a second is what one owner would have admitted.
  RequestUnits all(175);
  for (int i = 0; i < 100; ++i) {
    all += governor.Lend(RequestUnits(1000), RequestUnits(), At(3));
  }
  EXPECT_EQ(all, RequestUnits(400));
  EXPECT_GT(governor.Reserve(RequestUnits(1), At(4)), Duration::zero());
  EXPECT_EQ(governor.Lend(RequestUnits(5), RequestUnits(), At(1000)), RequestUnits(5));
}

}  // namespace
}  // namespace orrery::partition
