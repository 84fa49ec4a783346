// The state: what is committed, of all groups, in one batch with their records.
#include <algorithm>

#include "base/log.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::storage {

namespace {

constexpr size_t kApplyBatchBytes = 16 << 20;

// Moves what comes first out of the queue: one at least, then no more than the limit.
template <typename P>
std::vector<P> TakeSome(std::vector<P>& queue, size_t* bytes) {
  auto end = queue.begin();
  while (end != queue.end() && *bytes < kApplyBatchBytes) {
    *bytes += end->bytes();
    ++end;
  }
  std::vector<P> taken;
  if (end == queue.end()) {
    taken.swap(queue);
  } else {
    taken.assign(std::make_move_iterator(queue.begin()), std::make_move_iterator(end));
    queue.erase(queue.begin(), end);
  }
  return taken;
}

std::string_view PayloadOf(const LogEntry& entry) {
  return entry.payload == nullptr ? std::string_view() : std::string_view(*entry.payload);
}

}  // namespace

size_t Store::PendingApply::bytes() const {
  size_t bytes = 64;
  for (const LogEntry& entry : entries) {
    bytes += entry.bytes() + 64;
  }
  return bytes;
}

void Store::Apply(GroupId group, Lsn first, std::vector<LogEntry> entries, runtime::Worker* worker,
                  ApplyDone done) {
  PendingApply pending{group, first, std::move(entries), 0, worker, std::move(done), {}, {}};
  {
    std::lock_guard lock(mutex_);
    auto found = groups_.find(group);
    if (found == groups_.end()) {
      pending.status =
          Status(Code::kNotFound, "no replica of group " + group.ToString() + " is here");
    } else if (stopping_ || found->second.mark || !found->second.damage.empty()) {
      pending.status = Status(Code::kUnavailable, "nothing is applied to this replica now");
    } else {
      pending.epoch = found->second.epoch;
      queued_bytes_ += pending.bytes();
      bool wake = to_apply_replicated_.empty();
      to_apply_replicated_.push_back(std::move(pending));
      if (wake) {
        apply_wake_.notify_one();
      }
      return;
    }
  }
  std::vector<PendingApply> list;
  list.push_back(std::move(pending));
  Complete(std::move(list));
}

bool Store::ApplyStep() {
  std::vector<Pending> commits;
  std::vector<PendingApply> requests;
  size_t bytes = 0;
  {
    std::lock_guard one(apply_mutex_);
    {
      std::lock_guard lock(mutex_);
      if (to_apply_.empty() && to_apply_replicated_.empty()) {
        return false;
      }
      requests = TakeSome(to_apply_replicated_, &bytes);
      commits = TakeSome(to_apply_, &bytes);
      for (PendingApply& request : requests) {
        auto found = groups_.find(request.group);
        if (found == groups_.end() || found->second.epoch != request.epoch) {
          request.status = Status(Code::kUnavailable, "the state of the replica was replaced");
        }
      }
    }
    ApplyBatch(commits, requests);
  }
  Complete(std::move(commits));
  Complete(std::move(requests));
  std::lock_guard lock(mutex_);
  queued_bytes_ -= bytes;
  return true;
}

// Leaves in each what became of it. REQUIRES: apply_mutex_.
void Store::ApplyBatch(std::vector<Pending>& commits, std::vector<PendingApply>& requests) {
  Batch batch;
  Records records;
  Status local;
  if (!commits.empty()) {
    local = failed_ ? Status(Code::kUnknownOutcome, "an earlier apply failed")
                    : ApplyCommits(commits, batch, records);
    if (!local.ok()) {
      batch.Clear();
      records.clear();
    }
  }
  for (PendingApply& request : requests) {
    if (request.status.ok()) {
      request.status = ApplyRequest(request, batch, records);
    }
  }
  for (const auto& [group, record] : records) {
    batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
  }
  Status written = state_->Write(batch, WriteMode::kNoLog);
  if (written.ok()) {
    std::lock_guard lock(records_mutex_);
    for (const auto& [group, record] : records) {
      records_[group] = record;
    }
  } else {
    apply_failed_ = true;
    for (PendingApply& request : requests) {
      if (request.status.ok()) {
        request.status = Status(Code::kUnavailable, "could not be applied: " + written.message());
      }
    }
  }
  if (local.ok() && written.ok()) {
    return;
  }
  // In the log but not in the state: only the replay of a restart brings the two together again.
  Fail("apply", local.ok() ? written : local);
  for (Pending& pending : commits) {
    if (pending.status.ok()) {
      pending.status =
          Status(Code::kUnknownOutcome, "the write is in the log but could not be applied");
    }
  }
}

// Adds what the entry changes to the batch and to the record.
Status Store::AddEntry(GroupId group, Lsn index, EntryKind kind, std::string_view payload,
                       Batch& batch, ReplicaRecord& record) {
  if (index.value() != record.applied.value() + 1) {
    return Status(Code::kCorruption, "the log of group " + group.ToString() + " has entry " +
                                         index.ToString() + " where " +
                                         std::to_string(record.applied.value() + 1) + " should be");
  }
  if (kind == EntryKind::kCommand) {
    auto view = WriteSetView::Parse(payload);
    if (!view) {
      return view.error();
    }
    ORRERY_RETURN_IF_ERROR(view->AddTo(batch, index));
    record.totals.bytes += view->change.bytes;
    record.totals.items += view->change.items;
    record.time = view->time;
    if (view->frozen) {
      record.frozen = *view->frozen;
    }
  }
  record.applied = index;
  return Status::Ok();
}

ReplicaRecord& Store::RecordIn(Records& records, GroupId group) const {
  auto [at, added] = records.try_emplace(group);
  if (added) {
    at->second = Record(group);
  }
  return at->second;
}

Status Store::ApplyCommits(const std::vector<Pending>& list, Batch& batch, Records& records) {
  for (const Pending& pending : list) {
    if (pending.status.ok()) {
      ORRERY_RETURN_IF_ERROR(AddEntry(pending.group, pending.index, pending.entry.kind,
                                      PayloadOf(pending.entry), batch,
                                      RecordIn(records, pending.group)));
    }
  }
  return Status::Ok();
}

// All of it, or nothing.
Status Store::ApplyRequest(PendingApply& request, Batch& batch, Records& records) {
  if (apply_failed_) {
    return Status(Code::kUnavailable, "an earlier apply failed");
  }
  ReplicaRecord& record = RecordIn(records, request.group);
  request.record = record;
  Batch::Place before = batch.place();
  uint64_t index = request.first.value();
  for (const LogEntry& entry : request.entries) {
    Lsn at(index++);
    if (at <= request.record.applied) {
      continue;
    }
    if (Status status =
            AddEntry(request.group, at, entry.kind, PayloadOf(entry), batch, request.record);
        !status.ok()) {
      batch.CutTo(before);
      request.record = record;
      return Status(Code::kCorruption, status.message());
    }
  }
  record = request.record;
  return Status::Ok();
}

}  // namespace orrery::storage
