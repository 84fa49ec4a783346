#include "cluster/balancer.h"

#include <algorithm>
#include <set>

#include "model/container_kind.h"
#include "model/throughput.h"

namespace orrery::cluster {

using model::Container;
using model::PartitionLoad;
using runtime::Task;

namespace {

// A partition that could not be divided is tried again when it has grown by so much.
constexpr double kTryAgain = 1.1;

}  // namespace

Task<> Balancer::Once(const PartitionLoads& loads) {
  auto view = catalog_.view();
  if (view->balancer_paused || !catalog_.leads()) {
    co_return;
  }
  std::set<PartitionId> there;
  for (const auto& [id, container] : view->containers_by_id) {
    std::vector<PartitionLoad> list;
    for (const partition::PartitionRange& range : container->map->ranges()) {
      there.insert(range.id);
      auto known = loads.find(range.id);
      if (known == loads.end()) {
        break;
      }
      PartitionLoad& load = list.emplace_back(known->second);
      auto begun = begun_.find(range.id);
      load.divisible = begun == begun_.end() || load.bytes > begun->second * kTryAgain;
    }
    // One thing after the other, and only if everything is known.
    if (model::MaySplit(*container, catalog_.limits()) && container->reshapes.empty() &&
        list.size() == container->map->ranges().size() && !co_await Split(*container, list)) {
      co_await Merge(*container, list);
    }
  }
  std::erase_if(begun_, [&](const auto& one) { return !there.contains(one.first); });
  std::erase_if(cold_since_, [&](const auto& one) { return !there.contains(one.first); });
}

// Whether there is something to split.
Task<bool> Balancer::Split(const Container& container, std::span<const PartitionLoad> loads) {
  uint64_t throughput = container.offer ? container.offer->spendable() : 0;
  std::vector<size_t> chosen = ChooseSplits(loads, throughput, options_.limits);
  // A share that somebody chose and that one partition cannot have.
  partition::RequestUnits most(static_cast<double>(options_.limits.partition_throughput));
  for (size_t i = 0; i < loads.size() && container.offer && !container.offer->custom.empty(); ++i) {
    PartitionId id = container.map->ranges()[i].id;
    if (loads[i].divisible && ShareOf(*container.offer, *container.map, id) > most &&
        std::ranges::find(chosen, i) == chosen.end()) {
      chosen.push_back(i);
    }
  }
  for (size_t i : chosen) {
    PartitionId id = container.map->ranges()[i].id;
    Status status = co_await catalog_.BeginReshape(container.id, {id});
    if (!status.ok()) {
      break;  // enough for now
    }
    begun_[id] = loads[i].bytes;
  }
  co_return !chosen.empty();
}

Task<> Balancer::Merge(const Container& container, std::span<const PartitionLoad> loads) {
  if (container.offer && !container.offer->custom.empty()) {
    co_return;  // the sum of two shares that somebody chose may be more than one can have
  }
  uint64_t throughput = container.offer ? container.offer->spendable() : 0;
  std::vector<size_t> chosen = ChooseMerges(loads, throughput, options_.limits);
  std::set<PartitionId> cold;
  for (size_t i : chosen) {
    std::vector<PartitionId> two{container.map->ranges()[i].id, container.map->ranges()[i + 1].id};
    cold.insert(two[0]);
    Instant since = cold_since_.try_emplace(two[0], clock_.Now()).first->second;
    if (clock_.Now() - since >= options_.merge_after) {
      Status status = co_await catalog_.BeginReshape(container.id, two);
      if (!status.ok()) {
        break;
      }
      cold_since_.erase(two[0]);
    }
  }
  for (const partition::PartitionRange& range : container.map->ranges()) {
    if (!cold.contains(range.id)) {
      cold_since_.erase(range.id);
    }
  }
}

}  // namespace orrery::cluster
