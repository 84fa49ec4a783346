// The log: what waits of all groups in one synced batch.
#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::storage {

size_t Store::PendingAppend::bytes() const {
  size_t bytes = 64 + request.outcomes.size();
  for (const LogEntry& entry : request.entries) {
    bytes += entry.bytes() + 64;
  }
  return bytes;
}

// Whether the request fits what the group's log will be when it is written. REQUIRES: mutex_.
Status Store::Admit(const AppendRequest& request, PendingAppend* pending) {
  auto found = groups_.find(request.group);
  if (found == groups_.end()) {
    return Status(Code::kNotFound, "no replica of group " + request.group.ToString() + " is here");
  }
  auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument, "group " + request.group.ToString() + ": " + why);
  };
  Group& group = found->second;
  if (!group.damage.empty() || (group.mark && group.mark->kind == GroupMark::Kind::kDiscarding)) {
    return Status(Code::kUnavailable, "the replica is of no use");
  }
  Lsn last = group.queued_last;
  if ((group.mark || !group.base) &&
      (request.truncate_from || !request.entries.empty() || request.base)) {
    return refuse("a replica that waits for its snapshot takes no entries");
  }
  if (request.truncate_from) {
    if (*request.truncate_from <= group.queued_base) {
      return refuse("entries below the base cannot be changed");
    }
    pending->truncate_end = Lsn(last.value() + 1);
    last = std::min(last, Lsn(request.truncate_from->value() - 1));
  }
  if (!request.entries.empty()) {
    if (request.first.value() != last.value() + 1) {
      return refuse("entry " + request.first.ToString() + " cannot follow " + last.ToString());
    }
    last = Lsn(last.value() + request.entries.size());
  }
  if (request.base) {
    if (request.base->index < group.queued_base || request.base->index > last ||
        (request.base->index > group.flushed && !Active(Mutant::kCutUnflushed))) {
      return refuse("the log cannot be cut at " + request.base->index.ToString());
    }
    if (copying_) {
      return Status(Code::kUnavailable, "the log is not cut while it is being copied");
    }
    group.born = group.born && request.base->index == group.queued_base;
    group.queued_base = request.base->index;
  }
  pending->born = group.born;
  group.queued_last = last;
  pending->last = last;
  pending->epoch = group.epoch;
  return Status::Ok();
}

void Store::Append(AppendRequest request, runtime::Worker* worker, AppendDone done) {
  PendingAppend pending{std::move(request), Lsn(),   Lsn(), false, 0, worker,
                        std::move(done),    Status()};
  {
    std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) {
      pending.status = Status(Code::kUnavailable, "the log of this node has failed");
    } else if (stopping_) {
      pending.status = Status(Code::kUnavailable, "the node is stopping");
    } else {
      pending.status = Admit(pending.request, &pending);
    }
    if (pending.status.ok()) {
      queued_bytes_ += pending.bytes();
      to_append_.push_back(std::move(pending));
      size_t waiting = to_commit_.size() + to_append_.size();
      if (waiting == 1 || waiting == gather_) {
        commit_wake_.notify_one();
      }
      return;
    }
  }
  std::vector<PendingAppend> list;
  list.push_back(std::move(pending));
  Complete(std::move(list));
}

bool Store::CommitStep() {
  std::lock_guard one(log_mutex_);
  return CommitBatch();
}

