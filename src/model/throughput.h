// Throughput: what an offer means. Shares of partitions, the least that can be asked for, what
// autoscale comes to. Pure functions.
//
// Shares are equal (the default) or custom: set one by one. A partition that has none of its own,
// because it is newer than the list, has it from its parents: half of the one that was split, all
// of those that were merged. So the shares always add up to the offer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "model/catalog_evaluate.h"
#include "model/catalog_types.h"
#include "partition/partition_map.h"
#include "partition/pricing.h"

namespace orrery::model {

// RU/s of one partition. REQUIRES: the map has it.
partition::RequestUnits ShareOf(const Offer& offer, const partition::PartitionMap& map,
                                PartitionId partition);

// What a partition of an autoscale offer is scaled to, by what it sustained for five seconds (see
// Governor::Sustained): a tenth of its share at least, all of it at most.
partition::RequestUnits ScaledShare(partition::RequestUnits share,
                                    partition::RequestUnits sustained);
// In whole RU/s.
uint64_t WholeUnits(partition::RequestUnits units);

// What decides how low an offer may go.
struct OfferUse {
  uint64_t most = 0;   // RU/s that it ever had
  uint64_t bytes = 0;  // of all that it is for
  size_t sharing = 0;  // containers that share it; of a database
};
// The least that can be asked for: manual, or as the maximum of autoscale.
uint64_t LeastThroughput(const OfferUse& use, bool autoscale, const CatalogLimits& limits);
// Whether it may be asked for. kInvalidArgument in the words of the service.
Status CheckAmount(uint64_t throughput, bool autoscale, const OfferUse& use,
                   const CatalogLimits& limits);
// What a manual offer becomes when it is turned into autoscale.
uint64_t MigratedMaximum(const Offer& manual, const OfferUse& use, const CatalogLimits& limits);

// Whether partitions must still be split for it.
bool ReplacePending(const Offer& offer, const partition::PartitionMap& map,
                    uint64_t partition_throughput);

// kInvalidArgument says what is wrong.
Status CheckBuckets(const partition::Buckets& buckets);
// The offer with these shares; partitions that are not named keep theirs, and the throughput
// becomes the sum. None: equal shares of the throughput that there is.
Result<Offer> Redistribute(Offer offer, const partition::PartitionMap& map,
                           std::span<const PartitionShare> shares, const CatalogLimits& limits);

}  // namespace orrery::model
