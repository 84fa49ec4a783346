#include "partition/hot_keys.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::partition {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Instant At(Duration since) { return Instant(since); }

TEST(HotKeysTest, AKeyWithHalfOfTheUnitsShowsItsShareAndRate) {
  HotKeys keys;
  for (int second = 0; second < 20; ++second) {
    for (int i = 0; i < 100; ++i) {
      keys.Add("hot", 100, At(seconds(second)));
      keys.Add("k" + std::to_string(i), 100, At(seconds(second)));
    }
  }
  auto top = keys.Top(3, At(seconds(19)));
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_NEAR(top[0].share, 0.5, 0.05);
  EXPECT_NEAR(top[0].units_per_second, 100, 10);
  EXPECT_LT(top[1].share, 0.05);
}

TEST(HotKeysTest, WhatCostsMoreIsHotterThanWhatIsAskedMoreOften) {
  HotKeys keys;
  for (int i = 0; i < 100; ++i) {
    keys.Add("often", 100, At(seconds(0)));
    keys.Add("dear", 1000, At(seconds(0)));
  }
  EXPECT_EQ(keys.Top(1, At(seconds(0)))[0].key, "dear");
}

TEST(HotKeysTest, AKeyThatIsNotAskedForAnyMoreFades) {
  HotKeys keys;
  keys.Add("old", 10'000, At(seconds(0)));
  keys.Add("new", 1'000, At(seconds(40)));
  auto top = keys.Top(2, At(seconds(40)));
  EXPECT_EQ(top[0].key, "new");
  EXPECT_TRUE(keys.Top(2, At(seconds(1000))).empty());
}

TEST(HotKeysTest, WhatBelongsToNoKeyCountsInTheWhole) {
  HotKeys keys;
  keys.Add("", 300, At(seconds(0)));
  keys.Add("a", 100, At(seconds(0)));
  auto top = keys.Top(5, At(seconds(0)));
  ASSERT_EQ(top.size(), 1u);
  EXPECT_DOUBLE_EQ(top[0].share, 0.25);
}

// Reads of 1 RU and of 5 RU in turn, more than are added one by one.
TEST(HotKeysTest, OfManyOperationsAFewAreAddedAndTheSharesStayRight) {
  HotKeys keys;
  SeededRandom random(7);
  uint64_t before = 0;
  size_t added = 0;
  for (int i = 0; i < 200'000; ++i) {
    bool hot = random.Next() % 4 == 0;  // a quarter of the operations, 5/8 of the units
    uint64_t charge = hot ? 500 : 100;
    if (keys.Picks(before, charge)) {
      ++added;
      std::string other = "k" + std::to_string(random.Next() % 1000);
      keys.Add(hot ? "hot" : other, charge, At(milliseconds(i / 10)));
    }
    before += charge;
  }
  auto top = keys.Top(1, At(seconds(20)));
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_NEAR(top[0].share, 0.625, 0.06);
  // The first second has no experience to go by.
  EXPECT_LT(added, 10'000u + 20 * 2 * 256);
}

}  // namespace
}  // namespace orrery::partition
