#include "replication/catch_up_pace.h"

#include <gtest/gtest.h>

namespace orrery::replication {
namespace {

using std::chrono::milliseconds;

Instant At(int millis) { return Instant(milliseconds(1000 + millis)); }

TEST(CatchUpPaceTest, ItRestsEightTimesAsLongAsAPartTook) {
  CatchUpPace pace;
  EXPECT_EQ(pace.Rest(1000, At(0)), Duration::zero());
  EXPECT_EQ(pace.Rest(900, At(10)), milliseconds(80));
  EXPECT_EQ(pace.Rest(800, At(95)), milliseconds(40));
}

TEST(CatchUpPaceTest, NoRestIsLong) {
  CatchUpPace pace;
  pace.Rest(1000, At(0));
  EXPECT_EQ(pace.Rest(900, At(5000)), milliseconds(100));
}

TEST(CatchUpPaceTest, WhoFallsBackIsSentAllAtOnce) {
  CatchUpPace pace;
  pace.Rest(1000, At(0));
  EXPECT_EQ(pace.Rest(1000, At(10)), Duration::zero());
  EXPECT_EQ(pace.Rest(1100, At(20)), Duration::zero());
  EXPECT_GT(pace.Rest(1050, At(30)), Duration::zero());
}

}  // namespace
}  // namespace orrery::replication
