// PartitionMap: the ring of one container, cut into physical partitions.
//
// Immutable: a change makes a new map with a higher generation. Ranges are contiguous, in order, the first
// begins at "" and the last ends at "FF". Range ids are never reused; retired ones stay resolvable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "types/epk.h"

namespace orrery::partition {

struct PartitionRange {
  PartitionId id;
  types::EpkRange range;
  std::vector<PartitionId> parents;
  uint64_t generation = 1;
};

class PartitionMap {
 public:
  // kCorruption unless the ranges are contiguous and cover the ring.
  static Result<PartitionMap> Make(std::vector<PartitionRange> ranges, std::vector<PartitionRange> retired = {});
  // N equal parts of the band that hashes of this definition use; ids count up from `first`.
  static PartitionMap Even(const types::PartitionKeyDefinition& definition, size_t parts, PartitionId first);

  std::span<const PartitionRange> ranges() const { return ranges_; }
  std::span<const PartitionRange> retired() const { return retired_; }
  const PartitionRange& Find(std::string_view epk) const;
  // All that overlap the range, in order.
  std::span<const PartitionRange> Overlapping(const types::EpkRange& range) const;
  // The range of an id, current or retired; null if there never was one.
  const PartitionRange* FindId(PartitionId id) const;

  void Encode(Encoder& encoder) const;
  static Result<PartitionMap> Decode(Decoder& decoder);

 private:
  std::vector<PartitionRange> ranges_;
  std::vector<PartitionRange> retired_;
};

// How many physical partitions a container with this throughput gets: ceil(throughput / per_partition),
// at least 1.
size_t PartitionCount(uint64_t throughput, uint64_t per_partition);

}  // namespace orrery::partition
