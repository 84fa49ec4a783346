// Replica: this node's copy of one physical partition.
//
// Execute() admits an operation by its price, runs it, and settles the rest. Operations find here
// what they need: the committed state, latches, partition time, and Commit.
//
// Latches, time and the memory of operation ids live on the partition's worker; Execute(), Read(),
// stats() and the accessors may be used from any worker.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/time.h"
#include "partition/budget.h"
#include "partition/horizon.h"
#include "partition/hot_keys.h"
#include "partition/latches.h"
#include "partition/logical_sizes.h"
#include "partition/operation.h"
#include "partition/outcome_memory.h"
#include "partition/partition_map.h"
#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/engine.h"

namespace orrery::partition {

// What a node gives to all of its replicas.
struct ReplicaServices {
  storage::Engine& state;
  runtime::WorkerPool& workers;
  const Clock& clock;
  // On a cluster: whether a partition is led here, and how units are borrowed from who owns them.
  std::function<bool(PartitionId)> leads_here = {};
  std::function<runtime::Task<RequestUnits>(BudgetOwner, Budget::Ask)> borrow = {};
  // What BoundedStaleness means.
  replication::Staleness staleness = {};
};

struct ReplicaStats {
  uint64_t requests = 0;
  uint64_t throttled = 0;
  uint64_t charge_hundredths = 0;
};

// Where on the ring the totals of a partition changed while somebody walked over it. What changes
// at one place is one entry, and if there are too many places it is spoiled; not if it is known
// where the partition will be cut, for then there are two: before that, and from there on.
struct ChangeWatch {
  size_t places_max = 0;
  types::Epk cut;  // empty: not known
  std::map<types::Epk, storage::Totals> changes;
  bool spoiled = false;  // something cannot be told
};

// What may be stored, in bytes; 0: no limit.
struct StorageLimits {
  int64_t logical_partition = 0;
  int64_t all = 0;
};

class Replica final : public replication::ApplyListener {
 public:
  Replica(ContainerId container, PartitionRange range, std::shared_ptr<const Schema> schema,
          std::shared_ptr<Budget> budget, bool governed, runtime::Worker& worker,
          std::shared_ptr<replication::ReplicaSet> set, const ReplicaServices& services);

  // REQUIRES: operation.target is set.
  runtime::Task<Reply> Execute(Operation& operation);
  // Whether it is worth a try here. Reads that any replica may answer go to the leader all the same
  // while no units are borrowed for them.
  bool MayServe(const Operation& operation);

  // For operations ------------------------------------------------------------------------------

  // Any key of the state; kNotFound if there is none. With a snapshot: as it was then.
  runtime::Task<Result<std::string>> Read(storage::Space space, std::string_view key,
                                          const storage::Snapshot* snapshot = nullptr);
  // REQUIRES for the rest: on the partition's worker.

  // The right to evaluate a write: its latches, and the term in which it is evaluated.
  struct Turn {
    Latches::Guard guard;
    uint64_t term = 0;
  };
  // Waits for the latches, then looks again whether the operation still fits this replica: while it
  // waited the partition may have been split, or the leadership lost.
  runtime::Task<Result<Turn>> Acquire(const Operation& operation, std::vector<Latch> latches);
  // After it, what was read in this turn is what a read of this level, Strong or BoundedStaleness,
  // would have seen. kNotLeader: it may come from an old leader.
  runtime::Task<Status> Confirm(const Turn& turn, ReadLevel level = ReadLevel::kStrong);
  // Partition time for `count` changes: later than every time given before. The last of them is
  // returned.
  WallTime NextTime(int64_t count = 1);
  // The newest time that was given, or seen.
  WallTime last_time() const { return last_time_; }
  // The result of an earlier try of this operation, with its LSN.
  using Outcome = OutcomeMemory::Outcome;
  const Outcome* Recall(const storage::OperationId& id) const;
  // Refuses a late try of an operation that has ended: nobody waits for it, and it may have been
  // done. Acquire() has asked it.
  Status CheckNotEnded(const Operation& operation) const;
  // REQUIRES: nothing was waited for between NextTime() and this.
  runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, const Turn& turn);
  // The sizes of its logical partitions.
  LogicalSizes& sizes() { return sizes_; }
  // Of a table: before when what died may have been dropped.
  Horizon& horizon() { return horizon_; }
  // Brings back what Recall knew before a restart. `settled` as in WriteSet.
  void Remember(const storage::OperationId& id, Lsn lsn, std::string_view result, WallTime time,
                uint64_t settled = 0);
  // False if they are malformed.
  bool DecodeOutcomes(std::string_view bytes);
  // What Outcomes() gave of two partitions, as one.
  static std::string JoinOutcomes(std::string_view a, std::string_view b);

  // For splits and merges (model/reshaper.h) ------------------------------------------------------

