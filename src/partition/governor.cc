#include "partition/governor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace orrery::partition {

namespace {

constexpr RequestUnits kNone;
constexpr int64_t kSavedSeconds = 300;
constexpr RequestUnits kBurstCeiling(3000);

int64_t WindowOf(Instant now) {
  return std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
}

// How many windows of `each` make `debt` into something above zero.
int64_t WindowsToClear(RequestUnits debt, RequestUnits each) {
  return std::max(debt, kNone).hundredths() / each.hundredths() + 1;
}

// What is left when a window's allowance changes: what was used stays used, but a smaller allowance
// makes no debt by itself.
RequestUnits LeftOf(RequestUnits left, RequestUnits before, RequestUnits after) {
  return std::max(left + after - before, std::min(left, kNone));
}

}  // namespace

Governor::Governor(RequestUnits share, bool burst) : share_(share), burst_(burst), left_(share) {
  ORRERY_CHECK(share > kNone);
}

Duration Governor::Reserve(RequestUnits least, Instant now, const Claim& claim, bool* bucket_full) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  const uint8_t bucket = buckets_.Of(claim);
  const bool low = claim.priority == Priority::kLow;
  if (bucket != 0 && bucket_left_[bucket - 1] <= kNone) {
    if (bucket_full != nullptr) {
      *bucket_full = true;
    }
    return UntilWindow(WindowsToClear(-bucket_left_[bucket - 1], CapOf(bucket - 1)), now);
  }
  const RequestUnits left = bucket != 0 ? left_ : left_ + BurstLeft();
  if (left <= kNone) {
    high_refused_ = high_refused_ || !low;
    return bucket != 0 ? UntilWindow(WindowsToClear(-left_, share_), now) : UntilAdmitted(now);
  }
  if (low && KeptForHigh(left)) {
    return UntilWindow(1, now);
  }
  Take(least, claim);
  return Duration::zero();
}

void Governor::Settle(RequestUnits rest, Instant now, const Claim& claim) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  if (rest >= kNone) {
    Take(rest, claim);
  } else {
    GiveBack(-rest, claim);
  }
}

RequestUnits Governor::Lend(RequestUnits want, RequestUnits back, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  // Of high priority and in no bucket, as far as it matters here.
  const Claim claim{.bucket = kBucketsMax + 1};
  GiveBack(back, claim);
  const RequestUnits left = std::max(left_ + BurstLeft(), kNone);
  // The last few units are not worth a request each.
  const RequestUnits most =
      std::max(RequestUnits::Hundredths(left.hundredths() / 4), std::min(left, RequestUnits(10)));
  const RequestUnits lent = std::min(want, most);
  Take(lent, claim);
  return lent;
}

void Governor::SetShare(RequestUnits share, Instant now) {
  ORRERY_CHECK(share > kNone);
  std::lock_guard lock(mutex_);
  MoveTo(now);
  // The second bound keeps a share that falls and rises within a window from giving units twice.
  const RequestUnits changed = std::min(left_ + share - share_, share - (used_ - burst_used_));
  left_ = std::max(changed, std::min(left_, kNone));
  std::array<RequestUnits, kBucketsMax> caps;
  for (size_t i = 0; i < kBucketsMax; ++i) {
    caps[i] = CapOf(i);
  }
  share_ = share;
  for (size_t i = 0; i < kBucketsMax; ++i) {
    bucket_left_[i] = LeftOf(bucket_left_[i], caps[i], CapOf(i));
  }
  saved_ = share_ < kBurstCeiling ? std::min(saved_, share_ * kSavedSeconds) : kNone;
  PayDebtFromSaved();
}

void Governor::SetBuckets(const Buckets& buckets, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  for (size_t i = 0; i < kBucketsMax; ++i) {
    const RequestUnits before = CapOf(i);
    const uint8_t old = std::exchange(buckets_.percent[i], buckets.percent[i]);
    bucket_left_[i] = old == 0 ? CapOf(i) : LeftOf(bucket_left_[i], before, CapOf(i));
  }
  buckets_ = buckets;
}

RequestUnits Governor::share() const {
  std::lock_guard lock(mutex_);
  return share_;
}

RequestUnits Governor::UsedLastSecond(Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  return used_before_[0];
}

RequestUnits Governor::Sustained(Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  return *std::ranges::min_element(used_before_);
}

bool Governor::bucketed(const Claim& claim) const {
  std::lock_guard lock(mutex_);
  return buckets_.Of(claim) != 0;
}

