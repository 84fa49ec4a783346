#include "partition/latches.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "runtime/worker.h"

namespace orrery::partition {

namespace {

void SortAndMerge(std::vector<Latch>& latches) {
  // The exclusive one of a name comes first, so that it is the one that stays.
  std::ranges::sort(latches, std::greater());
  const auto rest = std::ranges::unique(latches, {}, &Latch::name);
  latches.erase(rest.begin(), rest.end());
}

}  // namespace

struct Latches::Waiter {
  size_t missing = 0;
  // Posts the operation to its worker, so it never runs inside of Release.
  std::function<void(bool)> resume;
};

Latches::Guard::Guard(Guard&& other) noexcept
    : latches_(std::exchange(other.latches_, nullptr)), held_(std::move(other.held_)) {}

Latches::Guard& Latches::Guard::operator=(Guard&& other) noexcept {
  if (this != &other) {
    GiveBack();
    latches_ = std::exchange(other.latches_, nullptr);
    held_ = std::move(other.held_);
  }
  return *this;
}

Latches::Guard::~Guard() { GiveBack(); }

void Latches::Guard::GiveBack() {
  if (latches_ == nullptr) {
    return;
  }
  for (Latch latch : held_) {
    latches_->Release(latch);
  }
  latches_ = nullptr;
}

runtime::Task<Latches::Guard> Latches::Acquire(std::vector<Latch> wanted) {
  SortAndMerge(wanted);
  if (Waiter* waiter = TakeOrQueue(wanted)) {
    // A plain pointer: a frame that owned its waiter, which owns the frame's resumption, would
    // never go.
    co_await runtime::Suspend<bool>(
        [waiter](std::function<void(bool)> resume) { waiter->resume = std::move(resume); });
  }
  co_return Guard(this, std::move(wanted));
}

Latches::Waiter* Latches::TakeOrQueue(const std::vector<Latch>& wanted) {
  std::shared_ptr<Waiter> waiter;
  for (Latch latch : wanted) {
    if (TryTake(latch)) {
      continue;
    }
    if (!waiter) {
      waiter = std::make_shared<Waiter>();
    }
    ++waiter->missing;
    entries_[latch.name].queue.push_back({latch.exclusive, waiter});
  }
  return waiter.get();
}

void Latches::Entry::Hold(bool exclusively) {
  if (exclusively) {
    exclusive = true;
  } else {
    ++shared;
  }
}

bool Latches::TryTake(Latch latch) {
  Entry& entry = entries_[latch.name];
  if (!entry.queue.empty() || !entry.IsFreeFor(latch.exclusive)) {
    return false;
  }
  entry.Hold(latch.exclusive);
  return true;
}

void Latches::Release(Latch latch) {
  const auto at = entries_.find(latch.name);
  ORRERY_CHECK(at != entries_.end());
  Entry& entry = at->second;
  if (latch.exclusive) {
    entry.exclusive = false;
  } else {
    --entry.shared;
  }
  while (!entry.queue.empty() && entry.IsFreeFor(entry.queue.front().exclusive)) {
    const Place next = std::move(entry.queue.front());
    entry.queue.pop_front();
    entry.Hold(next.exclusive);
    if (--next.waiter->missing == 0) {
      next.waiter->resume(true);
    }
  }
  if (entry.shared == 0 && !entry.exclusive) {
    entries_.erase(at);
  }
}

}  // namespace orrery::partition
