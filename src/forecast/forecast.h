// Forecast: what a partition key, a throughput and events do to the partitions and nodes of an
// imagined cluster over time. The decisions are those of model/elastic and model/placement; data,
// requests and time are imagined. Nothing is random but by the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "forecast/keys.h"
#include "model/elastic.h"

namespace orrery::forecast {

struct Event {
  enum class Kind : uint8_t { kLoseNodes, kAddNodes, kThroughput };
  size_t step = 0;
  Kind kind = Kind::kLoseNodes;
  uint64_t value = 0;
};
// "30:lose=2", "40:add=5", "50:throughput=200000".
Result<Event> ParseEvent(std::string_view text);

struct Scenario {
  KeyKind keys = KeyKind::kUniform;
  uint64_t key_count = 1'000'000;
  double bytes = 10e12;     // at the end; it grows evenly
  double demand = 500'000;  // RU/s of requests, if nothing were throttled
  uint64_t throughput = 600'000;
  size_t nodes = 40;
  size_t zones = 4;
  double node_bytes = 0;  // capacity; 0: what the data need at the end, and half as much
  size_t steps = 100;     // days
  uint64_t seed = 1;
  model::ElasticLimits limits;
  std::vector<Event> events;
};
// kInvalidArgument says what cannot be.
Status Check(const Scenario& scenario);

// How it stood after a step.
struct Sample {
  size_t step = 0;
  size_t partitions = 0;
  size_t nodes = 0;
  double bytes = 0;
  double refused_bytes = 0;  // at the limit of logical partitions
  size_t keys_at_limit = 0;
  // Of partitions.
  double bytes_median = 0;
  double bytes_largest = 0;
  size_t over_limit = 0;  // larger than a partition should be
  double share = 0;       // RU/s of each
  double used_median = 0;
  double used_largest = 0;
  // Of the container.
  uint64_t throughput = 0;
  double used = 0;
  double throttled = 0;
  // Of nodes.
  double node_bytes_least = 0;
  double node_bytes_mean = 0;
  double node_bytes_most = 0;
  double node_used_mean = 0;
  double node_used_most = 0;
  // In this step.
  size_t splits = 0;
  size_t merges = 0;
  size_t moves = 0;
};

// REQUIRES: Check(scenario) is ok.
std::vector<Sample> Simulate(const Scenario& scenario);

// What a person should know of it, a sentence each.
std::vector<std::string> Verdicts(const Scenario& scenario, const std::vector<Sample>& samples);

}  // namespace orrery::forecast
