// Store: the log and the state of one node, and the two threads that write them.
//
//   log      what waits of all groups is gathered into one synced batch of the `log` engine, while
//            the next batch fills (the commit thread)
//   state    committed entries are written to the `state` engine without a log of its own, each
//            batch with the new ReplicaRecord of its groups, so what is on disk is always a prefix
//            of one sequence of applies (the apply thread)
//   upkeep   from time to time the state is flushed, and the log may be cut below what the flush
//            made durable; a moment later the log is flushed too, so that what was cut never
//            reaches a table file (the upkeep thread)
//
// A group is *local* or *replicated*. A local one has this node's log alone: Commit gives an entry
// its index, appends and applies it; Recover() replays the log from the flushed applied index; the
// log is cut here, less a short trail. A replicated one has a ReplicaIdentity in the log store
// (Found, BeginInstall). Its owner appends what its consensus core says and applies what is
// committed, each in its own time; only the core knows what is committed, so Recover() replays
// nothing; and the owner cuts, with an Append that has a new base.
//
// Durability: nothing is reported durable before fdatasync; with kPeriodic, which is for local
// groups alone, after the write, and the file is synced at least every `sync_interval`. A failed
// log write or sync is never retried: from then on appends fail, reads go on, and only a restart
// takes writes again. While free space is below the reserve writes are refused, so that the log
// never meets a full disk; they resume by themselves. What frees space goes on until a quarter of
// the reserve is left. Append refuses neither: a leader asks CheckRoom before it proposes.
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
#include "storage/log_entry.h"
#include "storage/replica_identity.h"
#include "storage/write_set.h"

namespace orrery::runtime {
class Worker;
}

namespace orrery::storage {

// EngineOptions::spaces of the two engines.
std::vector<std::string> LogSpaces();
std::vector<std::string> StateSpaces();
// Of the state, but for sizes.
EngineOptions StateEngineOptions();

enum class Durability : uint8_t { kSync, kPeriodic };

struct StoreOptions {
  Durability durability = Durability::kSync;
  Duration sync_interval = std::chrono::milliseconds(100);
  size_t queue_bytes_max = 128 << 20;  // writes beyond it are refused
  size_t cut_after_bytes = 24 << 20;   // of log written; less than a write buffer holds
  size_t trail_entries = 128;          // kept below the cut, for operation ids
  size_t snapshot_file_bytes = 64 << 20;
  uint64_t free_bytes_reserve = 256 << 20;
  // Free bytes of the disk; a test may lie. Null: never refuse.
  std::function<uint64_t()> free_bytes;
  // After a flush: Flushed() of replicated groups may be higher. On the upkeep thread.
  std::function<void()> on_flushed;
  // No threads, no time: the owner calls CommitStep, ApplyStep and UpkeepStep. The destructor then
  // finishes nothing, as a crash would.
  bool manual = false;
};

// What is known of a group's state after its last applied entry.
struct ReplicaRecord {
  Lsn applied;
  Totals totals;
  WallTime time;       // partition time of the last entry
  std::string frozen;  // WriteSet::frozen: it takes no more writes
  bool operator==(const ReplicaRecord&) const = default;
};

struct AppendRequest {
  GroupId group;
  std::optional<HardState> hard;
  std::optional<Lsn> truncate_from;  // entries at and above it go first
  Lsn first;                         // index of entries[0]
  std::vector<LogEntry> entries;     // may be empty
  // A new base: entries at and below its index go. Not above Flushed().
  std::optional<LogBase> base;
  std::string outcomes;  // with a base: what of those entries must be remembered; see Outcomes()
};

// The log of a replicated group, as far as it is durable.
struct GroupLog {
  ReplicaIdentity identity;
  std::optional<HardState> hard;
  std::optional<LogBase> base;
  Lsn last;                 // the base's index if there is no entry
  bool installing = false;  // a snapshot was begun and is not finished
  bool discarding = false;
  std::string damage;  // why it cannot be used; empty: it can

