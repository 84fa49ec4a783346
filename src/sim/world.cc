#include "sim/world.h"

#include <cstdio>
#include <cstring>

namespace orrery::sim {

uint64_t HashOf(std::string_view bytes, uint64_t start) {
  uint64_t hash = start;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    bytes.remove_prefix(8);
  }
  for (char c : bytes) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  }
  return hash ^ (hash >> 29);
}

void World::Note(std::string_view what, std::initializer_list<uint64_t> numbers,
                 std::string_view bytes) {
  hash_ = HashOf(what, hash_ ^ static_cast<uint64_t>(now_.time_since_epoch().count()));
  for (uint64_t number : numbers) {
    hash_ = (hash_ ^ number) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 31;
  }
  hash_ = HashOf(bytes, hash_);
  if (!verbose_) {
    return;
  }
  std::string line;
  for (uint64_t number : numbers) {
    line += " " + std::to_string(number);
  }
  if (!bytes.empty()) {
    bool text = true;
    for (char c : bytes) {
      text = text && c >= ' ' && c <= '~';
    }
    line += text ? " " + std::string(bytes) : " <" + std::to_string(bytes.size()) + " bytes>";
  }
  const double seconds = static_cast<double>(now_.time_since_epoch().count()) / 1e6;
  std::fprintf(stderr, "%10.6f  %.*s%s\n", seconds, static_cast<int>(what.size()), what.data(),
               line.c_str());
}

void World::Fail(std::string reason) {
  if (failed()) {
    return;
  }
  const double seconds = static_cast<double>(now_.time_since_epoch().count()) / 1e6;
  char when[32];
  std::snprintf(when, sizeof(when), " (at %.6f s)", seconds);
  failure_ = std::move(reason) + when;
  Note("FAILED", {}, failure_);
}

}  // namespace orrery::sim
