// Governor: the request-unit budget of one physical partition.
//
// Time is cut into windows of one second and each starts with `share` units. An operation reserves
// a lower bound of its price and settles the rest when the price is known, so only that rest can
// overdraw a window; the next windows pay it. A request is admitted while anything is left, even if
// its own price is larger, as the service does: the debt is paid by those who come after.
//
// Burst (switchable): units that a window did not use are saved, up to 300 seconds' worth; a
// partition whose share is under 3,000 RU/s may spend them, up to 3,000 RU/s in all. They also pay
// debts, within the same bound.
//
// Thread-safe: point reads run on the worker they arrive on. Time is an argument, so tests need no
// clock; a caller whose `now` lies before another's is counted in the newer window.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/time.h"
#include "partition/pricing.h"

namespace orrery::partition {

class Governor {
 public:
  // REQUIRES: share > 0.
  explicit Governor(RequestUnits share, bool burst = false);

  // Takes `least` and returns zero, or takes nothing and returns when the client should try again:
  // at the start of the first window that will have something left, in whole milliseconds, at least
  // one.
  Duration Reserve(RequestUnits least, Instant now);
  // Takes what an admitted operation cost beyond what it reserved (or gives back, if less).
  void Settle(RequestUnits rest, Instant now);
  // For another node: takes up to `want`, but never more than a quarter of what is left, and
  // returns it. `back` is what it did not spend of earlier ones.
  RequestUnits Lend(RequestUnits want, RequestUnits back, Instant now);
  // A new share is good from the current window on; what was used stays used, but a smaller share
  // makes no debt by itself. REQUIRES: share > 0.
  void SetShare(RequestUnits share, Instant now);

  RequestUnits share() const;
  // What was used in the last whole window, for metrics.
  RequestUnits UsedLastSecond(Instant now);

 private:
  // All with mutex_ held.
  void MoveTo(Instant now);
  void Take(RequestUnits units);
  void GiveBack(RequestUnits units);
  void PayDebtFromSaved();
  RequestUnits BurstPerWindow() const;
  RequestUnits BurstLeft() const;
  Duration UntilAdmitted(Instant now) const;

  mutable std::mutex mutex_;
  RequestUnits share_;
  const bool burst_;
  // The current window, in seconds; every call first moves it up to `now`. -1: none yet.
  int64_t window_ = -1;
  RequestUnits left_;         // of the share; below zero: debt, and no burst is left in this window
  RequestUnits saved_;        // for bursts; at most 300 shares
  RequestUnits burst_used_;   // in this window
  RequestUnits used_;         // in this window
  RequestUnits used_before_;  // in the window before
};

}  // namespace orrery::partition
