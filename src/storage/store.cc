#include "storage/store.h"

#include <pthread.h>

#include "base/log.h"
#include "cql/row.h"
#include "runtime/worker.h"
#include "storage/log_format.h"

namespace orrery::storage {

namespace {

constexpr Duration kUpkeepInterval = std::chrono::milliseconds(200);
constexpr Duration kGatherTime = std::chrono::microseconds(100);
constexpr int kCutRetryTurns = 25;  // 5 s
constexpr uint64_t kTrailsMax = 100'000;
constexpr uint64_t kTrailBytesMax = 4 << 20;

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace

std::vector<std::string> LogSpaces() { return {"log"}; }
namespace {

// Rows of Cassandra tables are merged; nothing else is.
class RowMerger final : public Merger {
 public:
  const char* name() const override { return "orrery.rows"; }
  std::string Merge(std::string_view, const std::string_view* existing,
                    const std::vector<std::string_view>& operands) const override {
    return cql::MergeRows(existing == nullptr ? std::nullopt : std::optional(*existing), operands);
  }
  bool keeps_first() const override { return true; }
};

}  // namespace

EngineOptions StateEngineOptions() {
  static const RowMerger merger;
  return {.spaces = StateSpaces(), .merger = &merger, .atomic_flush = true, .log_files = false};
}

std::vector<std::string> StateSpaces() { return {"replica", "items", "index", "catalog"}; }

Store::Store(std::unique_ptr<Engine> log, std::unique_ptr<Engine> state, StoreOptions options)
    : log_(std::move(log)), state_(std::move(state)), options_(std::move(options)) {}

Store::~Store() {
  if (!options_.manual) {
    Stop();
  }
}

void Store::Start() {
  CheckSpace();
  if (options_.manual) {
    return;
  }
  commit_thread_ = std::thread([this] { CommitLoop(); });
  apply_thread_ = std::thread([this] { ApplyLoop(); });
  upkeep_thread_ = std::thread([this] { UpkeepLoop(); });
  if (options_.durability == Durability::kPeriodic) {
    sync_thread_ = std::thread([this] { SyncLoop(); });
  }
}

void Store::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || (!options_.manual && !commit_thread_.joinable())) {
      return;
    }
    stopping_ = true;
  }
  commit_wake_.notify_all();
  upkeep_wake_.notify_all();
  sync_wake_.notify_all();
  for (std::thread* thread : {&commit_thread_, &apply_thread_, &upkeep_thread_, &sync_thread_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
  while (options_.manual && (CommitStep() || ApplyStep())) {
  }
  if (options_.durability == Durability::kPeriodic && healthy()) {
    IgnoreError(log_->SyncLog(), "nothing was promised beyond the interval");
  }
  if (healthy()) {
    IgnoreError(FlushAndCut(), "the log is replayed at the next start instead");
  }
}

Status Store::CheckRoom(size_t bytes, bool frees_space) const {
  if (failed_.load(std::memory_order_relaxed)) {
    return Status(Code::kUnavailable,
                  "the log of this node has failed; writes resume after a restart");
  }
  if (full_.load(std::memory_order_relaxed) &&
      (!frees_space || quite_full_.load(std::memory_order_relaxed))) {
    return Status(Code::kUnavailable, "the disk is nearly full; writes resume when there is space");
  }
  if (queued_bytes_.load(std::memory_order_relaxed) + bytes > options_.queue_bytes_max) {
    return Status(Code::kUnavailable, "too many writes wait for the disk");
  }
  return Status::Ok();
}

void Store::Commit(GroupId group, LogEntry entry, runtime::Worker* worker, Done done) {
  Pending pending{group, Lsn(), std::move(entry), worker, std::move(done), Status()};
  {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      pending.status = Status(Code::kUnavailable, "the node is stopping");
    } else if (!groups_.empty() && groups_.contains(group)) {
      pending.status =
          Status(Code::kInvalidArgument, "group " + group.ToString() + " is replicated");
    } else {
      pending.status = CheckRoom(pending.bytes(), pending.entry.frees_space);
    }
    if (pending.status.ok()) {
      queued_bytes_ += pending.bytes();
      Lsn& last = last_[group];
      last = Lsn(last.value() + 1);
      pending.index = last;
      to_commit_.push_back(std::move(pending));
      size_t waiting = to_commit_.size() + to_append_.size();
      if (waiting == 1 || waiting == gather_) {
        commit_wake_.notify_one();
      }
      return;
    }
  }
  std::vector<Pending> list;
  list.push_back(std::move(pending));
  Complete(std::move(list));
}

