// Store: the log and the state of one node, and the two threads that write them.
//
//   Append   entries of all groups that wait are gathered into one synced batch of the `log`
//   engine,
//            while the next batch fills (the commit thread)
//   Apply    committed entries are written to the `state` engine without a log of its own, each
//   batch with
//            the new ReplicaRecord of its groups, so what is on disk is always a prefix of one
//            sequence of applies (the apply thread)
//   Cut      from time to time the state is flushed and the log cut below what the flush made
//   durable, less
//            a short trail (the upkeep thread)
//
// After a crash Recover() replays the log from each group's flushed applied index.
//
// Durability: with kSync nothing is reported durable before fdatasync; with kPeriodic after the
// write, and the file is synced at least every `sync_interval`. A failed log write or sync is never
// retried: from then on appends fail, reads go on, and only a restart takes writes again. While
// free space is below the reserve appends are refused, so that the log never meets a full disk;
// they resume by themselves. What frees space goes on until a quarter of the reserve is left.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "storage/engine.h"
#include "storage/write_set.h"

namespace orrery::runtime {
class Worker;
}

namespace orrery::storage {

enum class Durability : uint8_t { kSync, kPeriodic };

struct StoreOptions {
  Durability durability = Durability::kSync;
  Duration sync_interval = std::chrono::milliseconds(100);
  size_t queue_bytes_max = 128 << 20;  // appends beyond it are refused
  size_t cut_after_bytes = 64 << 20;   // of log written
  size_t trail_entries = 128;          // kept below the cut, for operation ids
  uint64_t free_bytes_reserve = 256 << 20;
  // Free bytes of the disk; a test may lie. Null: never refuse.
  std::function<uint64_t()> free_bytes;
};

// What is known of a group's state after its last applied entry.
struct ReplicaRecord {
  Lsn applied;
  Totals totals;
  WallTime time;  // partition time of the last entry
};

struct LogEntry {
  GroupId group;
  Lsn index;  // given by Commit
  uint64_t term = 1;
  std::string payload;  // an encoded WriteSet
  bool frees_space = false;
};

class Store {
 public:
  // Called on `worker` (or on a thread of the store if it is null), once.
  using Done = std::function<void(const Status&, Lsn)>;

  Store(std::unique_ptr<Engine> log, std::unique_ptr<Engine> state, StoreOptions options);
  ~Store();

  // Replays what the log has and the state has not. `seen` is called for each entry still in the
  // log, in order. REQUIRES: before Start().
  Status Recover(const std::function<void(GroupId, Lsn, const WriteSetView&)>& seen);
  void Start();
  // Finishes what is queued, flushes the state, ends the threads.
  void Stop();

  // Gives the entry the next index of its group, appends and applies it: `done` gets ok and the
  // index when it is durable and applied, in the order of the calls of one group. kUnavailable:
  // nothing was done, and no index used. kUnknownOutcome: it may be.
  void Commit(LogEntry entry, runtime::Worker* worker, Done done);

  // Deletes everything that a group has in log and records, after it was dropped. Thread-safe.
  Status Forget(const std::vector<GroupId>& groups);

  Engine& state() { return *state_; }
  Engine& log() { return *log_; }
  ReplicaRecord Record(GroupId group) const;
  // False after a failed log write: the node must not lead.
  bool healthy() const { return !failed_.load(std::memory_order_relaxed); }
  bool disk_full() const { return full_.load(std::memory_order_relaxed); }

  // A consistent copy of both stores in folder/log and folder/state, taken while writes go on.
  Status Checkpoint(const std::string& folder);

  // Flushes the state and cuts the log now: at stop, and after a dropped container was cleared.
  Status CutLog();

 private:
  struct Pending {
    LogEntry entry;
    runtime::Worker* worker;
    Done done;
    Status status;
  };
  using PendingList = std::vector<Pending>;

  void CommitLoop();
  void ApplyLoop();
  void UpkeepLoop();
  void SyncLoop();
  void CheckSpace();
  Status WriteLog(const PendingList& list);
  Status ApplyList(PendingList& list);
  Status ApplyEntry(const LogEntry& entry, Batch& batch, std::map<GroupId, ReplicaRecord>& records);
  Status ReplayGroup(GroupId group, Iterator& log,
                     const std::function<void(GroupId, Lsn, const WriteSetView&)>& seen);
  std::optional<Lsn> CutPoint(GroupId group, Lsn applied, Lsn cut, size_t groups) const;
  static void Complete(PendingList list);

  const std::unique_ptr<Engine> log_;
  const std::unique_ptr<Engine> state_;
  const StoreOptions options_;

  std::mutex mutex_;  // the queues
  std::condition_variable commit_wake_;
  std::condition_variable apply_wake_;
  std::condition_variable upkeep_wake_;
  std::condition_variable sync_wake_;
  std::unordered_map<GroupId, Lsn> last_;  // the last index given out
  PendingList to_commit_;
  PendingList to_apply_;
  size_t gather_ = 0;  // how many the commit thread waits for; 0: it does not
  size_t queued_bytes_ = 0;
  size_t log_bytes_since_cut_ = 0;
  bool stopping_ = false;
  bool committed_all_ = false;

  mutable std::mutex records_mutex_;
  std::unordered_map<GroupId, ReplicaRecord> records_;
  std::unordered_map<GroupId, Lsn> cut_;  // the log holds only what is above

  std::mutex cut_mutex_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> full_ = false;
  std::atomic<bool> quite_full_ = false;  // not even deletes
  std::thread commit_thread_;
  std::thread apply_thread_;
  std::thread upkeep_thread_;
  std::thread sync_thread_;  // with kPeriodic
};

}  // namespace orrery::storage
