#include "model/inspect_partition.h"

#include <gtest/gtest.h>

#include "model/test_node.h"

namespace orrery::model {
namespace {

class InspectTest : public testing::TestWithParam<bool> {
 protected:
  PartitionFindings Look(TestNode& node, const Container& container,
                         Duration longest = std::chrono::seconds(1)) {
    auto found = node.Run(Inspect(node.router(), container.ring(), container.map->ranges()[0],
                                  *node.machine().clock, longest));
    EXPECT_TRUE(found) << found.error().ToString();
    return found ? *found : PartitionFindings();
  }
  // As it is, and through the encoder.
  TestNode node{TestMachine(), {.loopback = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Ways, InspectTest, testing::Bool());

TEST_P(InspectTest, TheLargestTenAreFoundWithTheirSizes) {
  auto container = node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
  for (int key = 0; key < 15; ++key) {
    std::string name = "k" + std::to_string(key);
    for (int i = 0; i <= key; ++i) {
      std::string json = R"({"id":")" + std::to_string(i) + R"(","pk":")" + name + R"("})";
      ASSERT_EQ(node.Write(*container, name, {Create(json)}).code(), Code::kOk);
    }
  }
  PartitionFindings found = Look(node, *container);
  EXPECT_TRUE(found.walk.done);
  EXPECT_EQ(found.totals, node.Counted(*container));
  ASSERT_EQ(found.largest.size(), 10u);
  EXPECT_EQ(found.largest[0].key, R"(["k14"])");
  EXPECT_EQ(found.largest[0].totals.items, 15);
  EXPECT_GT(found.largest[0].totals.bytes, found.largest[1].totals.bytes);
  EXPECT_EQ(found.largest[9].key, R"(["k5"])");
}

TEST_P(InspectTest, TheHottestAreThoseThatCostMost) {
  auto container = node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
  ASSERT_EQ(node.Write(*container, "a", {Create(R"({"id":"1","pk":"a"})")}).code(), Code::kOk);
  for (int i = 0; i < 50; ++i) {
    node.ReadReply(*container, "hot", "1");
  }
  PartitionFindings found = Look(node, *container);
  ASSERT_GE(found.hottest.size(), 2u);
  EXPECT_EQ(found.hottest[0].key, R"(["hot"])");
  EXPECT_GT(found.hottest[0].share, 0.8);
  EXPECT_EQ(found.hottest[1].key, R"(["a"])");
}

TEST_P(InspectTest, WithoutTimeNothingIsWalkedOver) {
  auto container = node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
  ASSERT_EQ(node.Write(*container, "a", {Create(R"({"id":"1","pk":"a"})")}).code(), Code::kOk);
  PartitionFindings found = Look(node, *container, Duration::zero());
  EXPECT_EQ(found.totals.items, 1);
  EXPECT_TRUE(found.largest.empty());
  EXPECT_FALSE(found.walk.done);
}

TEST(FindingsTest, WhatIsMalformedIsRefused) {
  PartitionFindings findings;
  findings.Add({.key = "[1]", .totals = {10, 1}});
  std::string bytes = findings.Encode();
  EXPECT_TRUE(PartitionFindings::Decode(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(PartitionFindings::Decode(bytes.substr(0, size)));
  }
}

}  // namespace
}  // namespace orrery::model