void Store::CheckSpace() {
  if (!options_.free_bytes) {
    return;
  }
  uint64_t free_bytes = options_.free_bytes();
  bool full = free_bytes < options_.free_bytes_reserve;
  quite_full_ = free_bytes < options_.free_bytes_reserve / 4;
  if (full != full_.exchange(full)) {
    if (full) {
      log::Error("disk nearly full, writes are refused");
    } else {
      log::Info("disk has space again, writes resume");
    }
  }
}

void Store::Fail(const char* what, const Status& why) {
  if (!failed_.exchange(true)) {
    log::Error(std::string(what) + " failed, this node takes no more writes",
               {{"why", why.ToString()}});
  }
}

void Store::CommitLoop() {
  NameThread("commit");
  while (true) {
    {
      std::unique_lock lock(mutex_);
      auto waiting = [this] { return to_commit_.size() + to_append_.size(); };
      commit_wake_.wait(lock, [&] { return stopping_ || waiting() > 0; });
      if (waiting() == 0) {
        break;
      }
      // Those who were just answered are likely to write again at once: a moment's patience makes
      // one sync serve more of them. Who writes alone never waits.
      if (waiting() < last_batch_ / 2) {
        gather_ = last_batch_ / 2;
        commit_wake_.wait_for(lock, kGatherTime, [&] { return stopping_ || waiting() >= gather_; });
        gather_ = 0;
      }
    }
    std::lock_guard one(log_mutex_);
    CommitBatch();
  }
  std::lock_guard lock(mutex_);
  committed_all_ = true;
  apply_wake_.notify_one();
}

void Store::ApplyLoop() {
  NameThread("apply");
  while (true) {
    {
      std::unique_lock lock(mutex_);
      auto waiting = [this] {
        return (!to_apply_.empty() && !applies_at_once()) || !to_apply_replicated_.empty();
      };
      apply_wake_.wait(lock, [&] { return committed_all_ || waiting(); });
      if (!waiting()) {
        return;
      }
    }
    ApplyStep();
  }
}

// One post per worker, however many it waits for.
template <typename P>
void Store::Complete(std::vector<P> list) {
  std::map<runtime::Worker*, std::vector<P>, runtime::WorkerOrder> by_worker;
  for (P& pending : list) {
    by_worker[pending.worker].push_back(std::move(pending));
  }
  for (auto& [worker, pendings] : by_worker) {
    auto run = [pendings = std::make_shared<std::vector<P>>(std::move(pendings))] {
      for (P& pending : *pendings) {
        pending.Call();
      }
    };
    if (worker == nullptr) {
      run();
    } else {
      worker->Post(std::move(run));
    }
  }
}
template void Store::Complete(std::vector<Store::Pending>);
template void Store::Complete(std::vector<Store::PendingAppend>);
template void Store::Complete(std::vector<Store::PendingApply>);

ReplicaRecord Store::Record(GroupId group) const {
  std::lock_guard lock(records_mutex_);
  auto found = records_.find(group);
  return found == records_.end() ? ReplicaRecord() : found->second;
}

// Where the log of a group may be cut, given what is applied: a trail stays for operation ids,
// unless its entries are large. Nothing if it is not worth a cut.
std::optional<Lsn> Store::CutPoint(GroupId group, Lsn applied, Lsn cut, size_t groups) const {
  // Together the trails stay small, however many groups there are.
  uint64_t trail = std::clamp<uint64_t>(kTrailsMax / groups, 1, options_.trail_entries);
  uint64_t to = applied.value() > trail ? applied.value() - trail : 0;
  if (log_->ApproximateBytes(kLogSpace, EntryKey(group, Lsn(to)),
                             EntryKey(group, Lsn(applied.value() + 1))) > kTrailBytesMax) {
    to = applied.value();
    trail = 0;
  }
  return to > cut.value() + trail ? std::optional(Lsn(to)) : std::nullopt;
}

Status Store::CutLog() {
  ORRERY_RETURN_IF_ERROR(FlushAndCut());
  if (options_.on_flushed) {
    options_.on_flushed();
  }
  return Status::Ok();
}

