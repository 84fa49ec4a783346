// Evaluate: what a change of the catalog writes, or why it is refused. A pure function of the view,
// the limits and the time; only the leader of the meta group calls it.
#pragma once

#include <cstdint>
#include <functional>

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "model/catalog_change.h"
#include "model/catalog_types.h"
#include "model/placement.h"
#include "storage/write_set.h"

namespace orrery::model {

// Which containers are fixed: as the documents say, or as the service does today, where every one
// with a partition key is unlimited.
enum class RuleSet : uint8_t { kDocuments, kCurrent };

// The rules of throughput and size; every limit is a setting.
struct CatalogLimits {
  uint64_t partition_throughput = 10'000;  // t, RU/s of one physical partition
  uint64_t throughput_min = 400;
  uint64_t throughput_max = 1'000'000;
  uint64_t autoscale_min = 1'000;
  uint64_t default_throughput = 400;
  size_t resources_max = 500;  // databases and containers together
  size_t reshapes_max = 4;     // of partitions, at a time
  RuleSet rules = RuleSet::kDocuments;
  uint64_t unlimited_throughput = 1'000;  // by the documents: with less a container is fixed
  uint64_t fixed_throughput = 10'000;     // RU/s of a fixed container
  uint64_t fixed_bytes = 10ull << 30;     // of a fixed container
  uint64_t logical_bytes = 20ull << 30;   // of a logical partition
  PlacementSettings placement;
};

struct EvaluationInput {
  const CatalogView& view;
  CatalogCounters next;  // at least those of the view
  const CatalogLimits& limits;
  WallTime now;  // later than every time before, so that etags differ
  const ClusterHealth& health;
  Random& random;  // for the id of a new cluster
};

struct Evaluated {
  storage::WriteSet set;  // with id, result and time; empty: there is nothing to change
  ChangeOutcome outcome;
  CatalogCounters next;  // after the ids that were given out
};

Result<Evaluated> Evaluate(const CatalogChange& change, const EvaluationInput& input);

}  // namespace orrery::model
