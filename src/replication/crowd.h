// Crowd: how long a round of a replica set waits for more requests before it begins.
//
// A round costs each node the same for one request as for a hundred, and those who were just
// answered are likely to come again at once. So who begins a round has a little patience: half as
// long as the last one took, a millisecond at most, and until three of four are back that were
// there then. Who comes alone never waits, and a crowd that did not come is not waited for again.
//
// Time is an argument. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"

namespace orrery::replication {

class Crowd {
 public:
  // A round begins, with so many on their way.
  void Begin(size_t all, Instant now) {
    size_ = all;
    began_ = now;
  }
  // All of them are answered; so many came meanwhile.
  void End(size_t came, Instant now) {
    size_ += came;
    until_ = now + std::min(kMost, std::chrono::duration_cast<Duration>(now - began_) / 2);
  }
  // How long to wait for more than those that are `here`. Zero: the round may begin.
  Duration Patience(size_t here, Instant now) const {
    const bool enough = 4 * here >= 3 * size_;
    return enough || now >= until_ ? Duration::zero()
                                   : std::chrono::duration_cast<Duration>(until_ - now);
  }

 private:
  static constexpr Duration kMost = std::chrono::milliseconds(1);

  size_t size_ = 0;
  Instant began_;
  Instant until_;
};

}  // namespace orrery::replication
