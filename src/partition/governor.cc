#include "partition/governor.h"

#include <algorithm>
#include <chrono>

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

}  // namespace

Governor::Governor(RequestUnits share, bool burst) : share_(share), burst_(burst), left_(share) {
  ORRERY_CHECK(share > kNone);
}

Duration Governor::Reserve(RequestUnits least, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  if (left_ + BurstLeft() <= kNone) {
    return UntilAdmitted(now);
  }
  Take(least);
  return Duration::zero();
}

void Governor::Settle(RequestUnits rest, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  if (rest >= kNone) {
    Take(rest);
  } else {
    GiveBack(-rest);
  }
}

RequestUnits Governor::Lend(RequestUnits want, RequestUnits back, Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  GiveBack(back);
  const RequestUnits left = std::max(left_ + BurstLeft(), kNone);
  // The last few units are not worth a request each.
  const RequestUnits most =
      std::max(RequestUnits::Hundredths(left.hundredths() / 4), std::min(left, RequestUnits(10)));
  const RequestUnits lent = std::min(want, most);
  Take(lent);
  return lent;
}

void Governor::SetShare(RequestUnits share, Instant now) {
  ORRERY_CHECK(share > kNone);
  std::lock_guard lock(mutex_);
  MoveTo(now);
  // The second bound keeps a share that falls and rises within a window from giving units twice.
  const RequestUnits changed = std::min(left_ + share - share_, share - (used_ - burst_used_));
  left_ = std::max(changed, std::min(left_, kNone));
  share_ = share;
  saved_ = std::min(saved_, share_ * kSavedSeconds);
  PayDebtFromSaved();
}

RequestUnits Governor::share() const {
  std::lock_guard lock(mutex_);
  return share_;
}

RequestUnits Governor::UsedLastSecond(Instant now) {
  std::lock_guard lock(mutex_);
  MoveTo(now);
  return used_before_;
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
  used_before_ = passed == 1 ? used_ : kNone;
  used_ = kNone;
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
  if (burst_) {
    const int64_t idle = std::min(passed - 1, kSavedSeconds);
    saved_ = std::min(saved_ + left_ + share_ * idle, share_ * kSavedSeconds);
  }
  left_ = share_;
  burst_used_ = kNone;
}

void Governor::Take(RequestUnits units) {
  used_ += units;
  left_ -= units;
  PayDebtFromSaved();
}

void Governor::GiveBack(RequestUnits units) {
  used_ -= std::min(units, used_);
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
  const Instant next(std::chrono::seconds(window_ + windows));
  return std::chrono::ceil<std::chrono::milliseconds>(next - now);
}

}  // namespace orrery::partition
