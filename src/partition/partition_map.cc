#include "partition/partition_map.h"

#include <algorithm>
#include <string>

#include "base/check.h"

// A stored map (parts as in base/bytes.h):
//
//   map     := u8 version = 1, ranges current, ranges retired
//   ranges  := varint count, range * count            count at most 1,000,000
//   range   := varint id, bytes min, bytes max, varint generation, parents
//   parents := varint count, (varint id) * count      count at most 1,000,000

namespace orrery::partition {

namespace {

constexpr uint8_t kVersion = 1;
constexpr std::string_view kRingEnd = "\xFF";

bool IsEmpty(const types::EpkRange& range) {
  return range.min == range.max || (range.max != kRingEnd && range.min > range.max);
}

Status CheckRanges(std::span<const PartitionRange> ranges) {
  if (ranges.empty() || ranges.size() > PartitionMap::kRangesMax) {
    return Status(Code::kCorruption, "a map of " + std::to_string(ranges.size()) + " ranges");
  }
  std::string_view reached;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const types::EpkRange& range = ranges[i].range;
    const bool ends_the_ring = range.max == kRingEnd;
    if (range.min != reached || IsEmpty(range) || ends_the_ring != (i + 1 == ranges.size())) {
      return Status(Code::kCorruption, "range " + ranges[i].id.ToString() + " is " +
                                           ToHex(range.min) + ".." + ToHex(range.max) +
                                           " and should begin at " + ToHex(reached));
    }
    reached = range.max;
  }
  return Status::Ok();
}

Status CheckRetired(std::span<const PartitionRange> retired) {
  if (retired.size() > PartitionMap::kRangesMax) {
    return Status(Code::kCorruption, std::to_string(retired.size()) + " retired ranges");
  }
  for (const PartitionRange& range : retired) {
    if (IsEmpty(range.range)) {
      return Status(Code::kCorruption, "retired range " + range.id.ToString() + " is empty");
    }
  }
  return Status::Ok();
}

void EncodeRanges(std::span<const PartitionRange> ranges, Encoder& encoder) {
  encoder.Varint(ranges.size());
  for (const PartitionRange& range : ranges) {
    encoder.Varint(range.id.value());
    encoder.Bytes(range.range.min);
    encoder.Bytes(range.range.max);
    encoder.Varint(range.generation);
    encoder.Varint(range.parents.size());
    for (PartitionId parent : range.parents) {
      encoder.Varint(parent.value());
    }
  }
}

// A count of things that take at least `bytes_least` each; fails the decoder if they cannot be
// there.
size_t DecodeCount(Decoder& decoder, size_t bytes_least) {
  const uint64_t count = decoder.Varint();
  if (count > PartitionMap::kRangesMax || count * bytes_least > decoder.left()) {
    decoder.Fail();
    return 0;
  }
  return count;
}

std::vector<PartitionRange> DecodeRanges(Decoder& decoder) {
  constexpr size_t kBytesLeast = 5;
  std::vector<PartitionRange> ranges(DecodeCount(decoder, kBytesLeast));
  for (PartitionRange& range : ranges) {
    range.id = PartitionId(decoder.Varint());
    range.range.min = decoder.Bytes();
    range.range.max = decoder.Bytes();
    range.generation = decoder.Varint();
    range.parents.resize(DecodeCount(decoder, 1));
    for (PartitionId& parent : range.parents) {
      parent = PartitionId(decoder.Varint());
    }
    if (!decoder.ok()) {
      return {};
    }
  }
  return ranges;
}

}  // namespace

Result<PartitionMap> PartitionMap::Make(std::vector<PartitionRange> ranges,
                                        std::vector<PartitionRange> retired) {
  ORRERY_TRY_STATUS(CheckRanges(ranges));
  ORRERY_TRY_STATUS(CheckRetired(retired));
  PartitionMap map;
  map.ranges_ = std::move(ranges);
  map.retired_ = std::move(retired);
  map.by_id_.reserve(map.ranges_.size() + map.retired_.size());
  for (const auto* list : {&map.ranges_, &map.retired_}) {
    for (const PartitionRange& range : *list) {
      map.by_id_.push_back({range.id, map.by_id_.size()});
    }
  }
  std::ranges::sort(map.by_id_, {}, &IdPlace::id);
  const auto twice = std::ranges::adjacent_find(map.by_id_, {}, &IdPlace::id);
  if (twice != map.by_id_.end()) {
    return Error(Code::kCorruption, "range " + twice->id.ToString() + " stands twice in the map");
  }
  return map;
}