  // At a start: what is here is of no use, and must be discarded.
  bool broken() const { return installing || discarding || !damage.empty(); }
};

struct SnapshotFile {
  Space space = Space::kReplica;
  std::string path;
  uint64_t bytes = 0;
  uint64_t hash = 0;  // HashFile
};
Result<uint64_t> HashFile(const std::string& path);

// Writes the state of a group, as it was at one moment, into files that IngestSnapshot takes: the
// record with `extra`, then the pairs of the spans. Used by one thread at a time. All calls block.
class SnapshotWriter {
 public:
  const ReplicaRecord& record() const { return record_; }  // what the files are the state of
  // The next file; none: that was all. `breathe` is called after every megabyte.
  Result<std::optional<SnapshotFile>> Next(const std::function<void()>& breathe = [] {});

 private:
  friend class Store;
  SnapshotWriter(Engine& state, GroupId group, std::vector<Span> spans,
                 std::shared_ptr<const Snapshot> at);
  Result<SnapshotFile> Write(Space space,
                             const std::function<bool(std::string*, std::string*)>& pairs);

  Engine& state_;
  const GroupId group_;
  const std::vector<Span> spans_;
  const std::shared_ptr<const Snapshot> at_;
  std::string folder_;
  std::string extra_;
  size_t file_bytes_ = 0;
  ReplicaRecord record_;
  size_t files_ = 0;
  size_t span_ = 0;   // the one it is in
  std::string from_;  // the next key; empty: the first of the span
};

// What a group becomes when its keys are divided among others, or joined with those of another.
struct Heir {
  GroupId group;
  ReplicaIdentity identity;
  LogBase base;
  HardState hard;
  ReplicaRecord record;  // at the base
  std::string outcomes;  // see Outcomes()
};

struct SpanHash {
  uint64_t hash = 0;
  ReplicaRecord record;  // of what was hashed
};

class Store {
 public:
  // All three are called on `worker`, once. If it is null, on a thread of the store, and must not
  // call what blocks.
  using Done = std::function<void(const Status&, Lsn)>;
  using AppendDone = std::function<void(const Status&)>;
  using ApplyDone = std::function<void(const Status&, const ReplicaRecord&)>;

  Store(std::unique_ptr<Engine> log, std::unique_ptr<Engine> state, StoreOptions options);
  ~Store();

  // Replays what the log of local groups has and the state has not. `seen` is called for each
  // command still in the log, in order; of a replicated group for those that are applied.
  // REQUIRES: before Start().
  Status Recover(const std::function<void(GroupId, Lsn, const WriteSetView&)>& seen);
  void Start();
  // Finishes what is queued, flushes the state, ends the threads.
  void Stop();

  // --- local groups ---

  // Gives the entry the next index of its group, appends and applies it: `done` gets ok and the
  // index when it is durable and applied, in the order of the calls of one group. kUnavailable:
  // nothing was done, and no index used. kUnknownOutcome: it may be.
  void Commit(GroupId group, LogEntry entry, runtime::Worker* worker, Done done);

  // Records of local groups that begin with what the state has in their keys: durable when it
  // returns, and nothing happens if it is done again before their first write. Blocking.
  Status FoundLocal(const std::vector<std::pair<GroupId, ReplicaRecord>>& groups);

  // Deletes everything that local groups have in log and records, after they were dropped.
  Status Forget(const std::vector<GroupId>& groups);

  // --- replicated groups: the log ---

