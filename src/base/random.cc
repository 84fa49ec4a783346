#include "base/random.h"

#include <random>

#include <sys/random.h>

#include "base/check.h"

namespace orrery {

namespace {

uint64_t SplitMix(uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t SystemRandom::Next() {
  thread_local uint64_t state = [] {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }();
  return SplitMix(state);
}

uint64_t SeededRandom::Next() { return SplitMix(state_); }

void SecretBytes(std::span<uint8_t> out) {
  while (!out.empty()) {
    ssize_t got = getrandom(out.data(), out.size(), 0);
    ORRERY_CHECK(got > 0);
    out = out.subspan(static_cast<size_t>(got));
  }
}

}  // namespace orrery