// Writes all that waits. False: nothing did. REQUIRES: log_mutex_.
bool Store::CommitBatch() {
  std::vector<Pending> commits;
  std::vector<PendingAppend> appends;
  {
    std::lock_guard lock(mutex_);
    if (to_commit_.empty() && to_append_.empty()) {
      return false;
    }
    last_batch_ = to_commit_.size() + to_append_.size();
    commits.swap(to_commit_);
    appends.swap(to_append_);
    for (PendingAppend& pending : appends) {
      auto found = groups_.find(pending.request.group);
      if (found == groups_.end() || found->second.epoch != pending.epoch) {
        pending.status = Status(Code::kUnavailable, "the replica was discarded");
      }
    }
  }
  size_t commit_bytes = 0;
  for (const Pending& pending : commits) {
    commit_bytes += pending.bytes();
  }
  size_t append_bytes = 0;
  for (const PendingAppend& pending : appends) {
    append_bytes += pending.bytes();
  }
  Status status = WriteLog(commits, appends);
  {
    std::lock_guard lock(mutex_);
    for (Pending& pending : commits) {
      if (!status.ok()) {
        pending.status = status;
      }
    }
    for (PendingAppend& pending : appends) {
      if (pending.status.ok() && status.ok()) {
        NoteAppended(pending);
      } else if (pending.status.ok()) {
        pending.status = status;
      }
    }
    queued_bytes_ -= append_bytes;
    log_bytes_since_cut_ += commit_bytes + append_bytes;
    if (!to_apply_.empty()) {
      std::move(commits.begin(), commits.end(), std::back_inserter(to_apply_));
    } else if (!commits.empty()) {
      to_apply_.swap(commits);
      if (!applies_at_once()) {
        apply_wake_.notify_one();
      }
    }
    if (log_bytes_since_cut_ >= options_.cut_after_bytes) {
      upkeep_wake_.notify_one();
    }
  }
  // Under log_mutex_: in order, whoever writes.
  Complete(std::move(appends));
  while (applies_at_once() && ApplyStep()) {
  }
  return true;
}

Status Store::WriteLog(const std::vector<Pending>& commits,
                       const std::vector<PendingAppend>& appends) {
  if (failed_.load(std::memory_order_relaxed)) {
    return Status(Code::kUnavailable,
                  "the log of this node has failed; writes resume after a restart");
  }
  Batch batch;
  std::string value;
  for (const Pending& pending : commits) {
    EncodeEntry(pending.entry, value);
    batch.Put(kLogSpace, EntryKey(pending.group, pending.index), value);
  }
  for (const PendingAppend& pending : appends) {
    if (!pending.status.ok()) {
      continue;
    }
    const AppendRequest& request = pending.request;
    GroupId group = request.group;
    if (request.truncate_from) {
      batch.DeleteRange(kLogSpace, EntryKey(group, *request.truncate_from),
                        EntryKey(group, pending.truncate_end));
    }
    uint64_t index = request.first.value();
    for (const LogEntry& entry : request.entries) {
      EncodeEntry(entry, value);
      batch.Put(kLogSpace, EntryKey(group, Lsn(index++)), value);
    }
    if (request.hard) {
      batch.Put(kLogSpace, AboutKey(group, About::kHardState), EncodeHardState(*request.hard));
    }
    if (request.base) {
      batch.Put(kLogSpace, AboutKey(group, About::kBase),
                EncodeBase({*request.base, pending.born}));
      if (!request.outcomes.empty()) {
        batch.Put(kLogSpace, AboutKey(group, About::kOutcomes), request.outcomes);
      }
      batch.DeleteRange(kLogSpace, FirstEntryKey(group),
                        EntryKey(group, Lsn(request.base->index.value() + 1)));
    }
  }
  if (!appends.empty() || options_.durability == Durability::kSync) {
    return WriteSynced(batch);
  }
  Status status = log_->Write(batch, WriteMode::kWritten);
  if (!status.ok()) {
    Fail("log write", status);
    return Status(Code::kUnknownOutcome, "the log write failed: " + status.message());
  }
  return status;
}

Status Store::WriteSynced(const Batch& batch) {
  if (failed_.load(std::memory_order_relaxed)) {
    return Status(Code::kUnavailable, "the log of this node has failed");
  }
  Status status =
      log_->Write(batch, Active(Mutant::kNoSync) ? WriteMode::kWritten : WriteMode::kSynced);
  if (!status.ok()) {
    Fail("log write", status);
    return Status(Code::kUnknownOutcome, "the log write failed: " + status.message());
  }
  return status;
}

// REQUIRES: mutex_.
void Store::NoteAppended(const PendingAppend& pending) {
  auto found = groups_.find(pending.request.group);
  if (found == groups_.end() || found->second.epoch != pending.epoch) {
    return;
  }
  Group& group = found->second;
  group.last = pending.last;
  if (pending.request.hard) {
    group.hard = pending.request.hard;
  }
  if (pending.request.base) {
    group.base = pending.request.base;
  }
}

