#include "storage/store.h"

#include <pthread.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "runtime/worker.h"

namespace orrery::storage {

namespace {

constexpr uint8_t kRecordVersion = 1;
constexpr uint8_t kEntryVersion = 1;
constexpr Duration kUpkeepInterval = std::chrono::milliseconds(200);
constexpr Duration kGatherTime = std::chrono::microseconds(100);
constexpr int kCutRetryTurns = 25;  // 5 s
constexpr uint64_t kTrailsMax = 100'000;
constexpr uint64_t kTrailBytesMax = 4 << 20;
constexpr size_t kReplayBatchBytes = 4 << 20;

std::string EntryKey(GroupId group, Lsn index) {
  std::string key;
  Encoder encoder(key);
  encoder.U64(group.value());
  encoder.U64(index.value());
  return key;
}

std::string EncodeRecord(const ReplicaRecord& record) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kRecordVersion);
  encoder.U64(record.applied.value());
  encoder.U64(static_cast<uint64_t>(record.totals.bytes));
  encoder.U64(static_cast<uint64_t>(record.totals.items));
  encoder.U64(static_cast<uint64_t>(record.time.micros));
  return out;
}

Result<ReplicaRecord> DecodeRecord(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  ReplicaRecord record;
  record.applied = Lsn(decoder.U64());
  record.totals.bytes = static_cast<int64_t>(decoder.U64());
  record.totals.items = static_cast<int64_t>(decoder.U64());
  record.time = {static_cast<int64_t>(decoder.U64())};
  if (!decoder.ok() || version != kRecordVersion) {
    return Error(Code::kCorruption, "replica record is malformed or newer than this program");
  }
  return record;
}

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace

Store::Store(std::unique_ptr<Engine> log, std::unique_ptr<Engine> state, StoreOptions options)
    : log_(std::move(log)), state_(std::move(state)), options_(std::move(options)) {}

Store::~Store() { Stop(); }

Status Store::Recover(const std::function<void(GroupId, Lsn, const WriteSetView&)>& seen) {
  auto records = state_->NewIterator(Index(Space::kReplica), "", "");
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    auto record = DecodeRecord(records->value());
    if (!record) {
      return record.error();
    }
    records_[GroupId(Decoder(records->key()).U64())] = *record;
  }
  ORRERY_RETURN_IF_ERROR(records->status());

  auto log = log_->NewIterator(0, "", "");
  log->SeekToFirst();
  while (log->Valid()) {
    GroupId group(Decoder(log->key()).U64());
    ORRERY_RETURN_IF_ERROR(ReplayGroup(group, *log, seen));
  }
  for (const auto& [group, record] : records_) {
    last_[group] = record.applied;
  }
  return log->status();
}

// Leaves the iterator at the first entry of the next group.
Status Store::ReplayGroup(GroupId group, Iterator& log,
                          const std::function<void(GroupId, Lsn, const WriteSetView&)>& seen) {
  Batch batch;
  std::map<GroupId, ReplicaRecord> records{{group, records_[group]}};
  ReplicaRecord& record = records[group];
  cut_[group] = Lsn(Decoder(log.key().substr(8)).U64() - 1);
  auto write = [&]() -> Status {
    batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
    ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
    batch.Clear();
    records_[group] = record;
    return Status::Ok();
  };
  for (; log.Valid() && Decoder(log.key()).U64() == group.value(); log.Next()) {
    LogEntry entry{.group = group, .index = Lsn(Decoder(log.key().substr(8)).U64())};
    Decoder decoder(log.value());
    uint8_t version = decoder.U8();
    entry.term = decoder.U64();
    std::string_view payload = decoder.Rest();
    if (!decoder.ok() || version != kEntryVersion) {
      return Status(Code::kCorruption, "log entry " + entry.index.ToString() + " of group " +
                                           group.ToString() +
                                           " is malformed or newer than this program");
    }
    auto view = WriteSetView::Parse(payload);
    if (!view) {
      return view.error();
    }
    seen(group, entry.index, *view);
    if (entry.index <= record.applied) {
      continue;
    }
    entry.payload.assign(payload);
    ORRERY_RETURN_IF_ERROR(ApplyEntry(entry, batch, records));
    if (batch.bytes() >= kReplayBatchBytes) {
      ORRERY_RETURN_IF_ERROR(write());
    }
  }
  return record.applied == records_[group].applied ? Status::Ok() : write();
}

Status Store::ApplyEntry(const LogEntry& entry, Batch& batch,
                         std::map<GroupId, ReplicaRecord>& records) {
  ReplicaRecord& record = records[entry.group];
  if (entry.index.value() != record.applied.value() + 1) {
    return Status(Code::kCorruption, "the log of group " + entry.group.ToString() + " has entry " +
                                         entry.index.ToString() + " where " +
                                         std::to_string(record.applied.value() + 1) + " should be");
  }
  auto view = WriteSetView::Parse(entry.payload);
  if (!view) {
    return view.error();
  }
  ORRERY_RETURN_IF_ERROR(view->AddTo(batch, entry.index));
  record.applied = entry.index;
  record.totals.bytes += view->change.bytes;
  record.totals.items += view->change.items;
  record.time = view->time;
  return Status::Ok();
}

