// Murmur3: the hashes that place keys on the ring, all with seed 0. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::types {

// The 16 bytes of a hash as its two words, in the order in which the algorithm names them.
struct Hash128 {
  uint64_t first = 0;
  uint64_t second = 0;
  bool operator==(const Hash128&) const = default;
};

uint32_t Murmur32(std::string_view bytes);      // murmur3 x86-32
Hash128 Murmur128(std::string_view bytes);      // murmur3 x64-128
Hash128 CassandraHash(std::string_view bytes);  // the same with sign-extended tail bytes

}  // namespace orrery::types
