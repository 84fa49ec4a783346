#include "forecast/forecast.h"

#include <gtest/gtest.h>

#include "forecast/chart.h"

namespace orrery::forecast {
namespace {

Scenario Of(KeyKind keys) {
  Scenario scenario;
  scenario.keys = keys;
  scenario.steps = 50;
  return scenario;
}

bool Says(const Scenario& scenario, const std::vector<Sample>& samples, std::string_view words) {
  for (const std::string& verdict : Verdicts(scenario, samples)) {
    if (verdict.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(ForecastTest, UniformKeysFillAllPartitionsAlikeAndThrottleNobody) {
  Scenario scenario = Of(KeyKind::kUniform);
  std::vector<Sample> samples = Simulate(scenario);
  const Sample& last = samples.back();
  EXPECT_NEAR(last.bytes, 10e12, 1e9);
  EXPECT_LE(last.bytes_largest, scenario.limits.partition_bytes);
  EXPECT_GE(last.partitions, 10e12 / scenario.limits.partition_bytes);
  EXPECT_LE(last.bytes_largest, 2.1 * last.bytes_median);
  EXPECT_EQ(last.over_limit, 0u);
  EXPECT_TRUE(Says(scenario, samples, "a good key"));
}

TEST(ForecastTest, AHotTenantIsThrottledWhileThroughputLiesIdle) {
  Scenario scenario = Of(KeyKind::kHotTenant);
  std::vector<Sample> samples = Simulate(scenario);
  EXPECT_GT(samples.back().throttled, 0.4 * scenario.demand);
  EXPECT_EQ(samples.back().keys_at_limit, 1u);
  EXPECT_TRUE(Says(scenario, samples, "too few partitions"));
  EXPECT_TRUE(Says(scenario, samples, "logical partitions are full"));
}

TEST(ForecastTest, ByTimeOnePartitionGetsEverything) {
  Scenario scenario = Of(KeyKind::kTime);
  scenario.bytes = 500e9;  // 10 GB a day
  std::vector<Sample> samples = Simulate(scenario);
  EXPECT_GT(samples.back().throttled, 0.8 * scenario.demand);
  EXPECT_NEAR(samples.back().used_largest, samples.back().share, 1);
  EXPECT_EQ(samples.back().keys_at_limit, 0u);
}

TEST(ForecastTest, MoreThroughputSplitsAndLessMerges) {
  Scenario scenario = Of(KeyKind::kUniform);
  scenario.bytes = 100e9;
  scenario.demand = 1000;
  scenario.throughput = 40'000;
  scenario.events = {*ParseEvent("10:throughput=160000"), *ParseEvent("30:throughput=20000")};
  std::vector<Sample> samples = Simulate(scenario);
  EXPECT_EQ(samples[8].partitions, 4u);
  EXPECT_EQ(samples[9].partitions, 16u);
  EXPECT_EQ(samples[9].splits, 12u);
  EXPECT_LT(samples.back().partitions, 16u);
  EXPECT_GE(samples.back().partitions, 2u);
  for (const Sample& sample : samples) {
    EXPECT_NEAR(sample.share * static_cast<double>(sample.partitions),
                static_cast<double>(sample.throughput), 1);
  }
}

TEST(ForecastTest, LostNodesAreMadeUpForAndNewOnesFillThenItIsQuiet) {
  Scenario scenario = Of(KeyKind::kZipf);
  scenario.bytes = 2e12;
  scenario.demand = 1000;
  scenario.zones = 1;  // else one that lost more nodes than others stays fuller
  scenario.events = {*ParseEvent("10:lose=4"), *ParseEvent("20:add=10")};
  std::vector<Sample> samples = Simulate(scenario);
  EXPECT_EQ(samples[9].nodes, 36u);
  EXPECT_GT(samples[9].moves, 0u);
  EXPECT_EQ(samples[19].nodes, 46u);
  const Sample& last = samples.back();
  EXPECT_GT(last.node_bytes_least, 0.5 * last.node_bytes_mean);
  EXPECT_LT(last.node_bytes_most, 1.5 * last.node_bytes_mean);
  EXPECT_LT(last.moves, 30u) << "the balance comes to an end";
}

TEST(ForecastTest, OfManyNodesNoneStaysFullerThanTheOthers) {
  Scenario scenario = Of(KeyKind::kUniform);
  scenario.nodes = 400;
  scenario.bytes = 400e12;
  scenario.throughput = 100'000;  // ten partitions at first: all data begin on forty nodes
  std::vector<Sample> samples = Simulate(scenario);
  EXPECT_LT(samples.back().node_bytes_most, 1.1 * samples.back().node_bytes_mean);
}

TEST(ForecastTest, TheSameSeedGivesTheSameForecast) {
  for (KeyKind keys : {KeyKind::kUniform, KeyKind::kZipf, KeyKind::kGrowing}) {
    Scenario scenario = Of(keys);
    scenario.steps = 10;
    std::vector<Sample> first = Simulate(scenario);
    std::vector<Sample> again = Simulate(scenario);
    EXPECT_EQ(Chart(scenario, first), Chart(scenario, again));
    EXPECT_EQ(first.back().moves, again.back().moves);
  }
}

TEST(ForecastTest, WhatCannotBeIsRefused) {
  EXPECT_FALSE(ParseKeyKind("nonsense"));
  EXPECT_EQ(*ParseKeyKind("hot-tenant"), KeyKind::kHotTenant);
  for (const char* text : {"", "10", "10:lose", "0:lose=1", "x:lose=1", "5:burn=1", "5:lose=x"}) {
    EXPECT_FALSE(ParseEvent(text)) << text;
  }
  Scenario scenario;
  EXPECT_TRUE(Check(scenario).ok());
  scenario.nodes = 3;
  EXPECT_FALSE(Check(scenario).ok());
  scenario = {};
  scenario.bytes = 1e18;
  EXPECT_FALSE(Check(scenario).ok()) << "too many partitions";
  scenario = {};
  scenario.bytes = 0;
  EXPECT_FALSE(Check(scenario).ok());
}

TEST(ForecastTest, AChartHasItsLinesInsideThePicture) {
  Scenario scenario = Of(KeyKind::kGrowing);
  std::string chart = Chart(scenario, Simulate(scenario));
  EXPECT_NE(chart.find("Storage of a partition"), std::string::npos);
  EXPECT_EQ(chart.find("nan"), std::string::npos);
  EXPECT_EQ(chart.find("inf"), std::string::npos);
  EXPECT_EQ(chart.substr(chart.size() - 7), "</svg>\n");
  EXPECT_EQ(BytesText(1.5e12), "1.5 TB");
  EXPECT_EQ(BytesText(0), "0 B");
}

}  // namespace
}  // namespace orrery::forecast
