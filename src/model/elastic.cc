#include "model/elastic.h"

#include <algorithm>
#include <utility>

#include "partition/partition_map.h"

namespace orrery::model {

namespace {

// A cut that leaves less than this part on one side is not worth it.
constexpr double kSmallestPart = 0.05;
// Two neighbours are merged if they have less than this part of what would make them split.
constexpr double kMergeBelow = 0.5;
// A node gives replicas away when it is so much fuller than the mean.
constexpr double kFullerBy = 0.05;

}  // namespace

double ShareOf(uint64_t throughput, size_t partitions) {
  return partitions == 0 ? 0 : static_cast<double>(throughput) / static_cast<double>(partitions);
}

std::vector<size_t> ChooseSplits(std::span<const PartitionLoad> partitions, uint64_t throughput,
                                 const ElasticLimits& limits) {
  size_t needed = partition::PartitionCount(throughput, limits.partition_throughput);
  std::vector<size_t> chosen;
  std::vector<size_t> others;
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i].divisible) {
      (partitions[i].bytes >= limits.partition_bytes ? chosen : others).push_back(i);
    }
  }
  auto largest_first = [&](size_t i) { return std::pair(-partitions[i].bytes, i); };
  std::ranges::sort(chosen, {}, largest_first);
  size_t there = partitions.size() + chosen.size();
  size_t lacking = there < needed ? std::min(needed - there, others.size()) : 0;
  auto end = others.begin() + static_cast<std::ptrdiff_t>(lacking);
  std::ranges::partial_sort(others, end, {}, largest_first);
  chosen.insert(chosen.end(), others.begin(), end);
  return chosen;
}

std::vector<size_t> ChooseMerges(std::span<const PartitionLoad> partitions, uint64_t throughput,
                                 const ElasticLimits& limits) {
  size_t needed =
      std::max<size_t>(1, partition::PartitionCount(throughput, limits.partition_throughput));
  std::vector<size_t> chosen;
  for (size_t i = 0; i + 1 < partitions.size(); ++i) {
    if (partitions.size() - chosen.size() <= needed) {
      break;
    }
    double share = ShareOf(throughput, partitions.size() - chosen.size() - 1);
    double bytes = partitions[i].bytes + partitions[i + 1].bytes;
    double used = partitions[i].used + partitions[i + 1].used;
    if (bytes < kMergeBelow * limits.partition_bytes && used < kMergeBelow * share) {
      chosen.push_back(i);
      ++i;
    }
  }
  return chosen;
}

std::optional<uint64_t> ChooseCut(uint64_t first, uint64_t last, const BytesUpTo& bytes) {
  const double all = bytes(last);
  // Where half is reached.
  uint64_t low = first;
  uint64_t high = last;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (bytes(middle) * 2 < all) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // The logical partition at this place goes to the right, or to the left.
  std::optional<uint64_t> best;
  double smaller = kSmallestPart * all;
  auto look = [&](uint64_t left_last) {
    double left = bytes(left_last);
    if (std::min(left, all - left) > smaller) {
      smaller = std::min(left, all - left);
      best = left_last + 1;
    }
  };
  if (low > first) {
    look(low - 1);
  }
  if (low < last) {
    look(low);
  }
  return best;
}

double MeanFill(std::span<const NodeFill> nodes) {
  double bytes = 0;
  double capacity = 0;
  for (const NodeFill& node : nodes) {
    if (node.usable) {
      bytes += node.bytes;
      capacity += node.capacity;
    }
  }
  return capacity == 0 ? 0 : bytes / capacity;
}

bool ShouldMove(const NodeFill& from, const NodeFill& to, double bytes, double mean_fill) {
  if (!to.usable || from.capacity <= 0 || to.capacity <= 0) {
    return false;
  }
  double from_after = (from.bytes - bytes) / from.capacity;
  double to_after = (to.bytes + bytes) / to.capacity;
  const double clearly_fuller = mean_fill * (1 + kFullerBy);
  return from.bytes / from.capacity > clearly_fuller && to_after <= clearly_fuller &&
         to_after <= from_after;
}

}  // namespace orrery::model
