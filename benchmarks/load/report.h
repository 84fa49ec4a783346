// Report: the figures of one run, as a table row for people or a line of JSON for benchmarks/run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "load/loop.h"
#include "load/options.h"

namespace orrery::load {

struct Report {
  LoopResult result;
  double seconds = 0;  // measured
  double generator_cpu_us_per_op = 0;
  std::optional<double> server_cpu_us_per_op;
  std::optional<double> allocations_per_op;
  std::optional<uint64_t> server_rss_kb;  // with all connections open
  std::optional<double> create_container_ms;
  std::optional<double> back_ms;  // from the kill to the first success of a request sent after it
};

std::string ToText(const Options& options, const Report& report);
std::string ToJson(const Options& options, const Report& report);

}  // namespace orrery::load
