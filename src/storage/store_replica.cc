// Replicas begin, are replaced by a snapshot, and end. Each step is durable before the next, and
// what a crash leaves between two is never taken for a whole replica.
#include <algorithm>

#include "base/bytes.h"
#include "base/mutants.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::storage {

namespace {

Status NoReplica(GroupId group) {
  return Status(Code::kNotFound, "no replica of group " + group.ToString() + " is here");
}

// The keys that a group has, in any condition.
std::vector<Span> Owned(const ReplicaIdentity& identity, const std::optional<GroupMark>& mark) {
  std::vector<Span> spans = identity.spans;
  if (mark) {
    for (const Span& span : mark->spans) {
      if (std::find(spans.begin(), spans.end(), span) == spans.end()) {
        spans.push_back(span);
      }
    }
  }
  return spans;
}

bool Newer(const HardState& hard, const std::optional<HardState>& than) {
  return !than || hard.term > than->term || (hard.term == than->term && than->vote == 0);
}

}  // namespace

std::vector<Span> PartitionSpans(ContainerId container, const types::EpkRange& range) {
  KeySpan items = ItemSpan(container, range);
  KeySpan unique = UniqueSpan(container, range);
  return {{Space::kItems, items.begin, items.end}, {Space::kIndex, unique.begin, unique.end}};
}

std::vector<Span> CatalogSpans() { return {{Space::kCatalog, "", "\xff"}}; }

// Whether the group may have these keys.
Status Store::CheckIdentity(GroupId group, const ReplicaIdentity& identity) const {
  std::lock_guard lock(mutex_);
  if (auto ended = ended_.find(group);
      ended != ended_.end() && identity.id <= ended->second && !Active(Mutant::kReturnUnderId)) {
    return Status(Code::kForbidden, "replica " + identity.id.ToString() + " of group " +
                                        group.ToString() +
                                        " was here and is gone: it never returns under its id");
  }
  for (const Span& span : identity.spans) {
    if (span.begin >= span.end || span.space == Space::kReplica) {
      return Status(Code::kInvalidArgument, "a span of group " + group.ToString() + " is empty");
    }
    for (const auto& [other, known] : groups_) {
      for (const Span& owned : Owned(known.identity, known.mark)) {
        if (other != group && owned.Overlaps(span)) {
          return Status(Code::kAlreadyExists,
                        "group " + other.ToString() + " has keys of group " + group.ToString());
        }
      }
    }
  }
  return Status::Ok();
}

Status Store::DeleteState(GroupId group, const std::vector<Span>& spans) {
  Batch batch;
  for (const Span& span : spans) {
    batch.DeleteRange(Index(span.space), span.begin, span.end);
  }
  batch.Delete(Index(Space::kReplica), ReplicaKey(group));
  batch.Delete(Index(Space::kReplica), ReplicaExtraKey(group));
  ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
  {
    std::lock_guard lock(records_mutex_);
    records_.erase(group);
    cut_.erase(group);
  }
  return state_->Flush();
}

// Brings the state of a founding replica to what its base says; `born`: it is empty.
Status Store::PrepareFound(GroupId group, const ReplicaIdentity& identity, const LogBase& base,
                           bool* born) {
  Lsn applied = Record(group).applied;
  *born = applied == Lsn(0);
  {
    std::lock_guard lock(mutex_);
    auto last = last_.find(group);
    if (last != last_.end() && last->second != applied) {
      return Status(Code::kUnavailable, "writes of the group are under way");
    }
  }
  if (!*born) {
    return applied == base.index
               ? state_->Flush()
               : Status(Code::kInvalidArgument, "the group has applied " + applied.ToString() +
                                                    ", not " + base.index.ToString());
  }
  for (const Span& span : identity.spans) {
    auto at = state_->NewIterator(Index(span.space), span.begin, span.end);
    at->SeekToFirst();
    ORRERY_RETURN_IF_ERROR(at->status());
    if (at->Valid()) {  // of a replica that is gone
      return DeleteState(group, identity.spans);
    }
  }
  return Status::Ok();
}