  // `done` gets ok when all of it is durable, in the order of calls. One batch for all that waits.
  // kUnavailable: nothing was done; kUnknownOutcome: it may be; after both healthy() is false,
  // unless the replica is being discarded, the store is stopping, or, for a base, a copy is being
  // made. kNotFound: there is no such replica. kInvalidArgument: it would leave a hole, cut what
  // is not flushed, or change entries during an install.
  void Append(AppendRequest request, runtime::Worker* worker, AppendDone done);
  // Nothing: no replica of the group is here.
  std::optional<GroupLog> Log(GroupId group) const;
  std::vector<GroupId> RaftGroups() const;
  // The newest replica of the group that was discarded here after it had taken part; 0: none.
  ReplicaId Ended(GroupId group) const;
  // Entries first .. last, at least one, then no more than `bytes_max`. Blocking. kNotFound: the
  // first is not in the log.
  Result<std::vector<LogEntry>> ReadLog(GroupId group, Lsn first, Lsn last, size_t bytes_max);
  // All entries above the base, with a payload only where it is a configuration. Blocking.
  Result<std::vector<LogEntry>> ReadHeads(GroupId group);
  // The applied index that is surely on disk: the log may be cut up to it.
  Lsn Flushed(GroupId group) const;
  // Whether a leader may propose so much now. kUnavailable says why not.
  Status CheckRoom(size_t bytes, bool frees_space) const;
  bool accepts(bool frees_space) const { return CheckRoom(0, frees_space).ok(); }

  // --- replicated groups: the state ---

  // Applies committed entries first, first + 1, ...; `done` gets the record after them. Those at or
  // below the applied index are skipped. kCorruption: nothing of this call was applied, there is a
  // hole or an entry cannot be read. kUnavailable: not applied. REQUIRES: durable in the log here.
  void Apply(GroupId group, Lsn first, std::vector<LogEntry> entries, runtime::Worker* worker,
             ApplyDone done);

  // --- replicas: birth, install, end. Blocking; each durable when it returns. Not two at a time of
  // one group. ---

  // Birth of a replica: with a base, a founding one whose state is empty, or what a local group has
  // become (base.index is what it has applied; it is replicated from here on). Without one, a
  // replica that joins and waits for a snapshot. kAlreadyExists: there is one, or another group has
  // some of its keys.
  Status Found(GroupId group, const ReplicaIdentity& identity, const std::optional<LogBase>& base,
               const HardState& hard);

  // A snapshot takes the place of all that the group has, in these steps. After a crash between
  // them, and after an error, the replica is `installing`: begin again, or discard it. kNotFound:
  // another replica of the group is here meanwhile.
  // 1. Sets the mark. Appends of the group that were called before are done first; then only hard
  //    states are taken, and nothing is applied. kAlreadyExists as in Found, or another id.
  //    With a plan, a start after a crash does the other steps, if the files are still there.
  Status BeginInstall(GroupId group, const ReplicaIdentity& identity, uint64_t snapshot_id,
                      std::optional<InstallPlan> plan = {});
  // 2. Deletes its keys and its record.
  Status ClearSpans(GroupId group, ReplicaId replica);
  // 3. Takes the files in, at one point. They were made by a SnapshotWriter; kCorruption if they
  //    are not of this group or have no record.
  Status IngestSnapshot(GroupId group, ReplicaId replica,
                        const std::vector<Engine::IngestFile>& files);
  // 4. The log begins at `base`, and the mark goes. `hard` counts only if it is newer than what is
  //    there. kCorruption: the state is behind the base.
  Status FinishInstall(GroupId group, ReplicaId replica, const LogBase& base,
                       const HardState& hard);

  // The heirs take the place of the parents, at one point: what is in the state of their keys is
  // theirs; keys of the parents that no heir has are deleted. The parents have ended, as in
  // Discard. kNotFound: a parent is not here; kUnavailable: one is not whole. REQUIRES: nothing of
  // the parents is appended or applied any more.
  Status Reshape(const std::vector<GroupId>& parents, const std::vector<Heir>& heirs);

  // Deletes a replica with all that it has, whatever its condition. What still waits of it gets
  // kUnavailable. Ok if there is none. One that had a base, or goes `for_good`, never returns under
  // its id: from then on Found refuses it with kForbidden.
  Status Discard(GroupId group, bool for_good = false);