  // The right to evaluate for all of the partition: when it is given no write is under way.
  runtime::Task<Result<Turn>> AcquireAll();
  // Notes where on the ring totals change from now on, until EndWatch: at so many places, or, if it
  // is known where that will be, only on which side of the cut. REQUIRES: AcquireAll's turn.
  void BeginWatch(size_t places_max, types::Epk cut = {});
  // How much has changed before this place, which is the one that was known. kUnavailable: it
  // cannot be told.
  Result<storage::Totals> EndWatch(std::string_view cut);
  // Deletes of many logical partitions at once would spoil it.
  bool watched() const { return watch_.has_value(); }
  // Why it takes no more operations; empty: it does.
  const std::string& frozen() const { return frozen_; }
  bool is_frozen() const { return is_frozen_.load(std::memory_order_acquire); }  // thread-safe

  // replication::ApplyListener
  void OnFrozen(const std::string& why) override;
  void OnApplied(Lsn lsn, const storage::WriteSetView& set) override;
  void OnReplaced() override;
  std::string Outcomes() const override;

  // Reply with what every reply of this partition carries.
  Reply MakeReply(Status status, RequestUnits charge) const;

  ContainerId container() const { return container_; }
  PartitionId id() const { return range_.id; }
  const PartitionRange& range() const { return range_; }
  // The container's definition; hold it while it is used, it may be replaced.
  std::shared_ptr<const Schema> schema() const;
  // The term in which the schema was last found to be as new as the log knows it (rows/); on the
  // worker.
  std::optional<uint64_t> schema_term() const { return schema_term_; }
  void SetSchemaTerm(uint64_t term) { schema_term_ = term; }
  Lsn applied() const { return set_->applied(); }
  storage::Totals totals() const { return set_->totals(); }
  WallTime wall() const { return services_.clock.Wall(); }
  storage::Engine& state() { return services_.state; }
  runtime::WorkerPool& workers() { return services_.workers; }
  const ReplicaServices& services() const { return services_; }
  replication::ReplicaSet& set() { return *set_; }

  // Of the budget's owner; counts nothing elsewhere.
  Governor& governor() { return budget_->governor(); }
  runtime::Worker& worker() { return worker_; }
  ReplicaStats stats() const;
  // A changed definition of the container (time to live, indexing): the next operations see it.
  void SetSchema(std::shared_ptr<const Schema> schema);
  void SetGoverned(bool governed) { governed_.store(governed, std::memory_order_relaxed); }
  void SetLimits(const StorageLimits& limits);
  // Of the whole partition, in bytes; 0: none.
  int64_t bytes_max() const { return bytes_max_.load(std::memory_order_relaxed); }
  // Who uses its request units, of those that were charged here.
  HotKeys& hot_keys() { return hot_keys_; }

 private:
  Status CheckTarget(const Operation& operation) const;
  bool AnyReplica(const Operation& operation) const;
  void Note(const storage::WriteSetView& set);
  // Whether what is here is new enough for the read; waits a little for it.
  runtime::Task<Status> PrepareRead(const Operation& operation);
  // Of a leader, for reads and writes.
  runtime::Task<Status> ReachSession(Lsn token);
  // From whom an operation's units came.
  enum class Payer : uint8_t { kNobody, kGovernor, kSlice };
  runtime::Task<Reply> RunAdmitted(Operation& operation, RequestUnits least, Payer payer);
  bool OwnsBudget() const;
  void Borrow();
  // Where another owns the budget: only who owns it can tell High from Low and knows the buckets.
  bool UsesSlices(const Operation& operation) const;
  runtime::Task<bool> TakeSlice(RequestUnits least, Priority priority);

  const ContainerId container_;
  const PartitionRange range_;
  const ReplicaServices& services_;
  runtime::Worker& worker_;
  const std::shared_ptr<replication::ReplicaSet> set_;
  // Of this partition alone, or shared by all of a database.
  const std::shared_ptr<Budget> budget_;
  std::atomic<bool> governed_;

  std::atomic<uint64_t> requests_ = 0;
  std::atomic<uint64_t> throttled_ = 0;
  std::atomic<uint64_t> charge_hundredths_ = 0;
  HotKeys hot_keys_;
  std::atomic<int64_t> bytes_max_ = 0;

  mutable std::mutex schema_mutex_;
  std::shared_ptr<const Schema> schema_;
  std::atomic<uint64_t> schema_version_;

  std::atomic<bool> is_frozen_ = false;

  // On the worker:
  std::optional<uint64_t> schema_term_;
  std::optional<ChangeWatch> watch_;
  std::string frozen_;
  Latches latches_;
  LogicalSizes sizes_;
  Horizon horizon_;
  WallTime last_time_;
  OutcomeMemory outcomes_;
};

}  // namespace orrery::partition
