#include "model/throughput.h"

#include <algorithm>
#include <map>
#include <string>

namespace orrery::model {

using partition::PartitionMap;
using partition::PartitionRange;
using partition::RequestUnits;

namespace {

constexpr uint64_t kGigabyte = 1ull << 30;
constexpr uint64_t kManualStep = 100;
constexpr uint64_t kAutoscaleStep = 1000;
constexpr size_t kSharingFree = 25;  // containers of a database that do not raise its floor
constexpr int64_t kHundred = 100;    // hundredths in a unit

uint64_t DivideUp(uint64_t value, uint64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

uint64_t RoundUp(uint64_t value, uint64_t step) { return DivideUp(value, step) * step; }

RequestUnits Units(uint64_t whole) {
  return RequestUnits::Hundredths(static_cast<int64_t>(whole) * kHundred);
}

// Looks shares up in the list, and where it has none at the parents. What it has found it
// remembers: after many splits and merges one ancestor is reached on many ways.
class CustomShares {
 public:
  CustomShares(const Offer& offer, const PartitionMap& map) : map_(map) {
    for (const PartitionShare& share : offer.custom) {
      known_[share.partition] = Units(share.throughput);
    }
  }

  RequestUnits Of(PartitionId id) {
    if (auto found = known_.find(id); found != known_.end()) {
      return found->second;
    }
    RequestUnits sum;
    if (const PartitionRange* range = map_.FindId(id)) {
      for (PartitionId parent : range->parents) {
        sum += parent < id ? Of(parent) : RequestUnits();  // ids grow
      }
      if (range->parents.size() == 1) {
        sum = RequestUnits::Hundredths(sum.hundredths() / 2);
      }
    }
    return known_[id] = sum;
  }

 private:
  const PartitionMap& map_;
  std::map<PartitionId, RequestUnits> known_;
};

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

}  // namespace

RequestUnits ShareOf(const Offer& offer, const PartitionMap& map, PartitionId partition) {
  RequestUnits share;
  if (offer.custom.empty()) {
    share = RequestUnits::Hundredths(Units(offer.spendable()).hundredths() /
                                     static_cast<int64_t>(map.ranges().size()));
  } else {
    auto listed = std::ranges::lower_bound(offer.custom, partition, {}, &PartitionShare::partition);
    bool found = listed != offer.custom.end() && listed->partition == partition;
    share = found ? Units(listed->throughput) : CustomShares(offer, map).Of(partition);
  }
  return std::max(share, RequestUnits(1));
}

RequestUnits ScaledShare(RequestUnits share, RequestUnits sustained) {
  return std::clamp(sustained, RequestUnits::Hundredths(share.hundredths() / 10), share);
}

uint64_t WholeUnits(RequestUnits units) {
  return DivideUp(static_cast<uint64_t>(std::max<int64_t>(units.hundredths(), 0)), kHundred);
}

uint64_t LeastThroughput(const OfferUse& use, bool autoscale, const CatalogLimits& limits) {
  const uint64_t more = use.sharing > kSharingFree ? use.sharing - kSharingFree : 0;
  if (autoscale) {
    uint64_t least = std::max({limits.autoscale_min + more * kAutoscaleStep, DivideUp(use.most, 10),
                               DivideUp(use.bytes * 10, kGigabyte)});
    return RoundUp(least, kAutoscaleStep);
  }
  uint64_t least = std::max({limits.throughput_min + more * kManualStep, DivideUp(use.most, 100),
                             DivideUp(use.bytes, kGigabyte)});
  return RoundUp(least, kManualStep);
}

Status CheckAmount(uint64_t throughput, bool autoscale, const OfferUse& use,
                   const CatalogLimits& limits) {
  const uint64_t least = LeastThroughput(use, autoscale, limits);
  const uint64_t step = autoscale ? kAutoscaleStep : kManualStep;
  if (throughput >= least && throughput <= limits.throughput_max && throughput % step == 0) {
    return Status::Ok();
  }
  return Invalid("The offer should have valid throughput values between " + std::to_string(least) +
                 " and " + std::to_string(limits.throughput_max) + " inclusive in increments of " +
                 std::to_string(step) + ".");
}

uint64_t MigratedMaximum(const Offer& manual, const OfferUse& use, const CatalogLimits& limits) {
  uint64_t least = LeastThroughput(use, true, limits);
  return std::max(least, RoundUp(manual.manual, kAutoscaleStep));
}

bool ReplacePending(const Offer& offer, const PartitionMap& map, uint64_t partition_throughput) {
  RequestUnits most(static_cast<double>(partition_throughput));
  return partition::PartitionCount(offer.spendable(), partition_throughput) > map.ranges().size() ||
         std::ranges::any_of(map.ranges(), [&](const PartitionRange& range) {
           return !offer.custom.empty() && ShareOf(offer, map, range.id) > most;
         });
}

Status CheckBuckets(const partition::Buckets& buckets) {
  for (uint8_t percent : buckets.percent) {
    if (percent > 100) {
      return Invalid("A throughput bucket may have at most 100 percent of the throughput.");
    }
  }
  if (buckets.unmarked != 0 && buckets.Of({.bucket = buckets.unmarked}) == 0) {
    return Invalid("The default bucket " + std::to_string(buckets.unmarked) +
                   " is not one of the throughput buckets.");
  }
  return Status::Ok();
}

Result<Offer> Redistribute(Offer offer, const PartitionMap& map,
                           std::span<const PartitionShare> shares, const CatalogLimits& limits) {
  if (shares.empty()) {
    offer.custom.clear();
    return offer;
  }
  std::map<PartitionId, uint64_t> wanted;
  for (const PartitionShare& share : shares) {
    const std::string name = "partition " + share.partition.ToString();
    if (!wanted.emplace(share.partition, share.throughput).second) {
      return Error(Invalid("The " + name + " is named twice."));
    }
    if (std::ranges::find(map.ranges(), share.partition, &PartitionRange::id) ==
        map.ranges().end()) {
      return Error(Invalid("The container has no " + name + "."));
    }
    // With more than one partition can have it is split, and its heirs share it.
    if (share.throughput == 0 || share.throughput > 2 * limits.partition_throughput) {
      return Error(Invalid("The throughput of " + name + " must be between 1 and " +
                           std::to_string(2 * limits.partition_throughput) + " RU/s."));
    }
  }
  CustomShares before(offer, map);
  std::vector<PartitionShare> custom;
  uint64_t sum = 0;
  for (const PartitionRange& range : map.ranges()) {
    auto named = wanted.find(range.id);
    RequestUnits kept = offer.custom.empty() ? ShareOf(offer, map, range.id) : before.Of(range.id);
    uint64_t throughput =
        named != wanted.end()
            ? named->second
            : std::max<uint64_t>(1, static_cast<uint64_t>(kept.hundredths() / kHundred));
    custom.push_back({.partition = range.id, .throughput = throughput});
    sum += throughput;
  }
  const uint64_t least =
      LeastThroughput({.most = std::max(offer.most(), sum)}, offer.autoscale(), limits);
  if (sum < least || sum > limits.throughput_max) {
    return Error(Invalid("The throughput of all partitions together would be " +
                         std::to_string(sum) + " RU/s; it must be between " +
                         std::to_string(least) + " and " + std::to_string(limits.throughput_max) +
                         "."));
  }
  std::ranges::sort(custom, {}, &PartitionShare::partition);
  offer.custom = std::move(custom);
  offer.chosen = true;
  (offer.autoscale() ? offer.autoscale_max : offer.manual) = sum;
  return offer;
}

}  // namespace orrery::model
