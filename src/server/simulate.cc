#include "server/simulate.h"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>

#include "forecast/chart.h"
#include "forecast/forecast.h"
#include "types/document.h"

namespace orrery::server {

using forecast::Sample;
using forecast::Scenario;

namespace {

constexpr size_t kRowsMax = 20;

// "500GB", "10TB", "30PB".
Result<double> ParseSize(const std::string& text) {
  static const std::map<std::string, double, std::less<>> kUnits = {
      {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}};
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = kUnits.find(std::string_view(end, text.data() + text.size()));
  if (error != std::errc() || unit == kUnits.end()) {
    return Error(Code::kInvalidArgument,
                 "a size is a number with GB, TB or PB, not '" + text + "'");
  }
  return number * unit->second;
}

Result<Scenario> ScenarioOf(const SimulateOptions& options) {
  Scenario scenario;
  ORRERY_TRY(scenario.keys, forecast::ParseKeyKind(options.keys));
  ORRERY_TRY(scenario.bytes, ParseSize(options.size));
  if (!options.node_size.empty()) {
    ORRERY_TRY(scenario.node_bytes, ParseSize(options.node_size));
  }
  for (const std::string& text : options.events) {
    ORRERY_TRY(forecast::Event event, forecast::ParseEvent(text));
    scenario.events.push_back(event);
  }
  scenario.key_count = options.key_count;
  scenario.demand = options.demand;
  scenario.throughput = options.throughput;
  scenario.nodes = options.nodes;
  scenario.zones = options.zones;
  scenario.steps = options.days;
  scenario.seed = options.seed;
  if (Status status = forecast::Check(scenario); !status.ok()) {
    return Error(status);
  }
  return scenario;
}

double PercentOf(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void PrintTable(const Scenario& scenario, const std::vector<Sample>& samples) {
  std::printf("%5s %10s %8s %8s %10s %10s %8s %9s %9s %10s %10s %7s %7s\n", "day", "data", "nodes",
              "parts", "median", "largest", "splits", "busiest", "throttled", "node mean",
              "node most", "moves", "merges");
  size_t every = (samples.size() + kRowsMax - 1) / kRowsMax;
  size_t splits = 0;
  size_t moves = 0;
  size_t merges = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& one = samples[i];
    splits += one.splits;
    moves += one.moves;
    merges += one.merges;
    if ((i + 1) % every != 0 && i + 1 != samples.size()) {
      continue;
    }
    std::printf("%5zu %10s %8zu %8zu %10s %10s %8zu %8.0f%% %8.0f%% %10s %10s %7zu %7zu\n",
                one.step + 1, forecast::BytesText(one.bytes).c_str(), one.nodes, one.partitions,
                forecast::BytesText(one.bytes_median).c_str(),
                forecast::BytesText(one.bytes_largest).c_str(), splits,
                PercentOf(one.used_largest, one.share),
                PercentOf(one.throttled, one.used + one.throttled),
                forecast::BytesText(one.node_bytes_mean).c_str(),
                forecast::BytesText(one.node_bytes_most).c_str(), moves, merges);
    splits = moves = merges = 0;
  }
  std::printf("\n");
  for (const std::string& verdict : forecast::Verdicts(scenario, samples)) {
    std::printf("%s\n", verdict.c_str());
  }
}

void PrintJson(const Scenario& scenario, const std::vector<Sample>& samples) {
  std::string out =
      "{\"keys\":\"" + std::string(forecast::KeyKindName(scenario.keys)) + "\",\"verdicts\":[";
  bool first = true;
  for (const std::string& verdict : forecast::Verdicts(scenario, samples)) {
    out += std::exchange(first, false) ? "" : ",";
    types::AppendJsonString(verdict, out);
  }
  out += "],\"days\":[";
  first = true;
  for (const Sample& one : samples) {
    char line[1024];
    std::snprintf(
        line, sizeof(line),
        "%s{\"day\":%zu,\"bytes\":%.0f,\"refusedBytes\":%.0f,\"keysAtLimit\":%zu,\"nodes\":%zu,"
        "\"partitions\":%zu,\"partitionBytesMedian\":%.0f,\"partitionBytesLargest\":%.0f,"
        "\"overLimit\":%zu,\"share\":%.2f,\"usedMedian\":%.2f,\"usedLargest\":%.2f,"
        "\"throughput\":%llu,\"used\":%.2f,\"throttled\":%.2f,\"nodeBytesLeast\":%.0f,"
        "\"nodeBytesMean\":%.0f,\"nodeBytesMost\":%.0f,\"nodeUsedMean\":%.2f,\"nodeUsedMost\":%.2f,"
        "\"splits\":%zu,\"merges\":%zu,\"moves\":%zu}",
        std::exchange(first, false) ? "" : ",", one.step + 1, one.bytes, one.refused_bytes,
        one.keys_at_limit, one.nodes, one.partitions, one.bytes_median, one.bytes_largest,
        one.over_limit, one.share, one.used_median, one.used_largest,
        static_cast<unsigned long long>(one.throughput), one.used, one.throttled,
        one.node_bytes_least, one.node_bytes_mean, one.node_bytes_most, one.node_used_mean,
        one.node_used_most, one.splits, one.merges, one.moves);
    out += line;
  }
  std::printf("%s]}\n", out.c_str());
}

}  // namespace

int RunSimulate(const SimulateOptions& options) {
  Result<Scenario> scenario = ScenarioOf(options);
  if (!scenario) {
    std::fprintf(stderr, "orrery simulate: %s\n", scenario.error().message().c_str());
    return 2;
  }
  std::vector<Sample> samples = forecast::Simulate(*scenario);
  if (!options.svg.empty()) {
    std::ofstream file(options.svg);
    file << forecast::Chart(*scenario, samples);
    file.close();
    if (!file) {
      std::fprintf(stderr, "orrery simulate: cannot write %s\n", options.svg.c_str());
      return 1;
    }
  }
  options.json ? PrintJson(*scenario, samples) : PrintTable(*scenario, samples);
  return 0;
}

}  // namespace orrery::server
