// ManualTime: who sleeps, where workers have no threads (WorkerPool's manual mode).
//
// Sleepers are ordered by the time at which they want to wake and then by the order in which they
// began, so that what happens depends on nothing but the clock. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/time.h"

namespace orrery::runtime {

class ManualTime {
 public:
  explicit ManualTime(const Clock& clock) : clock_(clock) {}

  void Add(Duration duration, std::function<void()> wake) {
    sleepers_.emplace(std::pair(clock_.Now() + duration, next_++), std::move(wake));
  }
  // When the first sleeper wants to wake; nothing if nobody sleeps.
  std::optional<Instant> next() const {
    return sleepers_.empty() ? std::nullopt : std::optional(sleepers_.begin()->first.first);
  }
  // Wakes the first sleeper if its time has come.
  bool WakeOne() {
    if (sleepers_.empty() || sleepers_.begin()->first.first > clock_.Now()) {
      return false;
    }
    sleepers_.extract(sleepers_.begin()).mapped()();
    return true;
  }
  void Clear() { sleepers_.clear(); }

 private:
  const Clock& clock_;
  uint64_t next_ = 0;
  std::map<std::pair<Instant, uint64_t>, std::function<void()>> sleepers_;
};

}  // namespace orrery::runtime
