// SimClock: a machine's idea of the time: virtual time, faster or slower by a few parts per
// million, from a start of its own.
#pragma once

#include "sim/world.h"

namespace orrery::sim {

class SimClock final : public Clock {
 public:
  SimClock(const World& world, Duration start, Duration wall_error, int64_t skew_ppm)
      : world_(world), start_(start), wall_error_(wall_error), skew_ppm_(skew_ppm) {}

  Instant Now() const override { return Instant(start_ + Elapsed(world_.now())); }
  WallTime Wall() const override {
    return {kWallStart + (wall_error_ + Elapsed(world_.now())).count()};
  }
  // The first moment of virtual time at which Now() is `local` or later.
  Instant ToWorld(Instant local) const {
    const Duration elapsed = local.time_since_epoch() - start_;
    Instant at(Duration(elapsed.count() * 1'000'000 / (1'000'000 + skew_ppm_)));
    while (Elapsed(at) < elapsed) {
      at += Duration(1);
    }
    return at;
  }

 private:
  static constexpr int64_t kWallStart = 1'800'000'000'000'000;
  Duration Elapsed(Instant at) const {
    const int64_t micros = at.time_since_epoch().count();
    return Duration(micros + micros * skew_ppm_ / 1'000'000);
  }

  const World& world_;
  const Duration start_;
  const Duration wall_error_;
  const int64_t skew_ppm_;
};

}  // namespace orrery::sim
