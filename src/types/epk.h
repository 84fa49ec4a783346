// Epk: the effective partition key, an item's place on its container's ring; ordered bytes.
//
// It is exactly what the official SDKs compute: they route bulk and feed-range requests by it.
//   Hash, version 2   16 bytes, murmur3 x64-128 of all components, first byte masked with 3F
//   MultiHash         16 bytes a level, each level hashed and masked alone
//   Hash, version 1   number-encoded murmur3 x86-32, then the (truncated) components themselves
// Cassandra tables use CassandraEpk: a zero bit, the token of Murmur3Partitioner, in order, then 63
// more bits of the hash. So no place begins with FF, which stands for the end of every ring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "types/partition_key.h"

namespace orrery::types {

using Epk = std::string;  // raw bytes; ToHex() gives what the wire shows

// A span of the ring, [min, max). Max "\xFF" is the end of the ring, min "" its beginning.
struct EpkRange {
  Epk min;
  Epk max = "\xFF";
  bool Contains(std::string_view epk) const { return epk >= min && (max == "\xFF" || epk < max); }
  // What both have; empty (min not below max) if that is nothing.
  EpkRange Intersect(const EpkRange& other) const {
    return {std::max(min, other.min), std::min(max, other.max)};
  }
  bool operator==(const EpkRange&) const = default;
};

// REQUIRES: as many components as the definition has paths (PrefixRange takes fewer); of kToken one
// string, the serialized key.
Epk ComputeEpk(const PartitionKeyDefinition& definition, const PartitionKey& key);

// The range of all keys that start with these components (MultiHash, fewer than all of the levels),
// or of exactly this key.
EpkRange PrefixRange(const PartitionKeyDefinition& definition, const PartitionKey& key);

// The N-1 boundaries that cut the band that hashes of this definition really use into N equal
// parts. REQUIRES: parts >= 1.
std::vector<Epk> EvenBoundaries(const PartitionKeyDefinition& definition, size_t parts);

// The place that halves the part of a range that hashes of this definition really use; the range's
// beginning if there is no place between its ends.
Epk MiddleOf(const PartitionKeyDefinition& definition, const EpkRange& range);

// The token of Cassandra's Murmur3Partitioner (its own variant of murmur3 x64-128: signed tail
// bytes; Long.MIN_VALUE becomes Long.MAX_VALUE), and the Epk that a Cassandra table gives to it:
// the token with its sign bit flipped, followed by the second half of the hash, all of it one bit
// to the right.
int64_t CassandraToken(std::string_view partition_key);
Epk CassandraEpk(std::string_view partition_key);
// Where the keys of a token begin, and the token of a place.
Epk TokenEpk(int64_t token);
int64_t TokenOf(std::string_view epk);

}  // namespace orrery::types
