// CompactionPace: how long a merge of table files rests between its writes.
//
// A merge wants a core for seconds, and the replicas of a partition want it at the same time, for
// they get the same writes. So it rests four times as long as it worked: what it takes from
// clients is little, and takes longer. The more flushes overtake it, the less it rests, and not at
// all long before files pile up so far that writes must wait for them.
//
// Of one store, whose merges come one after the other. Time is an argument. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace orrery::storage {

class CompactionPace {
 public:
  // A merge of files of a space begins.
  void Begin(uint32_t space, Instant now) {
    space_ = space;
    flushes_ = 0;
    Resume(now);
  }
  void Resume(Instant now) { resumed_ = now.time_since_epoch(); }
  // One more file has come to a space.
  void Flushed(uint32_t space) { flushes_ += space == space_ ? 1 : 0; }

  // The merge is about to write: for how long it should rest first.
  Duration Rest(Instant now) const {
    const auto worked =
        std::chrono::duration_cast<Duration>(now.time_since_epoch() - resumed_.load());
    const int left = std::max(0, kOvertaken - flushes_);
    return std::clamp(kTimes * worked * left / kOvertaken, Duration::zero(), kRestMax);
  }

 private:
  // Writes wait at 24 files, and a merge begins with 8.
  static constexpr int kOvertaken = 6;
  static constexpr int kTimes = 4;
  static constexpr Duration kRestMax = std::chrono::milliseconds(40);

  std::atomic<uint32_t> space_ = 0;
  std::atomic<int> flushes_ = 0;
  std::atomic<Instant::duration> resumed_{};
};

}  // namespace orrery::storage