Status Store::Found(GroupId group, const ReplicaIdentity& identity,
                    const std::optional<LogBase>& base, const HardState& hard) {
  std::lock_guard one(cut_mutex_);
  if (Log(group)) {
    return Status(Code::kAlreadyExists, "there is a replica of group " + group.ToString());
  }
  ORRERY_RETURN_IF_ERROR(CheckIdentity(group, identity));
  Group made{.identity = identity, .hard = hard, .base = base};
  if (base) {
    ORRERY_RETURN_IF_ERROR(PrepareFound(group, identity, *base, &made.born));
    made.last = made.queued_last = made.queued_base = made.flushed = base->index;
  } else if (Record(group) != ReplicaRecord()) {
    return Status(Code::kAlreadyExists, "group " + group.ToString() + " is local");
  }
  std::lock_guard log_lock(log_mutex_);
  Batch batch;
  auto old = log_->NewIterator(kLogSpace, EntryKey(group, Lsn(0)), GroupEnd(group));
  if (old->SeekToFirst(); old->Valid()) {
    batch.DeleteRange(kLogSpace, EntryKey(group, Lsn(0)), GroupEnd(group));
  }
  ORRERY_RETURN_IF_ERROR(old->status());
  if (auto ended = ended_.find(group); ended != ended_.end()) {
    batch.Put(kLogSpace, AboutKey(group, About::kEnded), EncodeEnded(ended->second));
  }
  batch.Put(kLogSpace, AboutKey(group, About::kIdentity), EncodeIdentity(identity));
  batch.Put(kLogSpace, AboutKey(group, About::kHardState), EncodeHardState(hard));
  if (base) {
    batch.Put(kLogSpace, AboutKey(group, About::kBase), EncodeBase({*base, made.born}));
  }
  ORRERY_RETURN_IF_ERROR(WriteSynced(batch));
  if (made.born) {
    // Not flushed: a state without the record is one at the base too.
    ReplicaRecord record{.applied = base->index};
    Batch state_batch;
    state_batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
    ORRERY_RETURN_IF_ERROR(state_->Write(state_batch, WriteMode::kNoLog));
    std::lock_guard lock(records_mutex_);
    records_[group] = record;
  }
  std::lock_guard lock(records_mutex_);
  std::lock_guard groups_lock(mutex_);
  cut_.erase(group);
  last_.erase(group);
  made.epoch = next_epoch_++;
  groups_[group] = std::move(made);
  return Status::Ok();
}

Status Store::BeginInstall(GroupId group, const ReplicaIdentity& identity, uint64_t snapshot_id,
                           std::optional<InstallPlan> plan) {
  std::lock_guard one(cut_mutex_);
  ORRERY_RETURN_IF_ERROR(CheckIdentity(group, identity));
  std::lock_guard log_lock(log_mutex_);
  GroupMark mark{
      .kind = GroupMark::Kind::kInstalling, .snapshot_id = snapshot_id, .plan = std::move(plan)};
  {
    std::lock_guard lock(mutex_);
    if (auto found = groups_.find(group); found != groups_.end()) {
      const Group& known = found->second;
      if (known.identity.id != identity.id) {
        return Status(Code::kAlreadyExists, "replica " + known.identity.id.ToString() +
                                                " of group " + group.ToString() + " is here");
      }
      if (known.mark && known.mark->kind == GroupMark::Kind::kDiscarding) {
        return Status(Code::kUnavailable, "the replica is being discarded");
      }
      mark.spans = Owned(known.identity, known.mark);
    } else if (last_.contains(group)) {
      return Status(Code::kAlreadyExists, "group " + group.ToString() + " is local");
    }
    groups_[group].identity = identity;
  }
  Batch batch;
  batch.Put(kLogSpace, AboutKey(group, About::kIdentity), EncodeIdentity(identity));
  batch.Put(kLogSpace, AboutKey(group, About::kMark), EncodeMark(mark));
  VoidWaiting(group, std::move(mark));
  return WriteSynced(batch);
}

// The group, if it is between BeginInstall and FinishInstall.
Result<Store::Group> Store::Installing(GroupId group, ReplicaId replica) const {
  std::lock_guard lock(mutex_);
  auto found = groups_.find(group);
  if (found == groups_.end() || found->second.identity.id != replica) {
    return Error(NoReplica(group));
  }
  if (!found->second.mark || found->second.mark->kind != GroupMark::Kind::kInstalling) {
    return Error(Code::kInvalidArgument, "no install of group " + group.ToString() + " is begun");
  }
  return found->second;
}

Status Store::ClearSpans(GroupId group, ReplicaId replica) {
  std::lock_guard one(cut_mutex_);
  auto known = Installing(group, replica);
  if (!known) {
    return known.error();
  }
  return DeleteState(group, Owned(known->identity, known->mark));
}

