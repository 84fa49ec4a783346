// Governor: the request-unit budget of one physical partition.
//
// Time is cut into windows of one second and each starts with `share` units. An operation reserves
// a lower bound of its price and settles the rest when the price is known, so only that rest can
// overdraw a window; the next windows pay it. A request is admitted while anything is left, even if
// its own price is larger, as the service does: the debt is paid by those who come after.
//
// Burst (switchable): a partition whose share is under 3,000 RU/s saves the units that a window did
// not use, up to 300 seconds' worth, and may spend them, up to 3,000 RU/s in all. They also pay
// debts, within the same bound.
//
// Priority: a window keeps for High what High used of the window before, as far as this one has not
// given it yet; Low gets what is beyond that. After a window in which High was refused Low gets
// nothing of the next. So Low alone may use everything, and yields within a second.
//
// Buckets: a bucket may use its percentage of the share in a window and never what was saved. What
// a request of it costs beyond that, its own next windows pay too.
//
// Thread-safe: point reads run on the worker they arrive on. Time is an argument, so tests need no
// clock; a caller whose `now` lies before another's is counted in the newer window.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "base/time.h"
#include "partition/claim.h"
#include "partition/pricing.h"

namespace orrery::partition {

class Governor {
 public:
  // REQUIRES: share > 0.
  explicit Governor(RequestUnits share, bool burst = false);

  // Takes `least` and returns zero, or takes nothing and returns when the client should try again:
  // at the start of the first window that will have something left, in whole milliseconds, at least
  // one. `bucket_full`: set if it is refused for its bucket alone.
  Duration Reserve(RequestUnits least, Instant now, const Claim& claim = {},
                   bool* bucket_full = nullptr);
  // Takes what an admitted operation cost beyond what it reserved (or gives back, if less).
  void Settle(RequestUnits rest, Instant now, const Claim& claim = {});
  // For another node: takes up to `want`, but never more than a quarter of what is left, and
  // returns it. `back` is what it did not spend of earlier ones.
  RequestUnits Lend(RequestUnits want, RequestUnits back, Instant now);
  // A new share is good from the current window on; what was used stays used, but a smaller share
  // makes no debt by itself. REQUIRES: share > 0.
  void SetShare(RequestUnits share, Instant now);
  // As SetShare, for the caps of buckets.
  void SetBuckets(const Buckets& buckets, Instant now);

  RequestUnits share() const;
  // What was used in the last whole window, for metrics.
  RequestUnits UsedLastSecond(Instant now);
  // What was used in every one of the last five whole windows: the least of them.
  RequestUnits Sustained(Instant now);
  // Whether a bucket pays for it.
  bool bucketed(const Claim& claim) const;

 private:
  static constexpr size_t kSustainedWindows = 5;

  // All with mutex_ held.
  void MoveTo(Instant now);
  void CountWindows(int64_t passed);
  void Take(RequestUnits units, const Claim& claim);
  void GiveBack(RequestUnits units, const Claim& claim);
  void PayDebtFromSaved();
  RequestUnits BurstPerWindow() const;
  RequestUnits BurstLeft() const;
  Duration UntilAdmitted(Instant now) const;
  Duration UntilWindow(int64_t windows, Instant now) const;
  // Whether High needs what is left.
  bool KeptForHigh(RequestUnits left) const;
  RequestUnits CapOf(size_t bucket) const;  // from 0

  mutable std::mutex mutex_;
  RequestUnits share_;
  const bool burst_;
  // The current window, in seconds; every call first moves it up to `now`. -1: none yet.
  int64_t window_ = -1;
  RequestUnits left_;        // of the share; below zero: debt, and no burst is left in this window
  RequestUnits saved_;       // for bursts; at most 300 shares
  RequestUnits burst_used_;  // in this window
  RequestUnits used_;        // in this window
  // In the windows before, the last one first.
  std::array<RequestUnits, kSustainedWindows> used_before_;
  // What operations of high priority used, and whether one was refused: in this window, and in the
  // one before.
  RequestUnits high_used_;
  RequestUnits high_used_before_;
  bool high_refused_ = false;
  bool high_refused_before_ = false;
  Buckets buckets_;
  std::array<RequestUnits, kBucketsMax> bucket_left_;  // of their caps; below zero: debt
};

}  // namespace orrery::partition
