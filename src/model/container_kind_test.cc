#include "model/container_kind.h"

#include <gtest/gtest.h>

#include "model/test_node.h"

namespace orrery::model {
namespace {

constexpr auto kFixed = ContainerKind::kFixed;
constexpr auto kUnlimited = ContainerKind::kUnlimited;

struct Row {
  std::string_view name;
  bool keyless = false;
  uint64_t manual = 0;  // 0 and no autoscale: shares its database's
  uint64_t autoscale = 0;
  size_t partitions = 1;
  RuleSet rules = RuleSet::kDocuments;
  ContainerKind kind = kFixed;
};

class ContainerKindTest : public testing::TestWithParam<Row> {
 protected:
  static Container Make(const Row& row) {
    Container container;
    container.keyless = row.keyless;
    container.key.paths = {"/pk"};
    if (row.manual > 0 || row.autoscale > 0) {
      container.offer = Offer{.manual = row.manual, .autoscale_max = row.autoscale};
    }
    container.map = std::make_shared<const partition::PartitionMap>(
        partition::PartitionMap::Even(container.key, row.partitions, PartitionId(1)));
    return container;
  }
};

TEST_P(ContainerKindTest, IsWhatTheRulesSay) {
  CatalogLimits limits{.rules = GetParam().rules};
  Container container = Make(GetParam());
  EXPECT_EQ(KindOf(container, limits), GetParam().kind);
  EXPECT_EQ(MaySplit(container, limits), GetParam().kind == kUnlimited);
  partition::StorageLimits storage = StorageLimitsOf(container, limits);
  EXPECT_EQ(storage.all, GetParam().kind == kFixed ? int64_t{10} << 30 : 0);
  EXPECT_EQ(storage.logical_partition, int64_t{GetParam().kind == kFixed ? 10 : 20} << 30);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ContainerKindTest,
    testing::Values(
        Row{.name = "WithoutAKey", .keyless = true, .manual = 400},
        Row{.name = "WithoutAKeyAtTheMost", .keyless = true, .manual = 10'000},
        Row{.name = "WithoutAKeyInASharedDatabase", .keyless = true},
        Row{.name = "WithoutAKeyToday",
            .keyless = true,
            .manual = 2'000,
            .rules = RuleSet::kCurrent},
        Row{.name = "KeyedBelowAThousand", .manual = 900},
        Row{.name = "KeyedOfAThousand", .manual = 1'000, .kind = kUnlimited},
        Row{.name = "KeyedAutoscale", .autoscale = 1'000, .kind = kUnlimited},
        Row{.name = "KeyedInASharedDatabase", .kind = kUnlimited},
        Row{.name = "KeyedAndDivided", .manual = 400, .partitions = 2, .kind = kUnlimited},
        Row{.name = "KeyedBelowAThousandToday",
            .manual = 400,
            .rules = RuleSet::kCurrent,
            .kind = kUnlimited}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ContainerRulesTest, ThroughputThatNeedsPartitionsMakesUnlimited) {
  Container container;
  container.offer = Offer{.manual = 500};
  EXPECT_EQ(KindOf(container, {.partition_throughput = 400}), kUnlimited);
}

TEST(ContainerRulesTest, SizesAreToldInTheLargestWholeUnit) {
  EXPECT_EQ(SizeText(int64_t{20} << 30), "20 GB");
  EXPECT_EQ(SizeText(1536 << 20), "1536 MB");
  EXPECT_EQ(SizeText(3 << 10), "3 KB");
  EXPECT_EQ(SizeText(1001), "1001 bytes");
}

TEST(ContainerRulesTest, AContainerWithoutAKeyHasOnePartitionAndALimitOfThroughput) {
  TestNode node(TestMachine{}, {.limits = {.partition_throughput = 400}});
  auto container = node.MakeContainer(R"({"id":"c"})", {.manual = 2'000});
  EXPECT_TRUE(container->keyless);
  EXPECT_EQ(container->map->ranges().size(), 1u);
  auto refused =
      node.Run(node.catalog().CreateContainer("d", Json(R"({"id":"e"})"), {.manual = 10'100}));
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  Status raised = node.Run(
      node.catalog().ReplaceOffer(container->offer->number, {.autoscale_max = 11'000}, ""));
  EXPECT_EQ(raised.code(), Code::kInvalidArgument);
  EXPECT_TRUE(
      node.Run(node.catalog().ReplaceOffer(container->offer->number, {.manual = 10'000}, "")).ok());
}

TEST(ContainerRulesTest, AKeyIsNeitherGivenNorTakenLater) {
  TestNode node{TestMachine()};
  node.MakeContainer(R"({"id":"none"})");
  node.MakeContainer(R"({"id":"keyed","partitionKey":{"paths":["/_partitionKey"]}})");
  auto replace = [&](const char* link, const char* definition) {
    auto done = node.Run(node.catalog().ReplaceContainer(link, Json(definition), ""));
    return done ? Code::kOk : done.error().code();
  };
  EXPECT_EQ(replace("dbs/d/colls/none", R"({"id":"none","defaultTtl":5})"), Code::kOk);
  EXPECT_EQ(
      replace("dbs/d/colls/none", R"({"id":"none","partitionKey":{"paths":["/_partitionKey"]}})"),
      Code::kInvalidArgument);
  EXPECT_EQ(replace("dbs/d/colls/keyed", R"({"id":"keyed"})"), Code::kInvalidArgument);
}

}  // namespace
}  // namespace orrery::model
