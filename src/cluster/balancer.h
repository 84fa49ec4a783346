// Balancer: begins splits and merges, on the node that leads the catalog. What should happen is
// decided by the pure functions of model/elastic.h; the leaders of the partitions carry it out
// (model/reshaper.h).
//
// On the first worker.
#pragma once

#include <map>

#include "base/time.h"
#include "model/catalog.h"
#include "model/elastic.h"

namespace orrery::cluster {

struct BalancerOptions {
  model::ElasticLimits limits;
  // Neighbours that were small and cold for so long are merged.
  Duration merge_after = std::chrono::minutes(10);
};

// What is known of partitions, by those who lead them.
using PartitionLoads = std::map<PartitionId, model::PartitionLoad>;

class Balancer {
 public:
  Balancer(model::Catalog& catalog, const Clock& clock, BalancerOptions options)
      : catalog_(catalog), clock_(clock), options_(options) {}

  // Does what is to be done now; nothing while it is paused.
  runtime::Task<> Once(const PartitionLoads& loads);

 private:
  runtime::Task<bool> Split(const model::Container& container,
                            std::span<const model::PartitionLoad> loads);
  runtime::Task<> Merge(const model::Container& container,
                        std::span<const model::PartitionLoad> loads);

  model::Catalog& catalog_;
  const Clock& clock_;
  const BalancerOptions options_;
  // Splits that were begun, with the size at which: what is as large as then was not divided.
  std::map<PartitionId, double> begun_;
  std::map<PartitionId, Instant> cold_since_;  // by the left one of two
};

}  // namespace orrery::cluster
