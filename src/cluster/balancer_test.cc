#include "cluster/balancer.h"

#include <gtest/gtest.h>

#include "model/test_node.h"

namespace orrery::cluster {
namespace {

constexpr const char* kContainer = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";

class BalancerTest : public testing::Test {
 protected:
  std::shared_ptr<const model::Container> Find() { return node.Find("dbs/d/colls/c"); }
  // One look, with this much in each partition; what it has begun.
  std::vector<model::Reshape> Look(const std::vector<double>& bytes) {
    PartitionLoads loads;
    for (size_t i = 0; i < bytes.size(); ++i) {
      loads[Find()->map->ranges()[i].id] = {.bytes = bytes[i]};
    }
    auto look = [this, &loads]() -> runtime::Task<bool> {
      co_await balancer.Once(loads);
      co_return true;
    };
    node.Run(look());
    return Find()->reshapes;
  }
  void CallOff() {
    for (const model::Reshape& reshape : Find()->reshapes) {
      EXPECT_TRUE(node.Run(node.catalog().AbortReshape(Find()->id, reshape.name())).ok());
    }
  }

  model::TestMachine machine;
  model::TestNode node{machine};
  Balancer balancer{node.catalog(), *machine.clock, {.merge_after = std::chrono::seconds(10)}};
};

TEST_F(BalancerTest, AFullPartitionIsSplitAndAgainOnlyIfItHasGrown) {
  node.MakeContainer(kContainer, {.manual = 10'000});
  EXPECT_TRUE(Look({29e9}).empty());
  EXPECT_EQ(Look({30e9}).size(), 1u);
  CallOff();  // it could not be divided
  EXPECT_TRUE(Look({30e9}).empty());
  EXPECT_EQ(Look({34e9}).size(), 1u);
}

TEST_F(BalancerTest, ThroughputThatThePartitionsCannotHaveSplitsTheLargest) {
  node.MakeContainer(kContainer, {.manual = 20'000});
  uint32_t offer = Find()->offer->number;
  EXPECT_TRUE(node.Run(node.catalog().ReplaceOffer(offer, {.manual = 30'000}, "")).ok());
  auto begun = Look({1e6, 2e6});
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].parents.front(), Find()->map->ranges()[1].id);
  EXPECT_EQ(Look({1e6, 2e6}).size(), 1u);  // one thing after the other
}

TEST_F(BalancerTest, WhatIsSmallAndColdForLongIsMerged) {
  node.MakeContainer(kContainer, {.manual = 20'000});
  uint32_t offer = Find()->offer->number;
  EXPECT_TRUE(node.Run(node.catalog().ReplaceOffer(offer, {.manual = 10'000}, "")).ok());
  EXPECT_TRUE(Look({1e6, 1e6}).empty());
  machine.clock->Advance(std::chrono::seconds(9));
  EXPECT_TRUE(Look({1e6, 1e6}).empty());
  machine.clock->Advance(std::chrono::seconds(1));
  auto begun = Look({1e6, 1e6});
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_FALSE(begun[0].splits());
}

// Else a share that was split because it was too large would be put together again.
TEST_F(BalancerTest, SharesThatSomebodyChoseAreSplitAndNeverMerged) {
  node.MakeContainer(kContainer, {.manual = 20'000});
  model::change::ReplaceOffer change{.number = Find()->offer->number};
  auto container = Find();  // its map is what the ids below are of
  auto ranges = container->map->ranges();
  change.shares = {{ranges[0].id, 4'000}, {ranges[1].id, 5'000}};
  EXPECT_TRUE(node.Run(node.catalog().Execute({.id = {}, .what = change})));
  EXPECT_TRUE(Look({1e6, 1e6}).empty());
  machine.clock->Advance(std::chrono::seconds(20));
  EXPECT_TRUE(Look({1e6, 1e6}).empty());
  change.shares = {{ranges[0].id, 12'000}};
  EXPECT_TRUE(node.Run(node.catalog().Execute({.id = {}, .what = change})));
  auto begun = Look({1e6, 1e6});
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].parents, std::vector{ranges[0].id});
}

TEST_F(BalancerTest, NothingHappensWhileItIsPausedOrNotAllIsKnown) {
  node.MakeContainer(kContainer, {.manual = 20'000});
  EXPECT_TRUE(Look({31e9}).empty());
  EXPECT_TRUE(node.Run(node.catalog().PauseBalancer(true)).ok());
  EXPECT_TRUE(Look({31e9, 1e9}).empty());
  EXPECT_TRUE(node.Run(node.catalog().PauseBalancer(false)).ok());
  EXPECT_EQ(Look({31e9, 1e9}).size(), 1u);
}

}  // namespace
}  // namespace orrery::cluster