  // --- the state as a whole ---

  // The state of the group as of `at`, as files in a folder. Blocking. `extra` is for the caller:
  // see Extra().
  Result<std::shared_ptr<SnapshotWriter>> WriteSnapshot(GroupId group,
                                                        const std::vector<Span>& spans,
                                                        const std::string& folder,
                                                        std::string extra,
                                                        std::shared_ptr<const Snapshot> at);
  // What came with the snapshot that this replica was installed from; empty if it was from none.
  Result<std::string> Extra(GroupId group);
  // What came with the newest base of its log; empty if nothing did. Blocking.
  Result<std::string> Outcomes(GroupId group);
  // A hash of all that can be read in the spans, of the group's totals and of `extra`: equal on
  // replicas that applied the same. Blocking.
  Result<SpanHash> HashSpans(GroupId group, const std::vector<Span>& spans, std::string_view extra,
                             const Snapshot* at = nullptr);
  Result<ReplicaRecord> RecordAt(GroupId group, const Snapshot* at);

  Engine& state() { return *state_; }
  Engine& log() { return *log_; }
  ReplicaRecord Record(GroupId group) const;
  // False after a failed log write: the node must not lead.
  bool healthy() const { return !failed_.load(std::memory_order_relaxed); }
  bool disk_full() const { return full_.load(std::memory_order_relaxed); }

  // A consistent copy of both stores in folder/log and folder/state, taken while writes go on.
  Status Checkpoint(const std::string& folder);

  // Flushes the state, and cuts the logs of local groups: at stop, and after a dropped container
  // was cleared.
  Status CutLog();

  // Each does what its thread would do next; false: there was nothing. REQUIRES: manual.
  bool CommitStep();
  bool ApplyStep();
  bool UpkeepStep();

 private:
  // A write of a local group, from the queue of the log to that of the state.
  struct Pending {
    GroupId group;
    Lsn index;
    LogEntry entry;
    runtime::Worker* worker;
    Done done;
    Status status;
    size_t bytes() const { return entry.bytes() + 64; }
    void Call() { done(status, index); }
  };
  struct PendingAppend {
    AppendRequest request;
    Lsn truncate_end;  // behind the last entry that goes
    Lsn last;          // of the group's log after it
    bool born;         // of the base
    uint64_t epoch;
    runtime::Worker* worker;
    AppendDone done;
    Status status;
    size_t bytes() const;
    void Call() { done(status); }
  };
  struct PendingApply {
    GroupId group;
    Lsn first;
    std::vector<LogEntry> entries;
    uint64_t epoch;
    runtime::Worker* worker;
    ApplyDone done;
    Status status;
    ReplicaRecord record;
    size_t bytes() const;
    void Call() { done(status, record); }
  };
  // A replicated group.
  struct Group {
    ReplicaIdentity identity;
    std::optional<HardState> hard;
    std::optional<LogBase> base;
    Lsn last;  // durable
    // After what waits.
    Lsn queued_last;
    Lsn queued_base;
    bool born = false;  // see StoredBase
    Lsn flushed;
    std::optional<GroupMark> mark;
    std::string damage;
    uint64_t epoch = 0;  // what was called in another is void
  };
  using Seen = std::function<void(GroupId, Lsn, const WriteSetView&)>;
  using Records = std::map<GroupId, ReplicaRecord>;

  // store.cc
  void CommitLoop();
  void ApplyLoop();
  void UpkeepLoop();
  void SyncLoop();
  void CheckSpace();
  void Fail(const char* what, const Status& why);
  Status FlushAndCut();
  std::optional<Lsn> CutPoint(GroupId group, Lsn applied, Lsn cut, size_t groups) const;
  template <typename P>
  static void Complete(std::vector<P> list);

  // Where no sync has to be waited for, the next batch of the log has nothing to overlap with: the
  // commit thread applies what it wrote, and saves the way to another thread.
  bool applies_at_once() const {
    return options_.durability == Durability::kPeriodic && !options_.manual;
  }

