// Chance: the seeded dice of a simulation. Each part that needs chance has a stream of its own, so
// that one more throw in one part does not change what happens in the others.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace orrery::sim {

class Chance final : public Random {
 public:
  Chance(uint64_t seed, std::string_view stream, uint64_t number = 0)
      : random_(Mix(seed, stream, number)) {}

  uint64_t Next() override { return random_.Next(); }
  // 0 ... below - 1; REQUIRES: below > 0
  uint64_t Below(uint64_t below) { return Next() % below; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  Duration Between(Duration least, Duration most) {
    return least + Duration(Below(static_cast<uint64_t>((most - least).count()) + 1));
  }
  // The same, with more short ones than long ones.
  Duration Mostly(Duration least, Duration most) { return Between(least, Between(least, most)); }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(from.size())];
  }
  template <typename T>
  void Shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[Below(i)]);
    }
  }

 private:
  static uint64_t Mix(uint64_t seed, std::string_view stream, uint64_t number) {
    uint64_t mixed = SeededRandom(seed).Next() ^ (number * 0x9E3779B97F4A7C15u);
    for (char c : stream) {
      mixed = (mixed ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
    }
    return mixed;
  }

  SeededRandom random_;
};

}  // namespace orrery::sim