// What was used in windows that are over, and what buckets have again.
void Governor::CountWindows(int64_t passed) {
  for (int64_t i = 0; i < std::min<int64_t>(passed, kSustainedWindows); ++i) {
    std::ranges::move_backward(used_before_.begin(), used_before_.end() - 1, used_before_.end());
    used_before_[0] = std::exchange(used_, kNone);
  }
  high_used_before_ = passed == 1 ? high_used_ : kNone;
  high_refused_before_ = passed == 1 && high_refused_;
  high_used_ = kNone;
  high_refused_ = false;
  for (size_t i = 0; i < kBucketsMax; ++i) {
    if (const RequestUnits cap = CapOf(i); cap > kNone) {
      RequestUnits& left = bucket_left_[i];
      left = std::min(left + cap * std::min(passed, WindowsToClear(-left, cap)), cap);
    }
  }
}

void Governor::MoveTo(Instant now) {
  const int64_t window = WindowOf(now);
  if (window_ < 0) {
    window_ = window;
    return;
  }
  int64_t passed = window - window_;
  if (passed <= 0) {
    return;
  }
  window_ = window;
  CountWindows(passed);
  burst_used_ = kNone;
  while (passed > 0 && left_ < kNone) {
    // Without savings all windows of a debt are alike and are taken at once.
    const int64_t step = saved_ > kNone ? 1 : std::min(passed, WindowsToClear(-left_, share_));
    passed -= step;
    left_ += share_ * step;
    burst_used_ = kNone;
    PayDebtFromSaved();
  }
  if (passed == 0) {
    return;
  }
  if (burst_ && share_ < kBurstCeiling) {
    const int64_t idle = std::min(passed - 1, kSavedSeconds);
    saved_ = std::min(saved_ + left_ + share_ * idle, share_ * kSavedSeconds);
  }
  left_ = share_;
  burst_used_ = kNone;
}

void Governor::Take(RequestUnits units, const Claim& claim) {
  used_ += units;
  if (claim.priority == Priority::kHigh) {
    high_used_ += units;
  }
  if (const uint8_t bucket = buckets_.Of(claim); bucket != 0) {
    bucket_left_[bucket - 1] -= units;
  }
  left_ -= units;
  PayDebtFromSaved();
}

void Governor::GiveBack(RequestUnits units, const Claim& claim) {
  used_ -= std::min(units, used_);
  if (claim.priority == Priority::kHigh) {
    high_used_ -= std::min(units, high_used_);
  }
  if (const uint8_t bucket = buckets_.Of(claim); bucket != 0) {
    RequestUnits& left = bucket_left_[bucket - 1];
    left = std::min(left + units, CapOf(bucket - 1));
  }
  left_ += units;
  // A debt is paid first, then the savings get back what they gave in this window.
  const RequestUnits to_saved = std::min({units, std::max(left_, kNone), burst_used_});
  left_ -= to_saved;
  saved_ = std::min(saved_ + to_saved, share_ * kSavedSeconds);
  burst_used_ -= to_saved;
  // What an earlier window gave does not make this one larger.
  left_ = std::min(left_, share_);
}

void Governor::PayDebtFromSaved() {
  if (left_ >= kNone) {
    return;
  }
  const RequestUnits paid = std::min(-left_, BurstLeft());
  left_ += paid;
  saved_ -= paid;
  burst_used_ += paid;
}

RequestUnits Governor::BurstPerWindow() const {
  return burst_ ? std::max(kBurstCeiling - share_, kNone) : kNone;
}

RequestUnits Governor::BurstLeft() const {
  return std::min(saved_, std::max(BurstPerWindow() - burst_used_, kNone));
}

Duration Governor::UntilAdmitted(Instant now) const {
  // Each window pays its share, and what was saved up to the ceiling: whichever of the two bounds
  // is later.
  const RequestUnits each = share_ + BurstPerWindow();
  const int64_t windows =
      std::max(WindowsToClear(-left_, each), WindowsToClear(-left_ - saved_, share_));
  return UntilWindow(windows, now);
}

Duration Governor::UntilWindow(int64_t windows, Instant now) const {
  const Instant next(std::chrono::seconds(window_ + windows));
  return std::chrono::ceil<std::chrono::milliseconds>(next - now);
}

bool Governor::KeptForHigh(RequestUnits left) const {
  return high_refused_ || high_refused_before_ || left <= high_used_before_ - high_used_;
}

RequestUnits Governor::CapOf(size_t bucket) const {
  const int64_t percent = buckets_.percent[bucket];
  const int64_t cap = share_.hundredths() * percent / 100;
  return RequestUnits::Hundredths(percent == 0 ? 0 : std::max<int64_t>(cap, 1));
}

}  // namespace orrery::partition