// Files come over the network: one of another group must not get in.
Status Store::CheckFiles(GroupId group, const std::vector<Span>& spans,
                         const std::vector<Engine::IngestFile>& files) {
  bool record = false;
  for (const Engine::IngestFile& file : files) {
    std::string first;
    std::string last;
    ORRERY_RETURN_IF_ERROR(state_->ReadIngestBounds(file.path, &first, &last));
    bool inside = false;
    if (file.space == Index(Space::kReplica)) {
      record = inside = first == ReplicaKey(group) && last <= ReplicaExtraKey(group);
    }
    for (const Span& span : spans) {
      inside |= Index(span.space) == file.space && span.Contains(first) && span.Contains(last);
    }
    if (!inside) {
      return Status(Code::kCorruption,
                    file.path + " has keys that group " + group.ToString() + " has not");
    }
  }
  return record ? Status::Ok()
                : Status(Code::kCorruption,
                         "the snapshot of group " + group.ToString() + " has no record of it");
}

Status Store::IngestSnapshot(GroupId group, ReplicaId replica,
                             const std::vector<Engine::IngestFile>& files) {
  std::lock_guard one(cut_mutex_);
  auto known = Installing(group, replica);
  if (!known) {
    return known.error();
  }
  ORRERY_RETURN_IF_ERROR(CheckFiles(group, known->identity.spans, files));
  ORRERY_RETURN_IF_ERROR(state_->Ingest(files));
  auto record = RecordAt(group, nullptr);
  if (!record) {
    return record.error();
  }
  std::lock_guard lock(records_mutex_);
  records_[group] = *record;
  return Status::Ok();
}

Status Store::FinishInstall(GroupId group, ReplicaId replica, const LogBase& base,
                            const HardState& hard) {
  std::lock_guard one(cut_mutex_);
  auto installing = Installing(group, replica);
  if (!installing) {
    return installing.error();
  }
  Lsn applied = Record(group).applied;
  if (applied < base.index) {
    return Status(Code::kCorruption, "the state is at " + applied.ToString() +
                                         ", the snapshot should be at " + base.index.ToString());
  }
  std::lock_guard log_lock(log_mutex_);
  std::optional<HardState> kept;
  {
    std::lock_guard lock(mutex_);
    kept = groups_[group].hard;
  }
  if (Newer(hard, kept)) {
    kept = hard;
  }
  Batch batch;
  batch.DeleteRange(kLogSpace, FirstEntryKey(group), GroupEnd(group));
  batch.Put(kLogSpace, AboutKey(group, About::kHardState), EncodeHardState(*kept));
  batch.Put(kLogSpace, AboutKey(group, About::kBase), EncodeBase({base}));
  batch.Delete(kLogSpace, AboutKey(group, About::kMark));
  ORRERY_RETURN_IF_ERROR(WriteSynced(batch));
  std::lock_guard lock(mutex_);
  Group& known = groups_[group];
  known.hard = kept;
  known.base = base;
  known.born = false;
  known.last = known.queued_last = known.queued_base = base.index;
  known.flushed = applied;
  known.mark.reset();
  known.damage.clear();
  return Status::Ok();
}

Status Store::Discard(GroupId group, bool for_good) {
  std::lock_guard one(cut_mutex_);
  GroupMark mark{.kind = GroupMark::Kind::kDiscarding};
  ReplicaId ended;
  {
    std::lock_guard log_lock(log_mutex_);
    {
      std::lock_guard lock(mutex_);
      auto found = groups_.find(group);
      if (found == groups_.end()) {
        return Status::Ok();
      }
      mark.spans = Owned(found->second.identity, found->second.mark);
      if (auto before = ended_.find(group); before != ended_.end()) {
        ended = before->second;
      }
      if (found->second.base || for_good) {  // else it has promised nothing to anybody
        ended = std::max(ended, found->second.identity.id);
      }
    }
    VoidWaiting(group, mark);
    Batch batch;
    batch.Put(kLogSpace, AboutKey(group, About::kMark), EncodeMark(mark));
    ORRERY_RETURN_IF_ERROR(WriteSynced(batch));
  }
  ORRERY_RETURN_IF_ERROR(DeleteState(group, mark.spans));
  std::lock_guard log_lock(log_mutex_);
  Batch batch;
  batch.DeleteRange(kLogSpace, EntryKey(group, Lsn(0)), GroupEnd(group));
  if (ended != ReplicaId()) {
    batch.Put(kLogSpace, AboutKey(group, About::kEnded), EncodeEnded(ended));
  }
  ORRERY_RETURN_IF_ERROR(WriteSynced(batch));
  std::lock_guard lock(mutex_);
  groups_.erase(group);
  if (ended != ReplicaId()) {
    ended_[group] = ended;
  }
  return Status::Ok();
}

}  // namespace orrery::storage
