#include "storage/compaction_pace.h"

#include <gtest/gtest.h>

namespace orrery::storage {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kSpace = 1;
constexpr uint32_t kOther = 2;

Instant At(int millis) { return Instant(milliseconds(1000 + millis)); }

TEST(CompactionPaceTest, AMergeRestsFourTimesAsLongAsItWorked) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  EXPECT_EQ(pace.Rest(At(3)), milliseconds(12));
  pace.Resume(At(15));
  EXPECT_EQ(pace.Rest(At(16)), milliseconds(4));
}

TEST(CompactionPaceTest, NoRestIsLong) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  EXPECT_EQ(pace.Rest(At(60'000)), milliseconds(40));
}

TEST(CompactionPaceTest, TheMoreAMergeIsOvertakenTheLessItRests) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  const int rests[] = {12, 10, 8, 6, 4, 2, 0, 0};
  for (int millis : rests) {
    EXPECT_EQ(pace.Rest(At(3)), milliseconds(millis));
    pace.Flushed(kOther);
    pace.Flushed(kSpace);
  }
  pace.Begin(kSpace, At(4));
  EXPECT_EQ(pace.Rest(At(7)), milliseconds(12));
}

}  // namespace
}  // namespace orrery::storage
