#include "types/murmur3.h"

#include <bit>
#include <cstring>

namespace orrery::types {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as little endian words");

template <typename Word>
Word Load(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint32_t Scramble32(uint32_t k) { return std::rotl(k * 0xCC9E2D51u, 15) * 0x1B873593u; }

constexpr uint64_t kFirst = 0x87C37B91114253D5;
constexpr uint64_t kSecond = 0x4CF5AD432745937F;

uint64_t ScrambleFirst(uint64_t k) { return std::rotl(k * kFirst, 31) * kSecond; }
uint64_t ScrambleSecond(uint64_t k) { return std::rotl(k * kSecond, 33) * kFirst; }

uint64_t Finish64(uint64_t k) {
  k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD;
  k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53;
  return k ^ k >> 33;
}

// A little endian word of at most 8 bytes. `Byte` is uint8_t for the standard hash; with int8_t the
// sign of a byte spreads over all bits above it, as in Cassandra.
template <typename Byte>
uint64_t TailWord(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word ^= static_cast<uint64_t>(static_cast<Byte>(bytes[i])) << (8 * i);
  }
  return word;
}

template <typename Byte>
Hash128 Hash(std::string_view bytes) {
  uint64_t h1 = 0;
  uint64_t h2 = 0;
  std::string_view tail = bytes;
  for (; tail.size() >= 16; tail.remove_prefix(16)) {
    h1 ^= ScrambleFirst(Load<uint64_t>(tail.data()));
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52DCE729;
    h2 ^= ScrambleSecond(Load<uint64_t>(tail.data() + 8));
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495AB5;
  }
  h1 ^= ScrambleFirst(TailWord<Byte>(tail.substr(0, 8)));
  if (tail.size() > 8) {
    h2 ^= ScrambleSecond(TailWord<Byte>(tail.substr(8)));
  }
  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = Finish64(h1);
  h2 = Finish64(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

}  // namespace

uint32_t Murmur32(std::string_view bytes) {
  uint32_t hash = 0;
  std::string_view tail = bytes;
  for (; tail.size() >= 4; tail.remove_prefix(4)) {
    hash ^= Scramble32(Load<uint32_t>(tail.data()));
    hash = std::rotl(hash, 13) * 5 + 0xE6546B64u;
  }
  hash ^= Scramble32(static_cast<uint32_t>(TailWord<uint8_t>(tail)));
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85EBCA6Bu;
  hash = (hash ^ hash >> 13) * 0xC2B2AE35u;
  return hash ^ hash >> 16;
}

Hash128 Murmur128(std::string_view bytes) { return Hash<uint8_t>(bytes); }

Hash128 CassandraHash(std::string_view bytes) { return Hash<int8_t>(bytes); }

}  // namespace orrery::types
