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

runtime::Task<Result<Lsn>> LocalReplicaSet::Commit(storage::WriteSet set, uint64_t term) {
  ORRERY_CHECK(worker_.IsCurrent());
  if (term != this->term()) {
    co_return Error(Code::kNotLeader, "evaluated in term " + std::to_string(term));
  }
  storage::Totals change = set.change;
  auto start = [this, &set](std::function<void(Result<Lsn>)> resume) {
    storage::LogEntry entry{.group = group_,
                            .term = this->term(),
                            .payload = set.Encode(),
                            .frees_space = set.frees_space};
    auto done = [resume = std::move(resume)](const Status& status, Lsn lsn) {
      resume(status.ok() ? Result<Lsn>(lsn) : Error(status));
    };
    store_.Commit(std::move(entry), &worker_, std::move(done));
  };
  Result<Lsn> lsn = co_await runtime::SuspendHere<Result<Lsn>>(std::move(start));
  if (lsn) {
    bytes_.fetch_add(change.bytes, std::memory_order_relaxed);
    items_.fetch_add(change.items, std::memory_order_relaxed);
    applied_.store(lsn->value(), std::memory_order_release);
  }
  co_return lsn;
}

runtime::Task<Status> LocalReplicaSet::ReadBarrier() {
  // Acknowledged means applied: with one replica there is nothing to wait for.
  co_return Status::Ok();
}

storage::Totals LocalReplicaSet::totals() const {
  return {bytes_.load(std::memory_order_relaxed), items_.load(std::memory_order_relaxed)};
}

}  // namespace orrery::replication
