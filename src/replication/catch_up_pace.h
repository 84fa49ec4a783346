// CatchUpPace: how fast a leader sends the log to a standby that is far behind.
//
// A replica that moves gets a snapshot first, slowly, and then all that was written meanwhile.
// Nobody waits for it, but each entry costs both ends as much as a new write does. So the leader
// rests eight times as long as the last part took, from one part to the next: what comes has to be
// synced and applied, which takes longer than to send it. But it rests only while the distance
// becomes less, or who writes fast would never be caught up with.
//
// Time is an argument. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"

namespace orrery::replication {

class CatchUpPace {
 public:
  // A part was sent; `distance` entries are left. How long to rest before the next one.
  Duration Rest(uint64_t distance, Instant now) {
    const bool comes_closer = distance < std::exchange(distance_, distance);
    const auto took = std::chrono::duration_cast<Duration>(now - resumed_);
    const Duration rest =
        comes_closer ? std::clamp(kTimes * took, Duration::zero(), kMost) : Duration::zero();
    resumed_ = now + rest;
    return rest;
  }

 private:
  static constexpr int kTimes = 8;
  static constexpr Duration kMost = std::chrono::milliseconds(100);

  uint64_t distance_ = 0;
  Instant resumed_;
};

}  // namespace orrery::replication