void Store::Start() {
  CheckSpace();
  commit_thread_ = std::thread([this] { CommitLoop(); });
  apply_thread_ = std::thread([this] { ApplyLoop(); });
  upkeep_thread_ = std::thread([this] { UpkeepLoop(); });
  if (options_.durability == Durability::kPeriodic) {
    sync_thread_ = std::thread([this] { SyncLoop(); });
  }
}

void Store::Stop() {
  if (!commit_thread_.joinable()) {
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  commit_wake_.notify_all();
  upkeep_wake_.notify_all();
  sync_wake_.notify_all();
  commit_thread_.join();
  apply_thread_.join();
  upkeep_thread_.join();
  if (sync_thread_.joinable()) {
    sync_thread_.join();
  }
  if (options_.durability == Durability::kPeriodic && healthy()) {
    IgnoreError(log_->SyncLog(), "nothing was promised beyond the interval");
  }
  if (healthy()) {
    IgnoreError(CutLog(), "the log is replayed at the next start instead");
  }
}

void Store::Commit(LogEntry entry, runtime::Worker* worker, Done done) {
  size_t bytes = entry.payload.size() + 64;
  Status refused;
  if (failed_.load(std::memory_order_relaxed)) {
    refused = Status(Code::kUnavailable,
                     "the log of this node has failed; writes resume after a restart");
  } else if (full_.load(std::memory_order_relaxed) &&
             (!entry.frees_space || quite_full_.load(std::memory_order_relaxed))) {
    refused =
        Status(Code::kUnavailable, "the disk is nearly full; writes resume when there is space");
  } else {
    std::lock_guard lock(mutex_);
    if (stopping_) {
      refused = Status(Code::kUnavailable, "the node is stopping");
    } else if (queued_bytes_ + bytes > options_.queue_bytes_max) {
      refused = Status(Code::kUnavailable, "too many writes wait for the disk");
    } else {
      queued_bytes_ += bytes;
      Lsn& last = last_[entry.group];
      last = Lsn(last.value() + 1);
      entry.index = last;
      bool wake = to_commit_.empty();
      to_commit_.push_back({std::move(entry), worker, std::move(done), Status()});
      if (wake || to_commit_.size() == gather_) {
        commit_wake_.notify_one();
      }
      return;
    }
  }
  PendingList list;
  list.push_back({std::move(entry), worker, std::move(done), refused});
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

Status Store::WriteLog(const PendingList& list) {
  if (failed_.load(std::memory_order_relaxed)) {
    return Status(Code::kUnavailable,
                  "the log of this node has failed; writes resume after a restart");
  }
  Batch batch;
  std::string value;
  for (const Pending& pending : list) {
    value.clear();
    Encoder encoder(value);
    encoder.U8(kEntryVersion);
    encoder.U64(pending.entry.term);
    encoder.Raw(pending.entry.payload);
    batch.Put(0, EntryKey(pending.entry.group, pending.entry.index), value);
  }
  Status status = log_->Write(
      batch, options_.durability == Durability::kSync ? WriteMode::kSynced : WriteMode::kWritten);
  if (!status.ok()) {
    failed_ = true;
    log::Error("log write failed, this node takes no more writes", {{"why", status.ToString()}});
    return Status(Code::kUnknownOutcome, "the log write failed: " + status.message());
  }
  return status;
}

void Store::CommitLoop() {
  NameThread("commit");
  size_t last_batch = 0;
  while (true) {
    PendingList list;
    {
      std::unique_lock lock(mutex_);
      commit_wake_.wait(lock, [this] { return stopping_ || !to_commit_.empty(); });
      if (to_commit_.empty()) {
        break;
      }
      // Those who were just answered are likely to write again at once: a moment's patience makes
      // one sync serve more of them. Who writes alone never waits.
      if (to_commit_.size() < last_batch / 2) {
        gather_ = last_batch / 2;
        commit_wake_.wait_for(lock, kGatherTime,
                              [this] { return stopping_ || to_commit_.size() >= gather_; });
        gather_ = 0;
      }
      last_batch = to_commit_.size();
      list.swap(to_commit_);
    }
    size_t bytes = 0;
    for (const Pending& pending : list) {
      bytes += pending.entry.payload.size() + 64;
    }
    Status status = WriteLog(list);
    if (!status.ok()) {
      for (Pending& pending : list) {
        pending.status = status;
      }
    }
    std::lock_guard lock(mutex_);
    log_bytes_since_cut_ += bytes;
    bool wake = to_apply_.empty();
    std::move(list.begin(), list.end(), std::back_inserter(to_apply_));
    if (wake) {
      apply_wake_.notify_one();
    }
    if (log_bytes_since_cut_ >= options_.cut_after_bytes) {
      upkeep_wake_.notify_one();
    }
  }
  std::lock_guard lock(mutex_);
  committed_all_ = true;
  apply_wake_.notify_one();
}

Status Store::ApplyList(PendingList& list) {
  Batch batch;
  std::map<GroupId, ReplicaRecord> records;
  for (const Pending& pending : list) {
    if (pending.status.ok() && !records.contains(pending.entry.group)) {
      records[pending.entry.group] = Record(pending.entry.group);
    }
  }
  for (Pending& pending : list) {
    if (pending.status.ok()) {
      ORRERY_RETURN_IF_ERROR(ApplyEntry(pending.entry, batch, records));
    }
  }
  if (batch.empty() && records.empty()) {
    return Status::Ok();
  }
  for (const auto& [group, record] : records) {
    batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
  }
  ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
  std::lock_guard lock(records_mutex_);
  for (const auto& [group, record] : records) {
    records_[group] = record;
  }
  return Status::Ok();
}

void Store::ApplyLoop() {
  NameThread("apply");
  while (true) {
    PendingList list;
    {
      std::unique_lock lock(mutex_);
      apply_wake_.wait(lock, [this] { return committed_all_ || !to_apply_.empty(); });
      if (to_apply_.empty()) {
        return;
      }
      list.swap(to_apply_);
    }
    size_t bytes = 0;
    for (const Pending& pending : list) {
      bytes += pending.entry.payload.size() + 64;
    }
    Status status =
        failed_ ? Status(Code::kUnknownOutcome, "an earlier apply failed") : ApplyList(list);
    if (!status.ok()) {
      // In the log but not in the state: only the replay of a restart brings the two together
      // again.
      if (!failed_.exchange(true)) {
        log::Error("apply failed, this node takes no more writes", {{"why", status.ToString()}});
      }
      for (Pending& pending : list) {
        if (pending.status.ok()) {
          pending.status =
              Status(Code::kUnknownOutcome, "the write is in the log but could not be applied");
        }
      }
    }
    Complete(std::move(list));
    std::lock_guard lock(mutex_);
    queued_bytes_ -= bytes;
  }
}

// One post per worker, however many entries it waits for.
void Store::Complete(PendingList list) {
  std::map<runtime::Worker*, PendingList> by_worker;
  for (Pending& pending : list) {
    by_worker[pending.worker].push_back(std::move(pending));
  }
  for (auto& [worker, pendings] : by_worker) {
    auto run = [pendings = std::make_shared<PendingList>(std::move(pendings))] {
      for (Pending& pending : *pendings) {
        pending.done(pending.status, pending.entry.index);
      }
    };
    if (worker == nullptr) {
      run();
    } else {
      worker->Post(std::move(run));
    }
  }
}

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
  std::string begin = EntryKey(group, Lsn(to));
  if (log_->ApproximateBytes(0, begin, EntryKey(group, Lsn(applied.value() + 1))) >
      kTrailBytesMax) {
    to = applied.value();
    trail = 0;
  }
  return to > cut.value() + trail ? std::optional(Lsn(to)) : std::nullopt;
}

Status Store::CutLog() {
  std::lock_guard one(cut_mutex_);
  std::vector<std::tuple<GroupId, Lsn, Lsn>> groups;  // applied, cut so far
  {
    std::lock_guard lock(records_mutex_);
    for (const auto& [group, record] : records_) {
      groups.emplace_back(group, record.applied, cut_[group]);
    }
  }
  ORRERY_RETURN_IF_ERROR(state_->Flush());
  {
    std::lock_guard lock(mutex_);
    log_bytes_since_cut_ = 0;
  }
  Batch batch;
  std::vector<std::pair<GroupId, Lsn>> cuts;
  for (const auto& [group, applied, cut] : groups) {
    if (std::optional<Lsn> to = CutPoint(group, applied, cut, groups.size())) {
      batch.DeleteRange(0, EntryKey(group, Lsn(0)), EntryKey(group, Lsn(to->value() + 1)));
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
  ORRERY_RETURN_IF_ERROR(state_->Checkpoint(folder + "/state"));
  return log_->Checkpoint(folder + "/log");
}

Status Store::Forget(const std::vector<GroupId>& groups) {
  Batch log_batch;
  Batch state_batch;
  {
    std::lock_guard lock(records_mutex_);
    std::lock_guard queue_lock(mutex_);
    for (GroupId group : groups) {
      last_.erase(group);
      records_.erase(group);
      cut_.erase(group);
      log_batch.DeleteRange(0, EntryKey(group, Lsn(0)),
                            EntryKey(GroupId(group.value() + 1), Lsn(0)));
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
    Status status = healthy() ? log_->SyncLog() : Status::Ok();
    if (!status.ok() && !failed_.exchange(true)) {
      log::Error("sync of the log failed, this node takes no more writes",
                 {{"why", status.ToString()}});
    }
  }
}

void Store::UpkeepLoop() {
  NameThread("upkeep");
  // A flush that fails for want of space is tried again; until then the log only grows.
  int turns_to_wait = 0;
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
    if (!cut || !healthy()) {
      continue;
    }
    if (Status status = CutLog(); !status.ok()) {
      log::Warning("the log could not be cut, it will be tried again",
                   {{"why", status.ToString()}});
      turns_to_wait = kCutRetryTurns;
    }
  }
}

}  // namespace orrery::storage
