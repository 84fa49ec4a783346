// Time: instants, durations and the clock that hands them out.
//
// Code never reads the system's clock itself: it is given a Clock, so that tests and the simulator
// decide what time it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace orrery {

using Duration = std::chrono::microseconds;
// Monotonic, for deadlines, windows and latencies.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Wall time in microseconds since 1970, for what is stored and shown.
struct WallTime {
  int64_t micros = 0;
  int64_t seconds() const { return micros / 1'000'000; }
  auto operator<=>(const WallTime&) const = default;
};

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  virtual WallTime Wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
  WallTime Wall() const override {
    auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<Duration>(since).count()};
  }
};

// A clock that stands still until a test moves it. Not thread-safe while it is moved.
class ManualClock final : public Clock {
 public:
  Instant Now() const override { return Instant(Duration(micros_)); }
  WallTime Wall() const override { return {wall_base_ + micros_}; }
  void Advance(Duration by) { micros_ += by.count(); }

 private:
  int64_t micros_ = 0;
  int64_t wall_base_ = 1'800'000'000'000'000;
};

}  // namespace orrery
