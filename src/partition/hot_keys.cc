#include "partition/hot_keys.h"

#include <algorithm>
#include <cmath>

namespace orrery::partition {

namespace {

constexpr double kKeptPerSecond = 0.9;
constexpr double kAddedPerSecond = 256;

}  // namespace

void HotKeys::MoveTo(Instant now) {
  int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (second_ < 0) {
    second_ = first_second_ = second;
  }
  if (second <= second_) {
    return;
  }
  double kept = std::pow(kKeptPerSecond, static_cast<double>(second - second_));
  all_ *= kept;
  for (Entry& entry : entries_) {
    entry.weight *= kept;
    entry.error *= kept;
  }
  double per_second = this_second_ / static_cast<double>(second - second_);
  step_.store(std::max<uint64_t>(1, static_cast<uint64_t>(per_second / kAddedPerSecond)),
              std::memory_order_relaxed);
  this_second_ = 0;
  second_ = second;
}

void HotKeys::Add(std::string_view key, uint64_t charge, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  // It stands for those that were not picked.
  auto weight = static_cast<double>(std::max(charge, step_.load(std::memory_order_relaxed)));
  all_ += weight;
  this_second_ += weight;
  if (key.empty()) {
    return;
  }
  auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end() && entries_.size() < kEntries) {
    entries_.push_back({.key = std::string(key)});
    found = entries_.end() - 1;
  } else if (found == entries_.end()) {
    found = std::ranges::min_element(entries_, {}, &Entry::weight);
    found->key = key;
    found->error = found->weight;
  }
  found->weight += weight;
}

std::vector<HotKeys::Key> HotKeys::Top(size_t most, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  std::vector<Key> keys;
  // How many seconds' worth the weights are, the running one counted whole.
  double seconds =
      (1 - std::pow(kKeptPerSecond, static_cast<double>(second_ - first_second_ + 1))) /
      (1 - kKeptPerSecond);
  for (const Entry& entry : entries_) {
    double sure = entry.weight - entry.error;
    keys.push_back({.key = entry.key,
                    .units_per_second = sure / 100 / seconds,
                    .share = all_ > 0 ? sure / all_ : 0});
  }
  std::ranges::sort(keys, std::greater(), &Key::share);
  // What is left of old ones says nothing.
  std::erase_if(keys, [](const Key& key) { return key.units_per_second < 0.01; });
  keys.resize(std::min(keys.size(), most));
  return keys;
}

}  // namespace orrery::partition
