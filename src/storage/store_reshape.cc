// The keys of groups go to others: a split divides them, a merge joins them. No key is moved.
#include <algorithm>

#include "base/kill_point.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::storage {

namespace {

// The parts of a span that none of the others have.
std::vector<Span> Without(const Span& span, const std::vector<Span>& others) {
  std::vector<Span> within;
  for (const Span& other : others) {
    if (other.Overlaps(span)) {
      within.push_back(other);
    }
  }
  std::ranges::sort(within, {}, &Span::begin);
  std::vector<Span> left;
  std::string reached = span.begin;
  for (const Span& other : within) {
    if (reached < other.begin) {
      left.push_back({span.space, reached, other.begin});
    }
    reached = std::max(reached, other.end);
  }
  if (reached < span.end) {
    left.push_back({span.space, reached, span.end});
  }
  return left;
}

}  // namespace

Status Store::FoundLocal(const std::vector<std::pair<GroupId, ReplicaRecord>>& groups) {
  std::lock_guard one(cut_mutex_);
  Batch batch;
  for (const auto& [group, record] : groups) {
    if (Log(group) || Record(group).applied > record.applied) {
      return Status(Code::kAlreadyExists, "group " + group.ToString() + " is there");
    }
    batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
  }
  ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
  // A write of theirs in the log without their record in the state would be a hole.
  ORRERY_RETURN_IF_ERROR(state_->Flush());
  std::lock_guard lock(records_mutex_);
  std::lock_guard queue_lock(mutex_);
  for (const auto& [group, record] : groups) {
    records_[group] = record;
    last_[group] = record.applied;
    cut_[group] = record.applied;
  }
  return Status::Ok();
}

Status Store::Reshape(const std::vector<GroupId>& parents, const std::vector<Heir>& heirs) {
  std::lock_guard one(cut_mutex_);
  std::vector<Span> inherited;
  for (const Heir& heir : heirs) {
    inherited.insert(inherited.end(), heir.identity.spans.begin(), heir.identity.spans.end());
  }
  std::map<GroupId, ReplicaId> ended;
  Batch state_batch;
  {
    std::lock_guard lock(mutex_);
    for (GroupId parent : parents) {
      auto found = groups_.find(parent);
      if (found == groups_.end()) {
        return Status(Code::kNotFound, "no replica of group " + parent.ToString() + " is here");
      }
      if (found->second.mark || !found->second.damage.empty()) {
        return Status(Code::kUnavailable,
                      "the replica of group " + parent.ToString() + " is not whole");
      }
      ended[parent] = found->second.identity.id;
      for (const Span& span : found->second.identity.spans) {
        for (const Span& nobodys : Without(span, inherited)) {
          state_batch.DeleteRange(Index(nobodys.space), nobodys.begin, nobodys.end);
        }
      }
    }
    for (const Heir& heir : heirs) {
      if (groups_.contains(heir.group)) {
        return Status(Code::kAlreadyExists, "group " + heir.group.ToString() + " is there");
      }
    }
  }
  // First the state, all of it durable: the parents are whole until the log says otherwise, and
  // records without a log are nobody's.
  for (const Heir& heir : heirs) {
    state_batch.Put(Index(Space::kReplica), ReplicaKey(heir.group), EncodeRecord(heir.record));
  }
  ORRERY_RETURN_IF_ERROR(state_->Write(state_batch, WriteMode::kNoLog));
  ORRERY_RETURN_IF_ERROR(state_->Flush());
  KillPoint("heirs.in_state");

  std::lock_guard log_lock(log_mutex_);
  Batch batch;
  for (GroupId parent : parents) {
    batch.DeleteRange(kLogSpace, EntryKey(parent, Lsn(0)), GroupEnd(parent));
    batch.Put(kLogSpace, AboutKey(parent, About::kEnded), EncodeEnded(ended[parent]));
  }
  for (const Heir& heir : heirs) {
    batch.Put(kLogSpace, AboutKey(heir.group, About::kIdentity), EncodeIdentity(heir.identity));
    batch.Put(kLogSpace, AboutKey(heir.group, About::kHardState), EncodeHardState(heir.hard));
    batch.Put(kLogSpace, AboutKey(heir.group, About::kBase), EncodeBase({heir.base}));
    if (!heir.outcomes.empty()) {
      batch.Put(kLogSpace, AboutKey(heir.group, About::kOutcomes), heir.outcomes);
    }
  }
  for (GroupId parent : parents) {
    VoidWaiting(parent, {.kind = GroupMark::Kind::kDiscarding});
  }
  ORRERY_RETURN_IF_ERROR(WriteSynced(batch));
  KillPoint("heirs.in_log");
  Batch gone;
  {
    std::lock_guard lock(records_mutex_);
    std::lock_guard groups_lock(mutex_);
    for (GroupId parent : parents) {
      groups_.erase(parent);
      records_.erase(parent);
      ended_[parent] = ended[parent];
      gone.Delete(Index(Space::kReplica), ReplicaKey(parent));
      gone.Delete(Index(Space::kReplica), ReplicaExtraKey(parent));
    }
    for (const Heir& heir : heirs) {
      Group& group = groups_[heir.group];
      group = {.identity = heir.identity, .hard = heir.hard, .base = heir.base};
      group.last = group.queued_last = group.queued_base = group.flushed = heir.base.index;
      group.epoch = next_epoch_++;
      records_[heir.group] = heir.record;
    }
  }
  return state_->Write(gone, WriteMode::kNoLog);
}

}  // namespace orrery::storage
