#include "replication/crowd.h"

#include <gtest/gtest.h>

namespace orrery::replication {
namespace {

using std::chrono::microseconds;

Instant At(int64_t micros) { return Instant(microseconds(micros)); }

TEST(CrowdTest, WhoComesAloneNeverWaits) {
  Crowd crowd;
  EXPECT_EQ(crowd.Patience(1, At(1000)), Duration::zero());
  crowd.Begin(1, At(1000));
  crowd.End(0, At(1400));
  EXPECT_EQ(crowd.Patience(1, At(1401)), Duration::zero());
}

TEST(CrowdTest, ThoseWhoWereAnsweredAndThoseWhoCameMeanwhileAreWaitedForHalfARound) {
  Crowd crowd;
  crowd.Begin(16, At(1000));
  crowd.End(16, At(1400));
  EXPECT_EQ(crowd.Patience(16, At(1400)), Duration(200));
  EXPECT_EQ(crowd.Patience(23, At(1500)), Duration(100));
  EXPECT_EQ(crowd.Patience(24, At(1500)), Duration::zero());
  EXPECT_EQ(crowd.Patience(17, At(1600)), Duration::zero());
}

TEST(CrowdTest, NobodyWaitsLongerThanAMillisecond) {
  Crowd crowd;
  crowd.Begin(100, At(0));
  crowd.End(0, At(60'000'000));
  EXPECT_EQ(crowd.Patience(1, At(60'000'000)), Duration(1000));
}

TEST(CrowdTest, ACrowdThatDidNotComeIsNotWaitedForAgain) {
  Crowd crowd;
  crowd.Begin(32, At(0));
  crowd.End(0, At(1000));
  EXPECT_EQ(crowd.Patience(1, At(1500)), Duration::zero());
  crowd.Begin(1, At(1500));
  crowd.End(0, At(2500));
  EXPECT_EQ(crowd.Patience(1, At(2500)), Duration::zero());
}

}  // namespace
}  // namespace orrery::replication
