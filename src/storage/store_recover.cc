// What a start finds: the logs of local groups are replayed, those of replicated ones are looked
// at.
#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/log.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::storage {

namespace {

constexpr size_t kReplayBatchBytes = 4 << 20;

}  // namespace

Status Store::Recover(const Seen& seen) {
  auto records = state_->NewIterator(Index(Space::kReplica), "", "");
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    if (records->key().size() != ReplicaKey(GroupId()).size()) {
      continue;  // ReplicaExtraKey
    }
    auto record = DecodeRecord(records->value());
    if (!record) {
      return record.error();
    }
    records_[GroupId(GetU64(records->key().data()))] = *record;
  }
  ORRERY_RETURN_IF_ERROR(records->status());

  auto log = log_->NewIterator(kLogSpace, "", "");
  log->SeekToFirst();
  while (log->Valid()) {
    auto key = ParseLogKey(log->key());
    if (!key) {
      return key.error();
    }
    // What is kept about a replicated group stands before its entries.
    ORRERY_RETURN_IF_ERROR(key->about ? LoadReplicated(key->group, *log, seen)
                                      : ReplayLocal(key->group, *log, seen));
  }
  ORRERY_RETURN_IF_ERROR(log->status());
  for (const auto& [group, record] : records_) {
    if (!groups_.contains(group) && !ended_.contains(group)) {
      last_[group] = record.applied;
    }
  }
  if (groups_.empty()) {
    return Status::Ok();
  }
  ORRERY_RETURN_IF_ERROR(SettleReplicated());
  ResumeInstalls();
  return Status::Ok();
}

// Leaves the iterator at the first entry of the next group.
Status Store::ReplayLocal(GroupId group, Iterator& log, const Seen& seen) {
  Batch batch;
  ReplicaRecord record = records_[group];
  auto write = [&]() -> Status {
    batch.Put(Index(Space::kReplica), ReplicaKey(group), EncodeRecord(record));
    ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
    batch.Clear();
    records_[group] = record;
    return Status::Ok();
  };
  bool first = true;
  for (; log.Valid(); log.Next()) {
    auto key = ParseLogKey(log.key());
    if (!key) {
      return key.error();
    }
    if (key->group != group) {
      break;
    }
    if (first) {
      cut_[group] = Lsn(key->index.value() - 1);
      first = false;
    }
    auto entry = DecodeEntry(*key, log.value());
    if (!entry) {
      return entry.error();
    }
    if (entry->kind == EntryKind::kCommand) {
      auto view = WriteSetView::Parse(entry->payload);
      if (!view) {
        return view.error();
      }
      seen(group, key->index, *view);
    }
    if (key->index <= record.applied) {
      continue;
    }
    ORRERY_RETURN_IF_ERROR(AddEntry(group, key->index, entry->kind, entry->payload, batch, record));
    if (batch.bytes() >= kReplayBatchBytes) {
      ORRERY_RETURN_IF_ERROR(write());
    }
  }
  return record.applied == records_[group].applied ? Status::Ok() : write();
}

// Reads one of the things kept about a group.
Status Store::LoadAbout(Iterator& log, Group& group) {
  auto key = ParseLogKey(log.key());
  switch (*key->about) {
    case About::kIdentity: {
      auto identity = DecodeIdentity(log.value());
      if (identity) {
        group.identity = std::move(*identity);
      }
      return identity ? Status::Ok() : identity.error();
    }
    case About::kHardState: {
      auto hard = DecodeHardState(log.value());
      if (hard) {
        group.hard = *hard;
      }
      return hard ? Status::Ok() : hard.error();
    }
    case About::kBase: {
      auto base = DecodeBase(log.value());
      if (base) {
        group.base = std::move(base->base);
        group.born = base->born;
      }
      return base ? Status::Ok() : base.error();
    }
    case About::kEnded: {
      auto ended = DecodeEnded(log.value());
      if (ended) {
        ended_[key->group] = *ended;
      }
      return ended ? Status::Ok() : ended.error();
    }
    case About::kOutcomes: return Status::Ok();  // read when it is asked for
    case About::kMark: {
      auto mark = DecodeMark(log.value());
      if (mark) {
        group.mark = std::move(*mark);
      }
      return mark ? Status::Ok() : mark.error();
    }
  }
  return Status(Code::kInternal, "a key of the log of an unknown kind");
}

