#include "partition/reshape.h"

#include <map>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::partition {
namespace {

using Items = std::vector<std::pair<std::string, int64_t>>;  // place, bytes; in order

std::optional<CutFinder::Cut> CutOf(const Items& items, std::string middle) {
  int64_t bytes = 0;
  for (const auto& [place, size] : items) {
    bytes += size;
  }
  CutFinder finder(bytes, std::move(middle));
  for (const auto& [place, size] : items) {
    if (!finder.Add(place, size)) {
      break;
    }
  }
  return finder.Finish();
}

TEST(CutFinderTest, TheMiddleOfTheRangeIsTakenIfItHalvesTheBytesNearly) {
  auto cut = CutOf({{"a", 10}, {"b", 35}, {"d", 30}, {"e", 25}}, "c");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->place, "c");
  EXPECT_EQ(cut->left, (storage::Totals{45, 2}));
}

TEST(CutFinderTest, ElseThePlaceNearestToTheHalf) {
  auto early = CutOf({{"a", 10}, {"b", 35}, {"c", 30}, {"d", 25}}, "x");
  ASSERT_TRUE(early);
  EXPECT_EQ(early->place, "c");
  auto late = CutOf({{"a", 10}, {"b", 35}, {"c", 30}, {"d", 25}}, "aa");
  ASSERT_TRUE(late);
  EXPECT_EQ(late->place, "c");
  EXPECT_EQ(late->left, (storage::Totals{45, 2}));
}

TEST(CutFinderTest, OneLogicalPartitionIsNotCut) {
  EXPECT_FALSE(CutOf({{"a", 10}, {"a", 35}, {"a", 30}}, "b"));
  EXPECT_FALSE(CutOf({{"a", 1}, {"b", 500}, {"b", 400}, {"c", 1}}, "x"));
  EXPECT_FALSE(CutOf({}, "b"));
}

TEST(CutFinderTest, TheMiddleIsKnownAlsoWhereItHalvesNothing) {
  CutFinder finder(100, "b");
  EXPECT_TRUE(finder.Add("a", 3));
  EXPECT_TRUE(finder.Add("c", 97));
  EXPECT_FALSE(finder.Finish());
  EXPECT_EQ(finder.Middle().left, (storage::Totals{3, 1}));
  CutFinder empty(0, "b");
  EXPECT_EQ(empty.Middle().place, "b");
  EXPECT_EQ(empty.Middle().left, storage::Totals());
}

// Random keys: what lies left of the cut is counted exactly, and if any place leaves 40 percent on
// both sides then so does the one that was chosen.
TEST(CutFinderTest, ItIsBalancedWhereTheKeysAllowIt) {
  SeededRandom random(7);
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, std::vector<int64_t>> places;
    size_t keys = 1 + random.Next() % 20;
    int64_t total = 0;
    for (size_t i = 0; i < keys; ++i) {
      auto& items = places[std::string(1, static_cast<char>(1 + random.Next() % 250))];
      for (size_t n = 1 + random.Next() % 4; n > 0; --n) {
        items.push_back(static_cast<int64_t>(1 + random.Next() % (random.Next() % 2 ? 1000 : 10)));
        total += items.back();
      }
    }
    Items items;
    for (const auto& [place, sizes] : places) {
      for (int64_t size : sizes) {
        items.emplace_back(place, size);
      }
    }
    auto left_of = [&](std::string_view cut) {
      storage::Totals left;
      for (const auto& [place, size] : items) {
        left.bytes += place < cut ? size : 0;
        left.items += place < cut ? 1 : 0;
      }
      return left;
    };
    auto share = [&](std::string_view cut) {
      return static_cast<double>(left_of(cut).bytes) / static_cast<double>(total);
    };
    bool balanced = false;
    for (const auto& [place, sizes] : places) {
      balanced |= share(place) >= 0.4 && share(place) <= 0.6;
    }
    auto cut = CutOf(items, "\x80");
    if (cut) {
      EXPECT_EQ(cut->left, left_of(cut->place));
      EXPECT_GE(share(cut->place), 0.05);
      EXPECT_LE(share(cut->place), 0.95);
    }
    if (balanced) {
      ASSERT_TRUE(cut);
      EXPECT_GE(share(cut->place), 0.4);
      EXPECT_LE(share(cut->place), 0.6);
    }
  }
}

TEST(FreezeMarkTest, ReadsWhatItWrote) {
  FreezeMark mark{.heir = PartitionId(7), .cut = "cut", .left = {1, 2}, .right = {-3, 4}};
  auto read = FreezeMark::Decode(mark.Encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->heir, mark.heir);
  EXPECT_EQ(read->cut, mark.cut);
  EXPECT_EQ(read->left, mark.left);
  EXPECT_EQ(read->right, mark.right);
  std::string bytes = mark.Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(FreezeMark::Decode(std::string_view(bytes).substr(0, size)));
  }
}

}  // namespace
}  // namespace orrery::partition
