// Elastic: when and where partitions split and merge, and which replicas move. Pure functions of
// what is known about partitions and nodes; `orrery simulate` runs them over imagined ones.
//
// A container needs ceil(T/t) partitions for its throughput, and more if their data outgrow the
// limit of one. A split leaves 40 to 60 percent of the bytes on each side where the keys allow it,
// and never cuts a logical partition in two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace orrery::model {

struct ElasticLimits {
  double partition_bytes = 30e9;
  double logical_bytes = 20e9;
  uint64_t partition_throughput = 10'000;  // t
};

// A physical partition at the moment, in the order of the ring.
struct PartitionLoad {
  double bytes = 0;
  double used = 0;        // RU/s
  bool divisible = true;  // it holds more than one logical partition
};

// The share of each of `partitions` in a throughput, in RU/s.
double ShareOf(uint64_t throughput, size_t partitions);

// Which partitions should split now, the most urgent first: those that are full, the largest first;
// then the largest of the others, as many as the throughput lacks.
std::vector<size_t> ChooseSplits(std::span<const PartitionLoad> partitions, uint64_t throughput,
                                 const ElasticLimits& limits);

// Which partitions should be merged with the one behind them, without a partition in two pairs:
// those that are small and cold together, as many as the throughput can do without. What is merged
// would have to double before it splits again.
std::vector<size_t> ChooseMerges(std::span<const PartitionLoad> partitions, uint64_t throughput,
                                 const ElasticLimits& limits);

// How much lies from the first place of a partition up to this one, which is included.
using BytesUpTo = std::function<double(uint64_t place)>;
// The place where the right one of two halves of [first, last] should begin: as near to the half of
// the bytes as logical partitions allow. Nothing: no place leaves a twentieth on both sides.
std::optional<uint64_t> ChooseCut(uint64_t first, uint64_t last, const BytesUpTo& bytes);

// A node, for the balance of storage.
struct NodeFill {
  double bytes = 0;
  double capacity = 0;
  bool usable = true;  // takes replicas
};
// How full the usable nodes are on average, 0 to 1.
double MeanFill(std::span<const NodeFill> nodes);
// Whether a replica of `bytes` should move: the one node is clearly fuller than the mean, the other
// does not become so, and they come closer by it. A move that would be undone is never made. That
// the other may end a little above the mean matters where all others are just below it: else what a
// few nodes have too much would find no place.
bool ShouldMove(const NodeFill& from, const NodeFill& to, double bytes, double mean_fill);

}  // namespace orrery::model