std::optional<GroupLog> Store::Log(GroupId group) const {
  std::lock_guard lock(mutex_);
  auto found = groups_.find(group);
  if (found == groups_.end()) {
    return std::nullopt;
  }
  const Group& known = found->second;
  GroupLog log{.identity = known.identity,
               .hard = known.hard,
               .base = known.base,
               .last = known.last,
               .damage = known.damage};
  log.installing = known.mark && known.mark->kind == GroupMark::Kind::kInstalling;
  log.discarding = known.mark && known.mark->kind == GroupMark::Kind::kDiscarding;
  return log;
}

ReplicaId Store::Ended(GroupId group) const {
  std::lock_guard lock(mutex_);
  auto found = ended_.find(group);
  return found == ended_.end() ? ReplicaId() : found->second;
}

std::vector<GroupId> Store::RaftGroups() const {
  std::lock_guard lock(mutex_);
  std::vector<GroupId> groups;
  for (const auto& [group, known] : groups_) {
    groups.push_back(group);
  }
  return groups;
}

Lsn Store::Flushed(GroupId group) const {
  std::lock_guard lock(mutex_);
  auto found = groups_.find(group);
  return found == groups_.end() ? Lsn() : found->second.flushed;
}

Result<std::vector<LogEntry>> Store::ReadLog(GroupId group, Lsn first, Lsn last, size_t bytes_max) {
  std::vector<LogEntry> entries;
  size_t bytes = 0;
  uint64_t next = first.value();
  auto at =
      log_->NewIterator(kLogSpace, EntryKey(group, first), EntryKey(group, Lsn(last.value() + 1)));
  for (at->SeekToFirst(); at->Valid(); at->Next(), ++next) {
    ORRERY_TRY(LogKey key, ParseLogKey(at->key()));
    if (key.index.value() != next) {
      break;
    }
    ORRERY_TRY(EntryView view, DecodeEntry(key, at->value()));
    if (!entries.empty() && bytes + view.payload.size() > bytes_max) {
      return entries;
    }
    bytes += view.payload.size();
    LogEntry entry{.term = view.term, .kind = view.kind};
    if (view.kind != EntryKind::kBarrier) {
      entry.payload = std::make_shared<const std::string>(view.payload);
    }
    entries.push_back(std::move(entry));
  }
  ORRERY_TRY_STATUS(at->status());
  if (entries.empty()) {
    return Error(Code::kNotFound, "entry " + std::to_string(next) + " of group " +
                                      group.ToString() + " is not in the log");
  }
  return entries;
}

Result<std::vector<LogEntry>> Store::ReadHeads(GroupId group) {
  std::optional<GroupLog> log = Log(group);
  std::vector<LogEntry> entries;
  if (!log || !log->base) {
    return entries;
  }
  uint64_t next = log->base->index.value() + 1;
  auto at = log_->NewIterator(kLogSpace, EntryKey(group, Lsn(next)), GroupEnd(group));
  for (at->SeekToFirst(); at->Valid(); at->Next(), ++next) {
    ORRERY_TRY(LogKey key, ParseLogKey(at->key()));
    ORRERY_TRY(EntryView view, DecodeEntry(key, at->value()));
    if (key.index.value() != next) {
      return Error(Code::kCorruption, "the log of group " + group.ToString() + " has no entry " +
                                          std::to_string(next));
    }
    LogEntry entry{.term = view.term, .kind = view.kind};
    if (view.kind == EntryKind::kChange) {
      entry.payload = std::make_shared<const std::string>(view.payload);
    }
    entries.push_back(std::move(entry));
  }
  ORRERY_TRY_STATUS(at->status());
  return entries;
}

// Waits until the appends of the group that were called before are written, then sets the mark:
// what was called before it is void. REQUIRES: log_mutex_; the group is there.
void Store::VoidWaiting(GroupId group, GroupMark mark) {
  auto waits = [group](const PendingAppend& pending) { return pending.request.group == group; };
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (mark.kind == GroupMark::Kind::kDiscarding ||
          std::none_of(to_append_.begin(), to_append_.end(), waits)) {
        Group& known = groups_[group];
        known.mark = std::move(mark);
        known.epoch = next_epoch_++;
        known.queued_last = known.last;
        break;
      }
    }
    CommitBatch();
  }
  // A batch of applies that has begun.
  std::lock_guard barrier(apply_mutex_);
}

}  // namespace orrery::storage
