#include "replication/local_replica_set.h"

#include "base/check.h"

namespace orrery::replication {

LocalReplicaSet::LocalReplicaSet(GroupId group, storage::Store& store, runtime::Worker& worker)
    : group_(group), store_(store), worker_(worker) {
  storage::ReplicaRecord record = store.Record(group);
  applied_ = record.applied.value();
  bytes_ = record.totals.bytes;
  items_ = record.totals.items;
}

void LocalReplicaSet::SetListener(ApplyListener* listener) {
  listener_ = listener;
  if (listener_ != nullptr) {
    listener_->OnFrozen(store_.Record(group_).frozen);
  }
}

runtime::Task<Result<Lsn>> LocalReplicaSet::Commit(storage::WriteSet set, uint64_t term) {
  ORRERY_CHECK(worker_.IsCurrent());
  if (term != this->term()) {
    co_return Error(Code::kNotLeader, "evaluated in term " + std::to_string(term));
  }
  auto start = [this, &set](std::function<void(Result<Lsn>)> resume) {
    storage::LogEntry entry{.term = this->term(),
                            .frees_space = set.frees_space,
                            .payload = std::make_shared<const std::string>(set.Encode())};
    auto done = [this, payload = entry.payload, resume = std::move(resume)](const Status& status,
                                                                            Lsn lsn) {
      if (status.ok()) {
        Applied(lsn, *payload);
      }
      resume(status.ok() ? Result<Lsn>(lsn) : Error(status));
    };
    store_.Commit(group_, std::move(entry), &worker_, std::move(done));
  };
  co_return co_await runtime::SuspendHere<Result<Lsn>>(std::move(start));
}

// On the worker, in the order of the log.
void LocalReplicaSet::Applied(Lsn lsn, const std::string& payload) {
  auto set = storage::WriteSetView::Parse(payload);
  ORRERY_CHECK(set.has_value());  // or it would not have been applied
  bytes_.fetch_add(set->change.bytes, std::memory_order_relaxed);
  items_.fetch_add(set->change.items, std::memory_order_relaxed);
  applied_.store(lsn.value(), std::memory_order_release);
  if (listener_ != nullptr) {
    listener_->OnApplied(lsn, *set);
    if (set->frozen) {
      listener_->OnFrozen(std::string(*set->frozen));
    }
  }
}

runtime::Task<Status> LocalReplicaSet::ReadBarrier() {
  // Acknowledged means applied: with one replica there is nothing to wait for.
  co_return Status::Ok();
}

runtime::Task<Status> LocalReplicaSet::WaitApplied(Lsn lsn, Duration) {
  // What is not applied was never acknowledged here.
  co_return lsn <= applied() ? Status::Ok() : Status(Code::kSessionNotReached);
}

storage::Totals LocalReplicaSet::totals() const {
  return {bytes_.load(std::memory_order_relaxed), items_.load(std::memory_order_relaxed)};
}

}  // namespace orrery::replication
