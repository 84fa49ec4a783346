// RaftReplicaSet: committed entries into the state, log cuts, snapshots.
#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "replication/raft_host.h"
#include "replication/raft_replica_set.h"

namespace orrery::replication {

namespace {

constexpr Duration kPollPause = std::chrono::milliseconds(2);
constexpr Duration kFetchPause = std::chrono::milliseconds(200);
constexpr int kFetchTries = 5;

}  // namespace

void RaftReplicaSet::TakeRecord(const storage::ReplicaRecord& record) {
  bytes_.store(record.totals.bytes, std::memory_order_relaxed);
  items_.store(record.totals.items, std::memory_order_relaxed);
  applied_.store(record.applied.value(), std::memory_order_release);
  if (frozen_ != record.frozen) {
    frozen_ = record.frozen;
    if (listener_ != nullptr) {
      listener_->OnFrozen(frozen_);
    }
  }
}

void RaftReplicaSet::SetListener(ApplyListener* listener) {
  listener_ = listener;
  if (listener_ != nullptr) {
    listener_->OnFrozen(frozen_);
  }
}

storage::Totals RaftReplicaSet::totals() const {
  return {bytes_.load(std::memory_order_relaxed), items_.load(std::memory_order_relaxed)};
}

// One batch at a time, of what is committed and durable here.
void RaftReplicaSet::ScheduleApply() {
  if (stopped_ || applying_ || installing_) {
    return;
  }
  Lsn first(applied().value() + 1);
  Lsn last = std::min(committed(), core_->stored());
  if (last < first) {
    return;
  }
  applying_ = true;
  std::vector<LogEntry> entries;
  size_t bytes = 0;
  for (Lsn index = first; index <= last && bytes < options_.apply_bytes_max;
       index = Lsn(index.value() + 1)) {
    const LogEntry* entry = cache_.Find(index);
    if (entry == nullptr) {
      break;
    }
    bytes += entry->bytes();
    entries.push_back(*entry);
    if (IsCheck(*entry)) {
      break;  // the state is hashed as it is after it
    }
  }
  if (entries.empty()) {
    worker_.Spawn(ApplyFromLog(shared_from_this(), first, last));
  } else {
    StartApply(first, std::move(entries));
  }
}

runtime::Task<> RaftReplicaSet::ApplyFromLog(std::shared_ptr<RaftReplicaSet> self, Lsn first,
                                             Lsn last) {
  auto read = [this, first, last] {
    return store_.ReadLog(group_, first, last, options_.apply_bytes_max);
  };
  Result<std::vector<LogEntry>> entries = co_await runtime::OnBlocking(host_.workers(), read);
  if (!entries) {
    applying_ = false;
    Fail(entries.error().ToString());
    co_return;
  }
  auto check = std::ranges::find_if(*entries, IsCheck);
  if (check != entries->end()) {
    entries->erase(check + 1, entries->end());
  }
  StartApply(first, std::move(*entries));
}

void RaftReplicaSet::StartApply(Lsn first, std::vector<LogEntry> entries) {
  auto done = [self = shared_from_this(), first, entries](const Status& status,
                                                          const storage::ReplicaRecord& record) {
    self->OnApplied(first, entries, status, record);
  };
  store_.Apply(group_, first, std::move(entries), &worker_, std::move(done));
}

void RaftReplicaSet::OnApplied(Lsn first, std::vector<LogEntry> entries, const Status& status,
                               const storage::ReplicaRecord& record) {
  applying_ = false;
  if (stopped_) {
    return;
  }
  if (!status.ok()) {
    return Fail(status.ToString());
  }
  Lsn before = applied();
  TakeRecord(record);
  RaftObserver* observer = host_.options().observer;
  for (size_t i = 0; i < entries.size(); ++i) {
    Lsn index(first.value() + i);
    if (observer != nullptr && index > before) {
      observer->OnApplied(group_, index, entries[i]);
    }
    if (listener_ == nullptr) {
      continue;
    }
    if (entries[i].kind == EntryKind::kCommand && index > before) {
      auto view = storage::WriteSetView::Parse(*entries[i].payload);
      listener_->OnApplied(index, *view);
    }
  }
  if (IsCheck(entries.back())) {
    StartHash(Lsn(first.value() + entries.size() - 1));
  }
  std::vector<Waiting> done;
  while (!waiting_.empty() && waiting_.front().index <= record.applied) {
    queued_bytes_ -= waiting_.front().bytes;
    done.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!done.empty() && waiting_.empty()) {
    writers_.End(queue_.size(), host_.clock().Now());
  }
  cache_.Shrink(std::min(record.applied, core_->stored()));
  CommitChanges();
  Publish();
  for (Waiting& waiting : done) {
    waiting.resume(waiting.index);
  }
  WakeReaders();
  TakeProof();
  FlushProposals();
  ScheduleApply();
}

// Configurations that are committed and applied, for the core and for the next log base.
void RaftReplicaSet::CommitChanges() {
  while (!changes_.empty() && changes_.front().first <= std::min(core_->commit(), applied()) &&
         changes_.front().first <= core_->stored()) {
    auto [index, configuration] = std::move(changes_.front());
    changes_.pop_front();
    CountMoves(configurations_.empty() ? base_.configuration : configurations_.back().second,
               configuration);
    configurations_.emplace_back(index, configuration);
    log::Debug("members changed", {{"group", group_.ToString()},
                                   {"replica", self_.ToString()},
                                   {"index", index.ToString()},
                                   {"members", configuration.ToString()}});
    NoteMembership(configuration);
    Handle(core_->ConfigurationApplied(index, configuration, Now()));
  }
}

// One that began with a snapshot hears of configurations from before it was added: those say
// nothing about it.
void RaftReplicaSet::NoteMembership(const Configuration& configuration) {
  bool member = configuration.Find(self_) != nullptr;
  gone_ = !member && was_member_;
  was_member_ = was_member_ || member;
}

// What is committed at an index is the same in every log that has an entry of that term there.
runtime::Task<Status> RaftReplicaSet::FinishAt(Lsn lsn, uint64_t term) {
  while (!stopped_ && applied() < lsn) {
    if (core_ != nullptr && !installing_ && appends_.empty()) {
      if (core_->stored() < lsn || core_->TermOf(lsn) != term) {
        co_return Status(Code::kNotFound, "entry " + lsn.ToString() + " is not in the log here");
      }
      finish_at_ = lsn;
      ScheduleApply();
    }
    co_await runtime::Sleep(kPollPause);
  }
  co_return applied() >= lsn ? Status::Ok() : Status(Code::kUnavailable, "the replica has stopped");
}

// The log -----------------------------------------------------------------------------------------

void RaftReplicaSet::HoldLog(Duration how_long) {
  hold_log_until_ = host_.clock().Now() + how_long;
}

// Cuts the log below what the state has on disk, less a trail for followers that are a little
// behind. What operations of it came to is kept beside the new base.
void RaftReplicaSet::OnFlushed() {
  if (stopped_ || installing_ || cutting_ || core_ == nullptr ||
      host_.clock().Now() < hold_log_until_) {
    return;
  }
  uint64_t flushed = std::min(store_.Flushed(group_).value(), core_->stored().value());
  if (Active(Mutant::kCutUnflushed)) {
    flushed = core_->stored().value();
  }
  flushed = std::min(flushed, core_->commit().value());
  uint64_t to = flushed > options_.trail_entries ? flushed - options_.trail_entries : 0;
  uint64_t term = to > 0 ? core_->TermOf(Lsn(to)) : 0;
  if (to < base_.index.value() + options_.cut_entries || term == 0) {
    return;
  }
  SnapshotMeta meta = base_;
  meta.index = Lsn(to);
  meta.term = term;
  for (const auto& [index, configuration] : configurations_) {
    if (index.value() <= to) {
      meta.configuration_index = index;
      meta.configuration = configuration;
    }
  }
  if (!changes_.empty() && changes_.front().first.value() <= to) {
    return;  // not known to be committed yet
  }
  storage::AppendRequest request{.group = group_};
  request.base = storage::LogBase{meta.index, meta.term, meta.configuration.Encode(),
                                  meta.configuration_index};
  if (listener_ != nullptr) {
    request.outcomes = listener_->Outcomes();
  }
  cutting_ = true;
  auto done = [weak = weak_from_this(), meta](const Status& status) {
    if (auto self = weak.lock()) {
      self->OnCut(meta, status);
    }
  };
  store_.Append(std::move(request), &worker_, std::move(done));
}

void RaftReplicaSet::OnCut(const SnapshotMeta& meta, const Status& status) {
  cutting_ = false;
  if (stopped_) {
    return;
  }
  if (!status.ok()) {
    if (!store_.healthy()) {
      Fail(status.ToString());
    }
    return;  // a copy is being made of the store, for example: the next flush tries again
  }
  base_ = meta;
  while (!configurations_.empty() && configurations_.front().first <= meta.index) {
    configurations_.pop_front();
  }
  Handle(core_->LogCut(meta, Now()));
}

// Snapshots ---------------------------------------------------------------------------------------

runtime::Task<> RaftReplicaSet::Install(std::shared_ptr<RaftReplicaSet> self, SnapshotMeta meta,
                                        NodeId from_node) {
  while (!stopped_ && (applying_ || cutting_ || !appends_.empty())) {
    co_await runtime::Sleep(kPollPause);  // nothing new is begun while it installs
  }
  Result<storage::ReplicaRecord> record = Error(Code::kUnavailable);
  for (int tries = 0; tries < kFetchTries && !stopped_; ++tries) {
    record = co_await InstallFiles(meta, from_node);
    if (record || record.error().code() != Code::kUnavailable) {
      break;
    }
    log::Warning("a snapshot could not be fetched, it will be tried again",
                 {{"group", group_.ToString()}, {"why", record.error().message()}});
    co_await runtime::Sleep(kFetchPause);
    if (leader_node() != NodeId()) {
      from_node = leader_node();
    }
  }
  installing_ = false;
  if (stopped_) {
    co_return;
  }
  if (!record && record.error().code() != Code::kUnavailable) {
    co_return Fail(record.error().ToString());
  }
  if (!record) {
    core_->InstallFailed();  // the leader begins again
    ScheduleApply();
    co_return;
  }
  base_ = meta;
  NoteMembership(meta.configuration);
  changes_.clear();
  configurations_.clear();
  cache_.Reset(meta.index);
  log_last_ = meta.index;
  TakeRecord(*record);
  TakeProof();
  log::Info("snapshot installed", {{"group", group_.ToString()},
                                   {"index", meta.index.ToString()},
                                   {"applied", record->applied.ToString()}});
  if (host_.options().observer != nullptr) {
    host_.options().observer->OnInstalled(group_, applied());
  }
  if (listener_ != nullptr) {
    listener_->OnReplaced();
  }
  Handle(core_->PersistedSnapshot(meta, Now()));
  ScheduleApply();
}

// kUnavailable: nothing was touched. Anything else: the replica is broken and must be made anew.
runtime::Task<Result<storage::ReplicaRecord>> RaftReplicaSet::InstallFiles(const SnapshotMeta& meta,
                                                                           NodeId from_node) {
  auto given_up = [this] { return stopped_; };
  Result<ReceivedSnapshot> got =
      co_await host_.snapshots().Fetch(from_node, group_, meta.index, given_up);
  if (!got) {
    co_return Error(Code::kUnavailable, got.error().ToString());
  }
  if (stopped_) {
    // Another replica may be here by now, even one of the same id.
    host_.snapshots().Drop(*got);
    co_return Error(Code::kUnavailable, "the replica was deleted meanwhile");
  }
  taking_in_ = true;
  ++installs_;  // stays so if it fails: the state is in pieces
  auto install = [this, &got, &meta]() -> Status {
    auto log = store_.Log(group_);
    if (!log || log->identity.id != self_) {
      return Status(Code::kNotFound, "the replica was deleted meanwhile");
    }
    std::vector<storage::Engine::IngestFile> files;
    for (const storage::SnapshotFile& file : got->files) {
      files.push_back({storage::Index(file.space), file.path});
    }
    storage::LogBase base{meta.index, meta.term, meta.configuration.Encode(),
                          meta.configuration_index};
    ORRERY_RETURN_IF_ERROR(
        store_.BeginInstall(group_, log->identity, got->id, storage::InstallPlan{base, files}));
    ORRERY_RETURN_IF_ERROR(store_.ClearSpans(group_, self_));
    ORRERY_RETURN_IF_ERROR(store_.IngestSnapshot(group_, self_, files));
    ORRERY_RETURN_IF_ERROR(store_.FinishInstall(group_, self_, base, {}));
    Result<std::string> extra = store_.Extra(group_);
    if (extra) {
      extra_ = std::move(*extra);
    }
    return extra ? Status::Ok() : extra.error();
  };
  Status status = co_await runtime::OnBlocking(host_.workers(), install);
  taking_in_ = false;
  host_.snapshots().Drop(*got);
  if (!status.ok()) {
    co_return Error(Code::kCorruption, status.ToString());
  }
  ++installs_;
  co_return store_.Record(group_);
}

}  // namespace orrery::replication
