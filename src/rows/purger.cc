#include "rows/purger.h"

#include <algorithm>

#include "base/log.h"
#include "rows/purge_rows.h"

namespace orrery::rows {

using partition::Replica;
using runtime::Task;

namespace {

constexpr Duration kPause = std::chrono::milliseconds(50);
constexpr int64_t kMicros = 1'000'000;
// Between walks over a partition that is written to: ranges may have been deleted, and what writes
// that do not look have left is counted.
constexpr int64_t kRestSeconds = 3600;
constexpr int kRestOfWalk = 9;  // times what the last one took

}  // namespace

void Purger::Start() { workers_.at(0).Spawn(Loop(gate_.Enter())); }

void Purger::Stop() {
  stopping_ = true;
  gate_.Close();
}

Task<> Purger::Loop(runtime::Gate::Pass pass) {
  while (!stopping_) {
    for (Duration waited{}; waited < interval_ && !stopping_; waited += kPause) {
      co_await runtime::Sleep(std::min(kPause, interval_));
    }
    if (!stopping_) {
      co_await Look();
    }
  }
}

bool Purger::IsDue(const Replica& replica, uint64_t schema, int64_t grace_seconds) const {
  auto found = seen_.find(replica.id());
  if (found == seen_.end()) {
    return true;
  }
  const Seen& seen = found->second;
  if (clock_.Now() - seen.ended < seen.took * kRestOfWalk) {
    return false;
  }
  if (seen.schema != schema) {
    return true;
  }
  const int64_t now = clock_.Wall().micros;
  const int64_t rest = std::min(grace_seconds, kRestSeconds) * kMicros;
  return now - grace_seconds * kMicros >= seen.next ||
         (replica.applied() != seen.applied && now - seen.began.micros >= rest);
}

Task<> Purger::Look() {
  // By id: a walk takes long, and nobody should wait for it who wants to destroy another replica.
  std::vector<PartitionId> ids;
  for (const auto& replica : replicas_.All()) {
    ids.push_back(replica->id());
  }
  std::erase_if(seen_,
                [&](const auto& seen) { return std::ranges::find(ids, seen.first) == ids.end(); });
  for (PartitionId id : ids) {
    auto replica = replicas_.Find(id);
    if (replica == nullptr || stopping_) {
      continue;
    }
    auto schema = replica->schema();
    const auto& container = static_cast<const model::Container&>(*schema);
    if (!container.is_table()) {
      continue;
    }
    const bool leads = replica->set().leads();
    auto found = seen_.find(id);
    if (found != seen_.end() && (!leads || found->second.term != replica->set().term())) {
      seen_.erase(found);
    }
    if (leads && !replica->is_frozen() &&
        IsDue(*replica, schema->version, container.grace_seconds)) {
      co_await Purge(std::move(replica), schema->version);
    }
  }
}

Task<> Purger::Purge(std::shared_ptr<Replica> replica, uint64_t schema) {
  PurgeRows purge;
  purge.target = {.container = replica->container(),
                  .partition = replica->id(),
                  .generation = replica->range().generation,
                  .schema_version = schema};
  purge.stop = [this, &replica] {
    return stopping_.load() || replicas_.Find(replica->id()) != replica;
  };
  Seen seen{.term = replica->set().term(),
            .schema = schema,
            .began = clock_.Wall(),
            .ended = {},
            .took = {},
            .applied = replica->applied()};
  const Instant began = clock_.Now();
  partition::Reply reply = co_await replica->Execute(purge);
  dropped_ += purge.dropped;
  trimmed_ += purge.trimmed;
  bytes_ += purge.bytes;
  if (!reply.status.ok()) {
    auto& tell = reply.status.code() == Code::kCorruption ? log::Warning : log::Debug;
    tell("a partition could not be purged",
         {{"partition", replica->id().ToString()}, {"why", reply.status.ToString()}});
    co_return;
  }
  seen.ended = clock_.Now();
  seen.took = seen.ended - began;
  seen.applied = Lsn(seen.applied.value() + purge.entries);
  seen.next = purge.next;
  seen_[replica->id()] = seen;
  if (purge.dropped + purge.trimmed > 0) {
    log::Debug("dead rows are dropped", {{"partition", replica->id().ToString()},
                                         {"keys", std::to_string(purge.dropped)},
                                         {"bytes", std::to_string(purge.bytes)}});
  }
}

}  // namespace orrery::rows
