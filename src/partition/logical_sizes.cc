#include "partition/logical_sizes.h"

#include <algorithm>

#include "partition/logical_walk.h"
#include "storage/log_format.h"

namespace orrery::partition {

namespace {

// For one that somebody else measures.
constexpr Duration kMeasurePoll = std::chrono::milliseconds(5);
constexpr Duration kDoubtPause = std::chrono::minutes(1);  // a walk may be long
constexpr Duration kMeasureWait = std::chrono::seconds(10);

}  // namespace

void LogicalSizes::Tracked::Add(Lsn lsn, int64_t change) {
  if (measured) {
    bytes += change;
  } else if (!as_of) {
    before_known.emplace_back(lsn, change);
  } else if (lsn > *as_of) {
    behind += change;
  }
}

void LogicalSizes::Refresh() {
  if (term_ != set_.term() || limit_seen_ != limit()) {
    Forget();
    term_ = set_.term();
    limit_seen_ = limit();
  }
}

void LogicalSizes::Forget() {
  ++era_;
  tracked_.clear();
  walked_ = false;
  ShowLargest();
}

bool LogicalSizes::Doubt(const std::string& prefix, Instant now) {
  std::erase_if(doubted_, [now](const auto& each) { return now - each.second > kDoubtPause; });
  if (doubted_.size() >= kTrackedMax || !doubted_.try_emplace(prefix, now).second) {
    return false;
  }
  auto found = tracked_.find(prefix);
  if (found != tracked_.end() && found->second->measured) {
    found->second->doubted = true;
  }
  return true;
}

void LogicalSizes::ShowLargest() {
  int64_t largest = 0;
  for (const auto& [prefix, tracked] : tracked_) {
    largest = std::max(largest, tracked->measured ? tracked->bytes : 0);
  }
  largest_.store(largest, std::memory_order_relaxed);
}

// The small ones that somebody had measured, and nobody asked for since: what the last walk says is
// good for them too.
void LogicalSizes::Evict() {
  while (tracked_.size() > kTrackedMax) {
    auto oldest = tracked_.end();
    for (auto at = tracked_.begin(); at != tracked_.end(); ++at) {
      if (at->second->measured && at->second->bytes < limit() / 4 &&
          (oldest == tracked_.end() || at->second->used < oldest->second->used)) {
        oldest = at;
      }
    }
    if (oldest == tracked_.end()) {
      return;
    }
    tracked_.erase(oldest);
  }
}

LogicalSizes::Room LogicalSizes::RoomFor(const std::string& prefix, int64_t growth) {
  const int64_t most = limit();
  if (most == 0 || total() + growth <= most) {
    return Room::kYes;
  }
  Refresh();
  auto found = tracked_.find(prefix);
  if (found != tracked_.end() && found->second->doubted) {
    return Room::kUnknown;
  }
  if (found != tracked_.end() && found->second->measured) {
    found->second->used = ++uses_;
    auto flying = in_flight_.find(prefix);
    int64_t on_its_way = flying == in_flight_.end() ? 0 : flying->second;
    int64_t after = found->second->bytes + on_its_way + growth;
    return after > most ? Room::kNo : after + uncounted_ > most ? Room::kUnknown : Room::kYes;
  }
  return walked_ && most / 4 + grown_ + growth <= most ? Room::kYes : Room::kUnknown;
}

runtime::Task<Status> LogicalSizes::Measure(std::string prefix) {
  Refresh();
  auto [at, fresh] = tracked_.try_emplace(prefix);
  const bool again = !fresh && at->second->measured && at->second->doubted;
  if (fresh || again) {
    at->second = std::make_shared<Tracked>();
    at->second->doubted = again;
    co_return co_await MeasureInto(std::move(prefix), at->second);
  }
  auto tracked = at->second;
  auto known = [&] { return !tracked->failure.ok() || (tracked->measured && uncounted_ == 0); };
  for (Duration waited{}; !known(); waited += kMeasurePoll) {
    if (waited >= kMeasureWait) {
      co_return Status(Code::kUnavailable, "the size of the logical partition is being counted");
    }
    co_await runtime::Sleep(kMeasurePoll);
  }
  co_return tracked->failure;
}

runtime::Task<Status> LogicalSizes::MeasureInto(std::string prefix,
                                                std::shared_ptr<Tracked> tracked) {
  const uint64_t era = era_;
  std::unique_ptr<storage::Snapshot> snapshot;
  auto begin = [&]() -> Result<Lsn> {
    snapshot = state_.NewSnapshot();
    std::string record;
    Status status =
        state_.Get(storage::Index(storage::Space::kReplica), storage::ReplicaKey(group_), &record,
                   storage::ReadMode::kMayWait, snapshot.get());
    if (status.code() == Code::kNotFound) {
      return Lsn();  // nothing is applied yet
    }
    ORRERY_TRY_STATUS(status);
    ORRERY_TRY(storage::ReplicaRecord read, storage::DecodeRecord(record));
    return read.applied;
  };
  Result<Lsn> as_of = co_await runtime::OnBlocking(workers_, begin);
  Status status = as_of ? Status() : as_of.error();
  int64_t bytes = 0;
  if (status.ok()) {
    tracked->as_of = *as_of;
    for (const auto& [lsn, change] : std::exchange(tracked->before_known, {})) {
      tracked->Add(lsn, change);
    }
    LogicalWalk walk{.span = {prefix, storage::PrefixEnd(prefix)}};
    auto slice = [&] {
      return walk.Go(state_, snapshot.get(), 0,
                     [&](const std::string&, const storage::Totals& all) { bytes = all.bytes; });
    };
    while (status.ok() && !walk.done) {
      status = co_await runtime::OnBlocking(workers_, slice);
    }
  }
  if (status.ok() && era != era_) {
    status = Status(Code::kUnavailable, "the sizes of logical partitions are counted anew");
  }
  if (!status.ok()) {
    tracked->failure = status;
    if (auto at = tracked_.find(prefix); at != tracked_.end() && at->second == tracked) {
      walked_ = walked_ && !tracked->doubted;  // it may be one of those that the walk found
      tracked_.erase(at);
    }
    co_return status;
  }
  tracked->bytes = bytes + tracked->behind;
  tracked->measured = true;
  tracked->doubted = false;
  tracked->used = ++uses_;
  Evict();
  ShowLargest();
  co_return status;
}

LogicalSizes::Ticket LogicalSizes::Begin(const std::string& prefix, int64_t change) {
  Ticket ticket{.growth = std::max<int64_t>(change, 0)};
  pending_ += ticket.growth;
  grown_ += ticket.growth;
  grown_in_walk_ += ticket.growth;
  ticket.counted = ticket.growth > 0 && counts();
  if (ticket.counted) {
    in_flight_[prefix] += ticket.growth;
  } else {
    uncounted_ += ticket.growth;
  }
  return ticket;
}

void LogicalSizes::End(const std::string& prefix, int64_t change, const Ticket& ticket,
                       const Result<Lsn>& outcome) {
  pending_ -= ticket.growth;
  if (!ticket.counted) {
    uncounted_ -= ticket.growth;
  } else {
    auto flying = in_flight_.find(prefix);
    flying->second -= ticket.growth;
    if (flying->second == 0) {
      in_flight_.erase(flying);
    }
  }
  if (!outcome) {
    if (outcome.error().code() == Code::kUnknownOutcome) {
      Forget();  // it may still come
    }
    return;
  }
  if (!tracked_.empty()) {
    if (auto found = tracked_.find(prefix); found != tracked_.end()) {
      found->second->Add(*outcome, change);
    }
  }
}

bool LogicalSizes::WantsWalk() {
  Refresh();
  if (!set_.leads() || !counts()) {
    if (!tracked_.empty() || walked_) {
      Forget();
    }
    return false;
  }
  ShowLargest();
  return !walking_ && (!walked_ || grown_ > limit() / 2);
}

runtime::Task<> LogicalSizes::Walk(std::function<bool()> stop) {
  Refresh();
  const uint64_t era = era_;
  const int64_t quarter = std::max<int64_t>(1, limit() / 4);
  walking_ = true;
  grown_in_walk_ = pending_;  // the walk may not see it
  LogicalWalk walk{.span = items_};
  Status status;
  while (status.ok() && !walk.done && !stop() && era == era_) {
    std::vector<std::string> large;
    auto slice = [&] {
      return walk.Go(state_, nullptr, quarter,
                     [&](const std::string& prefix, const storage::Totals& seen) {
                       if (seen.bytes >= quarter) {
                         large.push_back(prefix);
                       }
                     });
    };
    status = co_await runtime::OnBlocking(workers_, slice);
    for (const std::string& prefix : large) {
      if (status.ok() && !stop()) {
        status = co_await Measure(prefix);
      }
    }
  }
  walking_ = false;
  if (status.ok() && walk.done && !stop() && era == era_) {
    walked_ = true;
    grown_ = grown_in_walk_;
  }
}

}  // namespace orrery::partition