  // store_log.cc
  Status Admit(const AppendRequest& request, PendingAppend* pending);
  bool CommitBatch();
  Status WriteLog(const std::vector<Pending>& commits, const std::vector<PendingAppend>& appends);
  Status WriteSynced(const Batch& batch);
  void NoteAppended(const PendingAppend& pending);
  void VoidWaiting(GroupId group, GroupMark mark);

  // store_apply.cc
  void ApplyBatch(std::vector<Pending>& commits, std::vector<PendingApply>& requests);
  Status ApplyCommits(const std::vector<Pending>& list, Batch& batch, Records& records);
  Status ApplyRequest(PendingApply& request, Batch& batch, Records& records);
  ReplicaRecord& RecordIn(Records& records, GroupId group) const;
  static Status AddEntry(GroupId group, Lsn index, EntryKind kind, std::string_view payload,
                         Batch& batch, ReplicaRecord& record);

  // store_recover.cc
  Status ReplayLocal(GroupId group, Iterator& log, const Seen& seen);
  Status LoadReplicated(GroupId group, Iterator& log, const Seen& seen);
  Status LoadAbout(Iterator& log, Group& group);
  Status SettleReplicated();
  void ResumeInstalls();

  // store_replica.cc
  Status CheckIdentity(GroupId group, const ReplicaIdentity& identity) const;
  Status PrepareFound(GroupId group, const ReplicaIdentity& identity, const LogBase& base,
                      bool* born);
  Status CheckFiles(GroupId group, const std::vector<Span>& spans,
                    const std::vector<Engine::IngestFile>& files);
  Status DeleteState(GroupId group, const std::vector<Span>& spans);
  Result<Group> Installing(GroupId group, ReplicaId replica) const;

  const std::unique_ptr<Engine> log_;
  const std::unique_ptr<Engine> state_;
  const StoreOptions options_;

  // Locks are taken in the order in which they stand here.
  std::mutex cut_mutex_;    // cuts, copies, and steps of replicas: one at a time
  std::mutex log_mutex_;    // held over taking what waits for the log, and writing it
  std::mutex apply_mutex_;  // the same for the state
  mutable std::mutex records_mutex_;
  std::unordered_map<GroupId, ReplicaRecord> records_;
  std::unordered_map<GroupId, Lsn> cut_;  // the log of a local group holds only what is above

  mutable std::mutex mutex_;  // the queues and the replicated groups
  std::condition_variable commit_wake_;
  std::condition_variable apply_wake_;
  std::condition_variable upkeep_wake_;
  std::condition_variable sync_wake_;
  std::unordered_map<GroupId, Lsn> last_;  // the last index given out, of local groups
  std::map<GroupId, Group> groups_;
  std::map<GroupId, ReplicaId> ended_;  // see About::kEnded
  uint64_t next_epoch_ = 1;
  std::vector<Pending> to_commit_;
  std::vector<PendingAppend> to_append_;
  std::vector<Pending> to_apply_;
  std::vector<PendingApply> to_apply_replicated_;
  size_t last_batch_ = 0;  // how many the last batch of the log served
  size_t gather_ = 0;      // how many the commit thread waits for; 0: it does not
  std::atomic<size_t> queued_bytes_ = 0;
  size_t log_bytes_since_cut_ = 0;
  bool copying_ = false;  // no base may change
  bool stopping_ = false;
  bool committed_all_ = false;

  bool apply_failed_ = false;  // guarded by apply_mutex_
  std::atomic<bool> failed_ = false;
  std::atomic<bool> full_ = false;
  std::atomic<bool> quite_full_ = false;  // not even deletes
  std::thread commit_thread_;
  std::thread apply_thread_;
  std::thread upkeep_thread_;
  std::thread sync_thread_;  // with kPeriodic
};

}  // namespace orrery::storage
