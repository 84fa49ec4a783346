#include "storage/compaction_pace.h"

#include <gtest/gtest.h>

namespace orrery::storage {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kSpace = 1;
constexpr uint32_t kOther = 2;

Instant At(int millis) { return Instant(milliseconds(1000 + millis)); }

TEST(CompactionPaceTest, AMergeRestsTwiceAsLongAsItWorked) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  EXPECT_EQ(pace.Rest(At(3)), milliseconds(6));
  pace.Resume(At(9));
  EXPECT_EQ(pace.Rest(At(10)), milliseconds(2));
}

TEST(CompactionPaceTest, NoRestIsLong) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  EXPECT_EQ(pace.Rest(At(60'000)), milliseconds(20));
}

TEST(CompactionPaceTest, AMergeThatIsOvertakenDoesNotRest) {
  CompactionPace pace;
  pace.Begin(kSpace, At(0));
  for (int i = 0; i < 5; ++i) {
    pace.Flushed(kSpace);
  }
  pace.Flushed(kOther);
  EXPECT_GT(pace.Rest(At(3)), Duration::zero());
  pace.Flushed(kSpace);
  EXPECT_EQ(pace.Rest(At(3)), Duration::zero());
  pace.Begin(kSpace, At(4));
  EXPECT_GT(pace.Rest(At(5)), Duration::zero());
}

}  // namespace
}  // namespace orrery::storage