PartitionMap PartitionMap::Even(const types::PartitionKeyDefinition& definition, size_t parts,
                                PartitionId first) {
  ORRERY_CHECK(parts >= 1 && parts <= kRangesMax);
  const std::vector<types::Epk> boundaries = types::EvenBoundaries(definition, parts);
  ORRERY_CHECK(boundaries.size() + 1 == parts);
  std::vector<PartitionRange> ranges(parts);
  for (size_t i = 0; i < parts; ++i) {
    ranges[i].id = PartitionId(first.value() + i);
    if (i > 0) {
      ranges[i].range.min = boundaries[i - 1];
    }
    if (i + 1 < parts) {
      ranges[i].range.max = boundaries[i];
    }
  }
  Result<PartitionMap> map = Make(std::move(ranges));
  ORRERY_CHECK(map.has_value());
  return *std::move(map);
}

Result<PartitionMap> PartitionMap::Replaced(std::span<const PartitionId> parents,
                                            std::vector<PartitionRange> heirs) const {
  const auto first = std::ranges::find(ranges_, parents.front(), &PartitionRange::id);
  const auto ids = [](const PartitionRange& range) { return range.id; };
  if (static_cast<size_t>(ranges_.end() - first) < parents.size() ||
      !std::ranges::equal(std::span(first, parents.size()), parents, {}, ids)) {
    return Error(Code::kInvalidArgument, "the partitions are not neighbours in the map");
  }
  const auto end = first + static_cast<ptrdiff_t>(parents.size());
  std::vector<PartitionRange> next(ranges_.begin(), first);
  std::ranges::move(heirs, std::back_inserter(next));
  next.insert(next.end(), end, ranges_.end());
  std::vector<PartitionRange> retired = retired_;
  retired.insert(retired.end(), first, end);
  if (retired.size() > kRetiredMax) {
    retired.erase(retired.begin(), retired.end() - kRetiredMax);
  }
  Result<PartitionMap> map = Make(std::move(next), std::move(retired));
  if (!map) {
    return Error(Code::kInvalidArgument, map.error().message());
  }
  return map;
}

const PartitionRange& PartitionMap::Find(std::string_view epk) const {
  ORRERY_CHECK(!ranges_.empty());
  const auto after = std::ranges::upper_bound(
      ranges_, epk, {},
      [](const PartitionRange& range) -> std::string_view { return range.range.min; });
  return *std::prev(after);  // the first range begins at "", so there is one
}

std::span<const PartitionRange> PartitionMap::Overlapping(const types::EpkRange& range) const {
  if (IsEmpty(range)) {
    return {};
  }
  const PartitionRange* first = &Find(range.min);
  const PartitionRange* end = ranges_.data() + ranges_.size();
  if (range.max == kRingEnd) {
    return {first, end};
  }
  const auto begins_before = [&range](const PartitionRange& other) {
    return other.range.min < range.max;
  };
  return {first, std::partition_point(first, end, begins_before)};
}

const PartitionRange* PartitionMap::FindId(PartitionId id) const {
  const auto at = std::ranges::lower_bound(by_id_, id, {}, &IdPlace::id);
  if (at == by_id_.end() || at->id != id) {
    return nullptr;
  }
  const bool current = at->place < ranges_.size();
  return current ? &ranges_[at->place] : &retired_[at->place - ranges_.size()];
}

void PartitionMap::Encode(Encoder& encoder) const {
  encoder.U8(kVersion);
  EncodeRanges(ranges_, encoder);
  EncodeRanges(retired_, encoder);
}

Result<PartitionMap> PartitionMap::Decode(Decoder& decoder) {
  const uint8_t version = decoder.U8();
  if (decoder.ok() && version != kVersion) {
    return Error(Code::kCorruption, "a partition map of version " + std::to_string(version));
  }
  std::vector<PartitionRange> ranges = DecodeRanges(decoder);
  std::vector<PartitionRange> retired = DecodeRanges(decoder);
  if (!decoder.ok()) {
    return Error(Code::kCorruption, "a partition map is cut short or has a count that cannot be");
  }
  return Make(std::move(ranges), std::move(retired));
}

size_t PartitionCount(uint64_t throughput, uint64_t per_partition) {
  ORRERY_CHECK(per_partition > 0);
  const uint64_t whole = throughput / per_partition + (throughput % per_partition != 0 ? 1 : 0);
  return std::max<uint64_t>(whole, 1);
}

}  // namespace orrery::partition
