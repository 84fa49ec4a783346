#include "model/throughput.h"

#include <gtest/gtest.h>

namespace orrery::model {
namespace {

using partition::Buckets;
using partition::PartitionMap;
using partition::PartitionRange;
using partition::RequestUnits;

PartitionRange Range(uint64_t id, std::string min, std::string max,
                     std::vector<uint64_t> parents = {}) {
  PartitionRange range{.id = PartitionId(id), .range = {std::move(min), std::move(max)}};
  for (uint64_t parent : parents) {
    range.parents.emplace_back(parent);
  }
  return range;
}

// One partition for each id, none of them a child.
PartitionMap Flat(std::vector<uint64_t> ids) {
  std::vector<PartitionRange> ranges;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string min = i == 0 ? "" : std::string(1, static_cast<char>(i));
    std::string max = i + 1 == ids.size() ? "\xFF" : std::string(1, static_cast<char>(i + 1));
    ranges.push_back(Range(ids[i], min, max));
  }
  return *PartitionMap::Make(std::move(ranges));
}

Offer Custom(std::vector<std::pair<uint64_t, uint64_t>> shares) {
  Offer offer;
  for (auto [id, throughput] : shares) {
    offer.custom.push_back({.partition = PartitionId(id), .throughput = throughput});
    offer.manual += throughput;
  }
  return offer;
}

double Share(const Offer& offer, const PartitionMap& map, uint64_t id) {
  return ShareOf(offer, map, PartitionId(id)).value();
}

TEST(ShareOfTest, EqualSharesAreTheSameForEveryPartition) {
  struct Row {
    Offer offer;
    size_t partitions;
    double share;
  };
  const Row rows[] = {
      {{.manual = 400}, 1, 400},
      {{.manual = 30'000}, 3, 10'000},
      {{.manual = 400}, 3, 133.33},
      {{.autoscale_max = 4'000}, 4, 1'000},
  };
  for (const Row& row : rows) {
    std::vector<uint64_t> ids;
    for (size_t i = 0; i < row.partitions; ++i) {
      ids.push_back(10 + i);
    }
    PartitionMap map = Flat(ids);
    for (uint64_t id : ids) {
      EXPECT_EQ(Share(row.offer, map, id), row.share) << row.partitions;
    }
  }
}

TEST(ShareOfTest, CustomSharesAreThoseOfTheList) {
  Offer offer = Custom({{1, 3'000}, {2, 500}});
  PartitionMap map = Flat({1, 2});
  EXPECT_EQ(Share(offer, map, 1), 3'000);
  EXPECT_EQ(Share(offer, map, 2), 500);
}

TEST(ShareOfTest, AChildHasHalfOfItsParentAndAGrandchildAQuarter) {
  Offer offer = Custom({{1, 3'000}, {2, 500}});
  auto map = PartitionMap::Make({Range(5, "", "\1", {3}), Range(6, "\1", "\2", {3}),
                                 Range(4, "\2", "\3", {1}), Range(2, "\3", "\xFF")},
                                {Range(1, "", "\3"), Range(3, "", "\2", {1})});
  ASSERT_TRUE(map);
  EXPECT_EQ(Share(offer, *map, 4), 1'500);
  EXPECT_EQ(Share(offer, *map, 5), 750);
  EXPECT_EQ(Share(offer, *map, 6), 750);
  EXPECT_EQ(Share(offer, *map, 2), 500);
}

TEST(ShareOfTest, WhatWasMergedHasAllOfItsParents) {
  Offer offer = Custom({{1, 3'000}, {2, 500}});
  auto map = PartitionMap::Make({Range(3, "", "\xFF", {1, 2})},
                                {Range(1, "", "\1"), Range(2, "\1", "\xFF")});
  ASSERT_TRUE(map);
  EXPECT_EQ(Share(offer, *map, 3), 3'500);
}

TEST(ShareOfTest, ManySplitsAndMergesAreFollowedInOrdinaryTime) {
  // 1 is split into 2 and 3, they are merged into 4, and so on a hundred times.
  std::vector<PartitionRange> retired;
  uint64_t whole = 1;
  retired.push_back(Range(whole, "", "\xFF"));
  for (int i = 0; i < 100; ++i) {
    retired.push_back(Range(whole + 1, "", "\1", {whole}));
    retired.push_back(Range(whole + 2, "\1", "\xFF", {whole}));
    retired.push_back(Range(whole + 3, "", "\xFF", {whole + 1, whole + 2}));
    whole += 3;
  }
  PartitionRange last = retired.back();
  retired.pop_back();
  auto map = PartitionMap::Make({last}, retired);
  ASSERT_TRUE(map);
  EXPECT_EQ(Share(Custom({{1, 3'000}}), *map, whole), 3'000);
}

TEST(ThroughputTest, AutoscaleIsScaledToWhatWasSustainedWithinItsRange) {
  EXPECT_EQ(ScaledShare(RequestUnits(1'000), RequestUnits(0)), RequestUnits(100));
  EXPECT_EQ(ScaledShare(RequestUnits(1'000), RequestUnits(512.5)), RequestUnits(512.5));
  EXPECT_EQ(ScaledShare(RequestUnits(1'000), RequestUnits(4'000)), RequestUnits(1'000));
  EXPECT_EQ(WholeUnits(RequestUnits(512.01)), 513u);
}

TEST(ThroughputTest, TheFloorIsTheDocumentedOne) {
  constexpr uint64_t kGigabyte = 1 << 30;
  struct Row {
    OfferUse use;
    bool autoscale;
    uint64_t least;
  };
  const Row rows[] = {
      {{}, false, 400},
      {{.most = 40'000}, false, 400},
      {{.most = 50'000}, false, 500},
      {{.most = 50'100}, false, 600},  // in steps of 100
      {{.bytes = 1'000 * kGigabyte}, false, 1'000},
      {{.bytes = 1'000 * kGigabyte + 1}, false, 1'100},
      {{.most = 200'000, .bytes = 1'000 * kGigabyte}, false, 2'000},
      {{.sharing = 25}, false, 400},
      {{.sharing = 30}, false, 900},
      {{}, true, 1'000},
      {{.most = 10'000}, true, 1'000},
      {{.most = 11'000}, true, 2'000},
      {{.bytes = 97 * kGigabyte}, true, 1'000},
      {{.bytes = 500 * kGigabyte}, true, 5'000},
      {{.sharing = 30}, true, 6'000},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(LeastThroughput(row.use, row.autoscale, {}), row.least)
        << row.use.most << " " << row.use.bytes << " " << row.use.sharing << " " << row.autoscale;
  }
}

TEST(ThroughputTest, AnAmountIsRefusedInTheWordsOfTheService) {
  EXPECT_TRUE(CheckAmount(500, false, {.most = 50'000}, {}).ok());
  EXPECT_EQ(CheckAmount(400, false, {.most = 50'000}, {}).message(),
            "The offer should have valid throughput values between 500 and 1000000 inclusive in "
            "increments of 100.");
  EXPECT_EQ(CheckAmount(1'500, true, {}, {}).message(),
            "The offer should have valid throughput values between 1000 and 1000000 inclusive in "
            "increments of 1000.");
  EXPECT_EQ(CheckAmount(2'000'000, false, {}, {}).code(), Code::kInvalidArgument);
}

TEST(ThroughputTest, AManualOfferBecomesAutoscaleOfTheNextThousand) {
  EXPECT_EQ(MigratedMaximum({.manual = 400}, {.most = 400}, {}), 1'000u);
  EXPECT_EQ(MigratedMaximum({.manual = 4'100}, {.most = 4'100}, {}), 5'000u);
  EXPECT_EQ(MigratedMaximum({.manual = 400}, {.most = 100'000}, {}), 10'000u);
}

TEST(ThroughputTest, AReplaceIsPendingWhilePartitionsAreMissing) {
  EXPECT_FALSE(ReplacePending({.manual = 20'000}, Flat({1, 2}), 10'000));
  EXPECT_TRUE(ReplacePending({.manual = 20'100}, Flat({1, 2}), 10'000));
  EXPECT_FALSE(ReplacePending({.autoscale_max = 1'000}, Flat({1, 2}), 10'000));
}

TEST(ThroughputTest, BucketsAreChecked) {
  EXPECT_TRUE(CheckBuckets({}).ok());
  EXPECT_TRUE(CheckBuckets({.percent = {20, 100}, .unmarked = 2}).ok());
  EXPECT_EQ(CheckBuckets({.percent = {101}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckBuckets({.percent = {20}, .unmarked = 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckBuckets({.percent = {20}, .unmarked = 9}).code(), Code::kInvalidArgument);
}

TEST(RedistributeTest, PartitionsThatAreNotNamedKeepTheirShareAndTheSumIsTheThroughput) {
  PartitionMap map = Flat({1, 2, 3});
  std::vector<PartitionShare> shares = {{PartitionId(2), 5'000}};
  auto after = Redistribute({.manual = 3'000, .chosen = false}, map, shares, {});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->manual, 7'000u);
  EXPECT_TRUE(after->chosen);
  EXPECT_EQ(Share(*after, map, 1), 1'000);
  EXPECT_EQ(Share(*after, map, 2), 5'000);
  auto equal = Redistribute(*after, map, {}, {});
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->manual, 7'000u);
  EXPECT_EQ(Share(*equal, map, 2), 2'333.33);
}

TEST(RedistributeTest, AutoscaleIsSpreadByItsMaximum) {
  PartitionMap map = Flat({1, 2});
  std::vector<PartitionShare> shares = {{PartitionId(1), 3'000}, {PartitionId(2), 2'000}};
  auto after = Redistribute({.autoscale_max = 4'000}, map, shares, {});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->autoscale_max, 5'000u);
  EXPECT_EQ(after->manual, 0u);
}

TEST(RedistributeTest, WhatCannotBeIsRefused) {
  PartitionMap map = Flat({1, 2});
  using Shares = std::vector<PartitionShare>;
  const Shares rows[] = {
      {{PartitionId(3), 1'000}},                           // no such partition
      {{PartitionId(1), 1'000}, {PartitionId(1), 2'000}},  // twice
      {{PartitionId(1), 0}},
      {{PartitionId(1), 20'001}},                      // more than two can have
      {{PartitionId(1), 100}, {PartitionId(2), 100}},  // below the floor
  };
  for (const Shares& shares : rows) {
    auto after = Redistribute({.manual = 4'000}, map, shares, {});
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace orrery::model