// Leaves the iterator at the first entry of the next group. A log that cannot be used is no reason
// not to start: its owner discards the replica.
Status Store::LoadReplicated(GroupId id, Iterator& log, const Seen& seen) {
  Group group;
  group.epoch = next_epoch_++;
  auto applied = [&] {
    auto found = records_.find(id);
    return found == records_.end() ? Lsn() : found->second.applied;
  };
  bool entries = false;
  for (; log.Valid(); log.Next()) {
    auto key = ParseLogKey(log.key());
    if (!key) {
      return key.error();
    }
    if (key->group != id) {
      break;
    }
    if (key->about) {
      ORRERY_RETURN_IF_ERROR(LoadAbout(log, group));
      continue;
    }
    if (!entries) {
      group.last = group.base ? group.base->index : Lsn();
      entries = true;
    }
    auto entry = DecodeEntry(*key, log.value());
    if (!entry) {
      return entry.error();
    }
    if (!group.base || key->index.value() != group.last.value() + 1) {
      group.damage = "entry " + key->index.ToString() + " cannot follow " + group.last.ToString();
    }
    group.last = key->index;
    if (entry->kind == EntryKind::kCommand && key->index <= applied() && !group.mark) {
      auto view = WriteSetView::Parse(entry->payload);
      if (!view) {
        return view.error();
      }
      seen(id, key->index, *view);
    }
  }
  if (!entries && group.base) {
    group.last = group.base->index;
  }
  if (group.identity.id != ReplicaId() || group.mark) {
    groups_[id] = std::move(group);
  }
  return Status::Ok();
}

// Compares the logs with the state.
Status Store::SettleReplicated() {
  Batch batch;
  for (auto& [id, group] : groups_) {
    if (group.base && group.born && !records_.contains(id) && !group.mark) {
      records_[id].applied = group.base->index;
      batch.Put(Index(Space::kReplica), ReplicaKey(id), EncodeRecord(records_[id]));
    }
    auto record = records_.find(id);
    Lsn applied = record == records_.end() ? Lsn() : record->second.applied;
    if (group.base && applied < group.base->index && !group.mark) {
      group.damage = "the state is at " + applied.ToString() + ", its log begins behind " +
                     group.base->index.ToString();
    }
    if (!group.damage.empty()) {
      log::Warning("a replica cannot be used as it is", {{"group", id.ToString()},
                                                         {"replica", group.identity.id.ToString()},
                                                         {"why", group.damage}});
    }
    group.flushed = applied;
    group.queued_last = group.last;
    group.queued_base = group.base ? group.base->index : Lsn();
  }
  ORRERY_RETURN_IF_ERROR(state_->Write(batch, WriteMode::kNoLog));
  return state_->Flush();  // what was read may not be on disk yet
}

// Finishes the installs of snapshots that a crash cut short: the vote and the log are still here,
// only the state is not. Where that cannot be done the replica stays as it is, broken.
void Store::ResumeInstalls() {
  struct Unfinished {
    GroupId group;
    ReplicaId replica;
    InstallPlan plan;
  };
  std::vector<Unfinished> plans;
  for (const auto& [id, group] : groups_) {
    if (group.mark && group.mark->plan && group.mark->kind == GroupMark::Kind::kInstalling) {
      plans.push_back({id, group.identity.id, *group.mark->plan});
    }
  }
  for (const Unfinished& one : plans) {
    const InstallPlan& plan = one.plan;
    auto resume = [&]() -> Status {
      if (Record(one.group).applied < plan.base.index) {
        for (const Engine::IngestFile& file : plan.files) {
          if (!std::filesystem::exists(file.path)) {
            return Status(Code::kNotFound, file.path + " is gone");
          }
        }
        ORRERY_RETURN_IF_ERROR(ClearSpans(one.group, one.replica));
        ORRERY_RETURN_IF_ERROR(IngestSnapshot(one.group, one.replica, plan.files));
      }
      return FinishInstall(one.group, one.replica, plan.base, {});
    };
    Status status = resume();
    log::Warning("the installation of a snapshot was cut short",
                 {{"group", one.group.ToString()},
                  {"and", status.ok() ? "is finished now" : "the replica is broken"},
                  {"why", status.message()}});
  }
}

}  // namespace orrery::storage
