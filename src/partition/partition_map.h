// PartitionMap: the ring of one container, cut into physical partitions.
//
// Immutable: a change makes a new map, in which the ranges that it touched have a higher
// generation. Ranges are contiguous, in order, the first begins at "" and the last ends at "FF".
// Range ids are never reused; retired ones stay resolvable.
#pragma once

#include <cstddef>
#include <cstdint>
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
  bool operator==(const PartitionRange&) const = default;
};

class PartitionMap {
 public:
  static constexpr size_t kRangesMax = 1'000'000;

  // kCorruption unless the ranges are contiguous and cover the ring, and no id stands twice.
  static Result<PartitionMap> Make(std::vector<PartitionRange> ranges,
                                   std::vector<PartitionRange> retired = {});
  // N equal parts of the band that hashes of this definition use; ids count up from `first`.
  // REQUIRES: 1 <= parts <= kRangesMax.
  static PartitionMap Even(const types::PartitionKeyDefinition& definition, size_t parts,
                           PartitionId first);

  // Others in the place of neighbours, which are retired; of the retired ones the newest stay.
  // kInvalidArgument if they are not neighbours here, or the others do not fit in exactly.
  static constexpr size_t kRetiredMax = 10'000;
  Result<PartitionMap> Replaced(std::span<const PartitionId> parents,
                                std::vector<PartitionRange> heirs) const;

  std::span<const PartitionRange> ranges() const { return ranges_; }
  std::span<const PartitionRange> retired() const { return retired_; }
  // The highest id of all, retired ones too.
  PartitionId newest() const { return by_id_.back().id; }
  // The current range that holds the EPK. REQUIRES: made by Make, Even or Decode.
  const PartitionRange& Find(std::string_view epk) const;
  // All current ranges that overlap the range, in order; none if it is empty.
  std::span<const PartitionRange> Overlapping(const types::EpkRange& range) const;
  // The range of an id, current or retired; null if there never was one.
  const PartitionRange* FindId(PartitionId id) const;

  void Encode(Encoder& encoder) const;
  // kCorruption if the bytes are malformed or Make refuses what they say.
  static Result<PartitionMap> Decode(Decoder& decoder);

 private:
  // The range of an id: its place in ranges_, or in retired_ counted on from the end of ranges_.
  struct IdPlace {
    PartitionId id;
    size_t place;
  };
  std::vector<PartitionRange> ranges_;
  std::vector<PartitionRange> retired_;
  std::vector<IdPlace> by_id_;  // in the order of ids
};

// How many physical partitions a container with this throughput gets: ceil(throughput /
// per_partition), at least 1. REQUIRES: per_partition > 0.
size_t PartitionCount(uint64_t throughput, uint64_t per_partition);

}  // namespace orrery::partition
