#include "forecast/keys.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "forecast/dice.h"

namespace orrery::forecast {

namespace {

struct KindText {
  KeyKind kind;
  std::string_view name;
  std::string_view text;
};
constexpr KindText kKinds[] = {
    {KeyKind::kUniform, "uniform", "many values, all alike"},
    {KeyKind::kZipf, "zipf", "few large values, many small ones"},
    {KeyKind::kHotTenant, "hot-tenant", "one value has a third of the data, half of the requests"},
    {KeyKind::kTime, "time", "the time of writing"},
    {KeyKind::kGrowing, "growing", "values come one after the other, and grow"},
};

constexpr size_t kKnownMax = 20'000;  // large ones; the others are background
constexpr double kHotBytes = 0.33;
constexpr double kHotDemand = 0.5;
constexpr double kOldDemand = 0.1;  // of requests by time go to what was written before
constexpr double kWhole = 18446744073709551616.0;

double Width(uint64_t first, uint64_t last) {
  return (static_cast<double>(last - first) + 1) / kWhole;
}

}  // namespace

Result<KeyKind> ParseKeyKind(std::string_view name) {
  for (const KindText& one : kKinds) {
    if (one.name == name) {
      return one.kind;
    }
  }
  return Error(
      Code::kInvalidArgument,
      "keys are uniform, zipf, hot-tenant, time or growing, not '" + std::string(name) + "'");
}

std::string_view KeyKindName(KeyKind kind) { return kKinds[static_cast<size_t>(kind)].name; }
std::string_view KeyKindText(KeyKind kind) { return kKinds[static_cast<size_t>(kind)].text; }

Keys::Keys(KeyKind kind, uint64_t count, size_t steps, uint64_t seed) : kind_(kind), steps_(steps) {
  Dice dice(seed);
  size_t known = std::min<uint64_t>(count, kKnownMax);
  switch (kind) {
    case KeyKind::kUniform: known = 0; break;
    case KeyKind::kHotTenant: known = 1; break;
    case KeyKind::kTime: known = steps; break;
    case KeyKind::kZipf:
    case KeyKind::kGrowing: break;
  }
  share_.resize(known);
  born_.resize(known);
  double all = 0;
  for (size_t i = 0; i < known; ++i) {
    share_[i] = kind == KeyKind::kGrowing ? 0.1 + dice.Fraction() : 1 / static_cast<double>(i + 1);
    born_[i] = kind == KeyKind::kGrowing ? dice.Fraction() * static_cast<double>(steps) : 0;
    all += share_[i];
  }
  if (kind == KeyKind::kZipf && count > known) {
    // The tail of the harmonic series.
    double tail = std::log(static_cast<double>(count) / static_cast<double>(known));
    even_share_ = tail / (all + tail);
    all += tail;
  } else if (kind == KeyKind::kUniform) {
    even_share_ = 1;
  }
  for (double& share : share_) {
    share /= all;
  }
  std::vector<std::pair<uint64_t, size_t>> order(known);
  for (size_t i = 0; i < known; ++i) {
    order[i] = {dice.Next(), i};
  }
  std::ranges::sort(order);
  for (const auto& [place, rank] : order) {
    places_.push_back(place);
    rank_.push_back(rank);
  }
}

// Shares of the container at a step.
Keys::Weight Keys::WeightAt(size_t key, size_t step) const {
  auto now = static_cast<double>(step + 1);
  switch (kind_) {
    case KeyKind::kUniform: break;
    case KeyKind::kZipf: return {share_[key], share_[key]};
    case KeyKind::kHotTenant: return {kHotBytes, kHotDemand};
    case KeyKind::kTime:
      if (key > step) {
        break;
      }
      return {1 / now, key == step ? (step == 0 ? 1 : 1 - kOldDemand) : kOldDemand / (now - 1)};
    case KeyKind::kGrowing: {
      double age = std::max(0.0, now - born_[key]) / static_cast<double>(steps_);
      return {share_[key] * age, share_[key] * age};
    }
  }
  return {0, 0};
}

void Keys::MoveTo(size_t step, double bytes, double demand, double logical_bytes) {
  std::vector<Weight> weights(places_.size());
  Weight all{0, 0};
  for (size_t i = 0; i < places_.size(); ++i) {
    weights[i] = WeightAt(rank_[i], step);
    all.bytes += weights[i].bytes;
    all.demand += weights[i].demand;
  }
  if (kind_ == KeyKind::kGrowing && all.bytes > 0) {  // what there is makes up the whole
    for (Weight& weight : weights) {
      weight.bytes /= all.bytes;
      weight.demand /= all.demand;
    }
    all = {1, 1};
  }
  bool even = kind_ != KeyKind::kTime && kind_ != KeyKind::kGrowing;
  even_bytes_ = even ? bytes * std::max(0.0, 1 - all.bytes) : 0;
  even_demand_ = even ? demand * std::max(0.0, 1 - all.demand) : 0;
  bytes_before_.assign(1, 0);
  demand_before_.assign(1, 0);
  refused_ = 0;
  over_limit_ = 0;
  largest_ = 0;
  for (const Weight& weight : weights) {
    double wanted = bytes * weight.bytes;
    double kept = std::min(wanted, logical_bytes);
    refused_ += wanted - kept;
    over_limit_ += kept < wanted ? 1 : 0;
    largest_ = std::max(largest_, kept);
    bytes_before_.push_back(bytes_before_.back() + kept);
    demand_before_.push_back(demand_before_.back() + demand * weight.demand);
  }
}

size_t Keys::At(uint64_t place) const {
  return static_cast<size_t>(std::ranges::lower_bound(places_, place) - places_.begin());
}

double Keys::Bytes(uint64_t first, uint64_t last, size_t begin, size_t end) const {
  return even_bytes_ * Width(first, last) + bytes_before_[end] - bytes_before_[begin];
}

double Keys::Demand(uint64_t first, uint64_t last, size_t begin, size_t end) const {
  return even_demand_ * Width(first, last) + demand_before_[end] - demand_before_[begin];
}

}  // namespace orrery::forecast
