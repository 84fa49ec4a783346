// LocalReplicaSet: a replica set of one. The node's own log is the quorum.
#pragma once

#include <atomic>

#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::replication {

class LocalReplicaSet final : public ReplicaSet {
 public:
  LocalReplicaSet(GroupId group, storage::Store& store, runtime::Worker& worker);

  // Is not told that this replica leads: it always does.
  void SetListener(ApplyListener* listener) override;
  bool leads() const override { return store_.healthy(); }
  uint64_t term() const override { return 1; }
  runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t term) override;
  runtime::Task<Status> ReadBarrier() override;
  runtime::Task<Status> WaitApplied(Lsn lsn, Duration longest) override;
  Lsn applied() const override { return Lsn(applied_.load(std::memory_order_acquire)); }
  storage::Totals totals() const override;

 private:
  void Applied(Lsn lsn, const std::string& payload);

  const GroupId group_;
  storage::Store& store_;
  runtime::Worker& worker_;
  ApplyListener* listener_ = nullptr;
  std::atomic<uint64_t> applied_;
  std::atomic<int64_t> bytes_;
  std::atomic<int64_t> items_;
};

}  // namespace orrery::replication