Status Store::FlushAndCut() {
  std::lock_guard one(cut_mutex_);
  std::vector<std::tuple<GroupId, Lsn, Lsn>> local;  // applied, cut so far
  std::vector<std::tuple<GroupId, Lsn, uint64_t>> replicated;
  {
    std::lock_guard lock(records_mutex_);
    std::lock_guard groups_lock(mutex_);
    for (const auto& [group, record] : records_) {
      if (auto found = groups_.find(group); found != groups_.end()) {
        replicated.emplace_back(group, record.applied, found->second.epoch);
      } else {
        local.emplace_back(group, record.applied, cut_[group]);
      }
    }
  }
  ORRERY_RETURN_IF_ERROR(state_->Flush());
  {
    std::lock_guard lock(mutex_);
    log_bytes_since_cut_ = 0;
    for (const auto& [group, applied, epoch] : replicated) {
      auto found = groups_.find(group);
      if (found != groups_.end() && found->second.epoch == epoch) {
        found->second.flushed = std::max(found->second.flushed, applied);
      }
    }
  }
  Batch batch;
  std::vector<std::pair<GroupId, Lsn>> cuts;
  for (const auto& [group, applied, cut] : local) {
    if (std::optional<Lsn> to = CutPoint(group, applied, cut, local.size())) {
      batch.DeleteRange(kLogSpace, FirstEntryKey(group), EntryKey(group, Lsn(to->value() + 1)));
      cuts.emplace_back(group, *to);
    }
  }
  if (cuts.empty()) {
    return Status::Ok();
  }
  // Synced, like all that goes into the log: see EngineOptions::always_synced.
  ORRERY_RETURN_IF_ERROR(log_->Write(
      batch, options_.durability == Durability::kSync ? WriteMode::kSynced : WriteMode::kWritten));
  std::lock_guard lock(records_mutex_);
  for (const auto& [group, to] : cuts) {
    if (cut_.contains(group)) {
      cut_[group] = to;
    }
  }
  return Status::Ok();
}

Status Store::Checkpoint(const std::string& folder) {
  // The state first: what the log has beyond it is replayed. The log must not be cut between the
  // two.
  std::lock_guard one(cut_mutex_);
  {
    std::lock_guard log_lock(log_mutex_);
    {
      std::lock_guard lock(mutex_);
      copying_ = true;
    }
    CommitBatch();  // cuts that were taken before
  }
  Status status = state_->Checkpoint(folder + "/state");
  if (status.ok()) {
    status = log_->Checkpoint(folder + "/log");
  }
  std::lock_guard lock(mutex_);
  copying_ = false;
  return status;
}

Status Store::Forget(const std::vector<GroupId>& groups) {
  Batch log_batch;
  Batch state_batch;
  {
    std::lock_guard lock(records_mutex_);
    std::lock_guard queue_lock(mutex_);
    for (GroupId group : groups) {
      if (groups_.contains(group)) {
        return Status(Code::kInvalidArgument,
                      "group " + group.ToString() + " is replicated: it is discarded");
      }
    }
    for (GroupId group : groups) {
      last_.erase(group);
      records_.erase(group);
      cut_.erase(group);
      log_batch.DeleteRange(kLogSpace, EntryKey(group, Lsn(0)), GroupEnd(group));
      state_batch.Delete(Index(Space::kReplica), ReplicaKey(group));
    }
  }
  // The log first, and durable: a record without entries is harmless, entries without their record
  // are a hole.
  ORRERY_RETURN_IF_ERROR(log_->Write(log_batch, WriteMode::kSynced));
  return state_->Write(state_batch, WriteMode::kNoLog);
}

void Store::SyncLoop() {
  NameThread("sync");
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (sync_wake_.wait_for(lock, options_.sync_interval, [this] { return stopping_; })) {
        return;
      }
    }
    if (Status status = healthy() ? log_->SyncLog() : Status::Ok(); !status.ok()) {
      Fail("sync of the log", status);
    }
  }
}

void Store::UpkeepLoop() {
  NameThread("upkeep");
  // A flush that fails for want of space is tried again; until then the log only grows.
  int turns_to_wait = 0;
  bool flush_log = false;
  while (true) {
    bool cut = false;
    {
      std::unique_lock lock(mutex_);
      auto due = [this, &turns_to_wait] {
        return stopping_ ||
               (turns_to_wait == 0 && log_bytes_since_cut_ >= options_.cut_after_bytes);
      };
      upkeep_wake_.wait_for(lock, kUpkeepInterval, due);
      if (stopping_) {
        return;
      }
      cut = due();
    }
    CheckSpace();
    turns_to_wait = std::max(0, turns_to_wait - 1);
    if (std::exchange(flush_log, false) && healthy()) {
      IgnoreError(log_->Flush(), "it is only to keep the log small, and tried after the next cut");
    }
    if (!cut || !healthy()) {
      continue;
    }
    Status status = CutLog();
    flush_log = status.ok();  // the owners of replicated groups cut in between
    if (!status.ok()) {
      log::Warning("the log could not be cut, it will be tried again",
                   {{"why", status.ToString()}});
      turns_to_wait = kCutRetryTurns;
    }
  }
}

bool Store::UpkeepStep() {
  CheckSpace();
  {
    std::lock_guard lock(mutex_);
    if (log_bytes_since_cut_ < options_.cut_after_bytes) {
      return false;
    }
  }
  return healthy() && CutLog().ok();
}

}  // namespace orrery::storage
