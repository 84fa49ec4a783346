#include "model/elastic.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace orrery::model {
namespace {

constexpr double kGB = 1e9;

std::vector<PartitionLoad> Sizes(std::initializer_list<double> gigabytes) {
  std::vector<PartitionLoad> loads;
  for (double size : gigabytes) {
    loads.push_back({.bytes = size * kGB});
  }
  return loads;
}

TEST(ElasticTest, FullPartitionsSplitAndAsManyAsTheThroughputLacks) {
  struct Row {
    std::string what;
    std::vector<PartitionLoad> partitions;
    uint64_t throughput;
    std::vector<size_t> splits;
  };
  std::vector<PartitionLoad> one_key = Sizes({40, 10});
  one_key[0].divisible = false;
  const Row rows[] = {
      {"nothing to do", Sizes({10, 20}), 20'000, {}},
      {"throughput within t*N", Sizes({10, 20}), 400, {}},
      {"one is full", Sizes({10, 30}), 20'000, {1}},
      {"both are full, the largest first", Sizes({31, 35}), 20'000, {1, 0}},
      {"one partition more", Sizes({10, 20}), 20'001, {1}},
      {"two more", Sizes({10, 20, 15}), 50'000, {1, 2}},
      {"no more than double at a time", Sizes({10, 20}), 90'000, {1, 0}},
      {"full and lacking at once", Sizes({31, 20}), 30'000, {0}},
      {"one logical partition is all", one_key, 20'000, {}},
      {"then another has to", one_key, 30'000, {1}},
      {"none", {}, 400, {}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ChooseSplits(row.partitions, row.throughput, {}), row.splits) << row.what;
  }
}

TEST(ElasticTest, SmallAndColdNeighboursMerge) {
  struct Row {
    std::string what;
    std::vector<PartitionLoad> partitions;
    uint64_t throughput;
    std::vector<size_t> merges;
  };
  std::vector<PartitionLoad> hot = Sizes({1, 1, 1});
  hot[1].used = 9000;
  const Row rows[] = {
      {"the throughput needs them", Sizes({1, 1}), 20'000, {}},
      {"one is enough", Sizes({1, 1}), 10'000, {0}},
      {"no partition in two pairs", Sizes({1, 1, 1, 1, 1}), 400, {0, 2}},
      {"as many as the throughput can do without", Sizes({1, 1, 1, 1}), 30'000, {0}},
      {"too large together", Sizes({8, 8}), 400, {}},
      {"the next pair", Sizes({14, 2, 3}), 400, {1}},
      {"hot", hot, 15'000, {}},
      {"the last one stays", Sizes({1}), 400, {}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ChooseMerges(row.partitions, row.throughput, {}), row.merges) << row.what;
  }
}

TEST(ElasticTest, WhatWasMergedDoesNotSplitAndWhatWasSplitDoesNotMerge) {
  for (double size = 1; size < 60; size += 1) {
    auto merged = ChooseMerges(Sizes({size / 2, size / 2}), 400, {});
    auto split = ChooseSplits(Sizes({size}), 400, {});
    EXPECT_TRUE(merged.empty() || split.empty()) << size;
  }
}

// Logical partitions at places, each with its bytes.
BytesUpTo Keys(const std::map<uint64_t, double>& keys) {
  return [keys](uint64_t place) {
    double sum = 0;
    for (const auto& [at, bytes] : keys) {
      sum += at <= place ? bytes : 0;
    }
    return sum;
  };
}

TEST(ElasticTest, ACutIsNearTheHalfAndNeverInsideALogicalPartition) {
  struct Row {
    std::string what;
    std::map<uint64_t, double> keys;
    std::optional<uint64_t> cut;
  };
  const Row rows[] = {
      {"nothing there", {}, std::nullopt},
      {"one logical partition", {{50, 7}}, std::nullopt},
      {"one at the very begin", {{0, 7}}, std::nullopt},
      {"one at the very end", {{100, 7}}, std::nullopt},
      {"two", {{10, 1}, {20, 1}}, 11},
      {"the large one alone, on the right", {{10, 1}, {20, 8}}, 20},
      {"on the left", {{10, 8}, {20, 1}}, 11},
      {"in the middle: with the smaller side", {{10, 2}, {20, 8}, {30, 1}}, 20},
      {"at both ends", {{0, 1}, {100, 1}}, 1},
      {"ten alike", {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}}, 5},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ChooseCut(0, 100, Keys(row.keys)), row.cut) << row.what;
  }
}

TEST(ElasticTest, ManySmallLogicalPartitionsAreCutInHalves) {
  uint64_t state = 1;
  auto next = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  for (int round = 0; round < 50; ++round) {
    std::map<uint64_t, double> keys;
    double all = 0;
    double largest = 0;
    for (int i = 0; i < 200; ++i) {
      double bytes = 1 + static_cast<double>(next() % 1000);
      all += keys.emplace(next() >> 1, bytes).second ? bytes : 0;
      largest = std::max(largest, bytes);
    }
    auto cut = ChooseCut(0, UINT64_MAX, Keys(keys));
    ASSERT_TRUE(cut);
    double left = Keys(keys)(*cut - 1);
    EXPECT_LE(std::abs(left - all / 2), largest / 2 + 1e-6);
    EXPECT_GT(left / all, 0.4);
    EXPECT_LT(left / all, 0.6);
  }
}

TEST(ElasticTest, AMoveIsNeverWorthTheMoveBack) {
  for (double from = 0; from <= 100; from += 5) {
    for (double to = 0; to <= 100; to += 5) {
      for (double bytes : {1.0, 5.0, 20.0}) {
        NodeFill a{.bytes = from, .capacity = 100};
        NodeFill b{.bytes = to, .capacity = 100};
        double mean = MeanFill(std::vector{a, b});
        if (bytes > from || !ShouldMove(a, b, bytes, mean)) {
          continue;
        }
        EXPECT_GT(from, to);
        a.bytes -= bytes;
        b.bytes += bytes;
        EXPECT_FALSE(ShouldMove(b, a, bytes, mean)) << from << " " << to << " " << bytes;
      }
    }
  }
  EXPECT_FALSE(
      ShouldMove({.bytes = 90, .capacity = 100}, {.capacity = 100, .usable = false}, 1, 0.5));
}

TEST(ElasticTest, AFullNodeGivesAwayAlsoWhenAllOthersAreNearTheMean) {
  NodeFill full{.bytes = 90, .capacity = 100};
  NodeFill other{.bytes = 49.5, .capacity = 100};
  EXPECT_TRUE(ShouldMove(full, other, 1, 0.5));
  EXPECT_FALSE(ShouldMove(full, other, 4, 0.5)) << "then it would be clearly fuller itself";
}

}  // namespace
}  // namespace orrery::model
