#include "rows/purge_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "cql/row.h"
#include "rows/evaluation.h"
#include "rows/rows.h"
#include "storage/log_format.h"

namespace orrery::rows {

using partition::Replica;
using partition::Reply;
using runtime::Task;
using storage::Space;

namespace {

constexpr size_t kSurveyKeys = 10'000;
constexpr size_t kSurveyBytes = 16 << 20;
constexpr size_t kWantedMax = 200;  // logical partitions that are latched at once

// Looks at the keys of a table in their order, and says what is left of each.
class Judge {
 public:
  explicit Judge(int64_t limit) : limit_(limit) {}

  // Begins with the logical partition of a key.
  Status Enter(std::string_view key) {
    types::PartitionKey unused;
    prefix_ = storage::ReadLogicalPartition(key, &unused);
    deletions_.reset();
    of_deletions_.reset();
    return prefix_.empty() || key.size() == prefix_.size()
               ? Status(Code::kCorruption, "the key of a row is malformed")
               : Status::Ok();
  }
  bool IsIn(std::string_view key) const { return !prefix_.empty() && key.starts_with(prefix_); }
  const std::string& prefix() const { return prefix_; }
  bool IsDeletions(std::string_view key) const { return key[prefix_.size()] == kDeletionsKey; }

  Status TakeDeletions(std::string_view value) {
    auto parsed = cql::Deletions::Parse(value);
    auto remains = cql::PurgeDeletions(value, limit_);
    if (!parsed || !remains) {
      return parsed ? remains.error() : parsed.error();
    }
    deletions_ = std::move(*parsed);
    of_deletions_ = std::move(*remains);
    return Status::Ok();
  }
  // What becomes of them when all rows are done; nothing: there are none.
  const std::optional<cql::Remains>& of_deletions() const { return of_deletions_; }
  bool DropsDeletions() const { return of_deletions_ && of_deletions_->changed; }

  Result<cql::Remains> OfRow(std::string_view key, std::string_view value) const {
    const bool is_static = key[prefix_.size()] == kStaticKey;
    const int64_t deleted = !deletions_ ? cql::kNeverWritten
                            : is_static ? deletions_->partition()
                                        : deletions_->At(key.substr(prefix_.size() + 1));
    return cql::PurgeRow(value, deleted, limit_);
  }

 private:
  const int64_t limit_;
  std::string prefix_;
  std::optional<cql::Deletions> deletions_;
  std::optional<cql::Remains> of_deletions_;
};

}  // namespace

// A walk over all of the partition, as it was at one moment.
struct PurgeRows::Survey {
  const int64_t limit;
  uint64_t term = 0;
  uint64_t era = 0;  // of the sizes

  std::unique_ptr<storage::Snapshot> moment = nullptr;
  storage::Totals told = {};   // by the partition's record
  storage::Totals found = {};  // by the walk
  std::string first = "";  // of the logical partitions with something dead; empty: there is none
  std::string last = "";   // "
  int64_t next = INT64_MAX;
  Judge judge = Judge(limit);

  Status Begin(storage::Engine& state, GroupId group) {
    moment = state.NewSnapshot();
    std::string bytes;
    Status status = state.Get(storage::Index(Space::kReplica), storage::ReplicaKey(group), &bytes,
                              storage::ReadMode::kMayWait, moment.get());
    if (status.code() == Code::kNotFound) {
      return Status::Ok();  // nothing is applied yet
    }
    ORRERY_RETURN_IF_ERROR(status);
    auto record = storage::DecodeRecord(bytes);
    told = record ? record->totals : storage::Totals();
    return record ? Status::Ok() : record.error();
  }

  // The next slice of the span, which then begins behind it, and is empty at the end.
  Status Go(storage::Engine& state, storage::KeySpan& span) {
    auto at = state.NewIterator(storage::Index(Space::kItems), span.begin, span.end, moment.get());
    size_t keys = 0;
    size_t bytes = 0;
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      if (keys >= kSurveyKeys || bytes >= kSurveyBytes) {
        span.begin = at->key();
        return Status::Ok();
      }
      ++keys;
      const size_t size = at->key().size() + at->value().size();
      bytes += size;
      found.bytes += static_cast<int64_t>(size);
      found.items += 1;
      ORRERY_RETURN_IF_ERROR(Take(at->key(), at->value()));
    }
    span.begin = span.end;
    return at->status();
  }

 private:
  Status Take(std::string_view key, std::string_view value) {
    if (!judge.IsIn(key)) {
      ORRERY_RETURN_IF_ERROR(judge.Enter(key));
    }
    if (judge.IsDeletions(key)) {
      ORRERY_RETURN_IF_ERROR(judge.TakeDeletions(value));
      Note(*judge.of_deletions());
      return Status::Ok();
    }
    auto remains = judge.OfRow(key, value);
    if (!remains) {
      return remains.error();
    }
    Note(*remains);
    return Status::Ok();
  }
  void Note(const cql::Remains& remains) {
    next = std::min(next, remains.next);
    if (remains.changed) {
      first = first.empty() ? judge.prefix() : first;
      last = judge.prefix();
    }
  }
};

// Keys that stand one after the other, of one logical partition or several.
struct PurgeRows::Slice {
  struct Change {
    std::string prefix;
    std::string key;
    int64_t bytes = 0;                 // that it had
    std::optional<std::string> value;  // nothing: it is gone
  };

  const int64_t limit;
  storage::KeySpan span;              // of the sweep; what Find() leaves of it is the slice
  std::set<std::string> wanted = {};  // logical partitions with something to drop
  std::vector<Change> changes = {};
  // The logical partition in which the last slice ended: whether all of its rows so far were looked
  // at under latches, and whether its deletions hide a counter.
  std::string open = "";
  bool whole = false;
  bool hides_counter = false;

  // How far the slice goes, and which logical partitions are to be latched.
  Status Find(storage::Engine& state, size_t keys_max, size_t bytes_max) {
    wanted.clear();
    Judge judge(limit);
    size_t keys = 0;
    size_t bytes = 0;
    auto at = state.NewIterator(storage::Index(Space::kItems), span.begin, span.end, nullptr,
                                storage::ReadMode::kPassing);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      if (keys >= keys_max || bytes >= bytes_max || wanted.size() >= kWantedMax) {
        // The next one begins with all of a logical partition, or goes on with this one.
        span.end = at->key();
        if (!judge.IsIn(span.end)) {
          ORRERY_RETURN_IF_ERROR(judge.Enter(span.end));
          span.end = judge.prefix();
        }
        return Status::Ok();
      }
      ++keys;
      bytes += at->value().size();
      if (!judge.IsIn(at->key())) {
        ORRERY_RETURN_IF_ERROR(Enter(state, judge, at->key()));
      }
      bool drops = judge.DropsDeletions();
      if (judge.IsDeletions(at->key())) {
        ORRERY_RETURN_IF_ERROR(judge.TakeDeletions(at->value()));
        drops = judge.DropsDeletions();
      } else if (!drops) {
        auto remains = judge.OfRow(at->key(), at->value());
        if (!remains) {
          return remains.error();
        }
        drops = remains->changed;
      }
      if (drops) {
        wanted.insert(judge.prefix());
      }
    }
    return at->status();
  }

  // What is to be changed. REQUIRES: the wanted logical partitions are latched.
  Status Collect(storage::Engine& state) {
    changes.clear();
    Judge judge(limit);
    auto at = state.NewIterator(storage::Index(Space::kItems), span.begin, span.end);
    for (at->SeekToFirst(); at->Valid();) {
      const std::string_view key = at->key();
      if (!judge.IsIn(key)) {
        ORRERY_RETURN_IF_ERROR(Leave(state, judge));
        ORRERY_RETURN_IF_ERROR(Enter(state, judge, key));
        const bool goes_on = span.begin.size() > judge.prefix().size() && judge.IsIn(span.begin);
        whole = !goes_on || (whole && open == judge.prefix());
        hides_counter = goes_on && hides_counter;
        open = judge.prefix();
        if (!wanted.contains(open)) {
          whole = false;
          at->Seek(storage::PrefixEnd(open));
          continue;
        }
      }
      if (judge.IsDeletions(key)) {
        ORRERY_RETURN_IF_ERROR(judge.TakeDeletions(at->value()));
      } else {
        auto remains = judge.OfRow(key, at->value());
        if (!remains) {
          return remains.error();
        }
        hides_counter |= remains->hides_counter;
        if (remains->changed) {
          changes.push_back({open, std::string(key), SizeOf(key, at->value()), remains->value});
        }
      }
      at->Next();
    }
    ORRERY_RETURN_IF_ERROR(at->status());
    return open.empty() || span.end.starts_with(open) ? Status::Ok() : Leave(state, judge);
  }

 private:
  static int64_t SizeOf(std::string_view key, std::string_view value) {
    return static_cast<int64_t>(key.size() + value.size());
  }
  // If the walk does not pass its deletions, they are read.
  static Status Enter(storage::Engine& state, Judge& judge, std::string_view key) {
    ORRERY_RETURN_IF_ERROR(judge.Enter(key));
    if (judge.IsDeletions(key)) {
      return Status::Ok();
    }
    std::string value;
    Status found = ReadDeletions(state, judge, value);
    return found.ok()                        ? judge.TakeDeletions(value)
           : found.code() == Code::kNotFound ? Status::Ok()
                                             : found;
  }
  static Status ReadDeletions(storage::Engine& state, const Judge& judge, std::string& value) {
    return state.Get(storage::Index(Space::kItems), judge.prefix() + kDeletionsKey, &value,
                     storage::ReadMode::kMayWait);
  }
  // The logical partition ends here. What its deletions hide is gone if all of it was looked at
  // while nobody could write: who did not know of the horizon yet had come before, and the others
  // look.
  Status Leave(storage::Engine& state, const Judge& judge) {
    if (!whole || hides_counter || !judge.DropsDeletions()) {
      return Status::Ok();
    }
    std::string before;
    ORRERY_RETURN_IF_ERROR(ReadDeletions(state, judge, before));
    std::string key = judge.prefix() + kDeletionsKey;
    const int64_t size = SizeOf(key, before);
    changes.push_back({judge.prefix(), std::move(key), size, judge.of_deletions()->value});
    return Status::Ok();
  }
};

namespace {

// Clients have half of the time for themselves.
Task<> Rest(Replica& replica, Instant began) {
  co_await runtime::Sleep(replica.services().clock.Now() - began);
}

}  // namespace

Task<Status> PurgeRows::Look(Replica& replica, Survey& survey) {
  auto begin = [&] { return survey.Begin(replica.state(), GroupId(replica.id().value())); };
  ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(replica.workers(), begin));
  storage::KeySpan span = storage::ItemSpan(replica.container(), replica.range().range);
  while (span.begin != span.end) {
    if (stop()) {
      co_return Status(Code::kUnavailable, "the sweep is stopped");
    }
    const Instant began = replica.services().clock.Now();
    auto go = [&] { return survey.Go(replica.state(), span); };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(replica.workers(), go));
    co_await Rest(replica, began);
  }
  survey.moment.reset();
  co_return Status::Ok();
}

Task<Status> PurgeRows::Mark(Replica& replica, const Survey& survey) {
  if (Result<int64_t> read = co_await replica.horizon().Read(); !read) {
    co_return read.error();
  }
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, {kWholeRows});
  if (!turn) {
    co_return turn.error();
  }
  if (turn->term != survey.term || !replica.horizon().known() || replica.watched()) {
    co_return Status(Code::kUnavailable, "the partition has changed, or is being split");
  }
  storage::WriteSet set;
  set.time = replica.NextTime();
  set.frees_space = true;
  if (!survey.first.empty()) {
    if (set.time.micros - grace_ < survey.limit) {
      co_return Status(Code::kUnavailable, "the clock was set back");
    }
    replica.horizon().AddTo(set, survey.limit);
  }
  set.change = {survey.found.bytes - survey.told.bytes, survey.found.items - survey.told.items};
  if (set.change != storage::Totals() && replica.sizes().era() != survey.era) {
    // A TRUNCATE may have set them since. Who gave up here comes again; a walk that ended without
    // it would leave them wrong for as long as nobody writes.
    co_return Status(Code::kUnavailable, "the sizes of logical partitions are counted anew");
  }
  if (set.empty() && set.change == storage::Totals()) {
    co_return Status::Ok();
  }
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  ++entries;
  if (!survey.first.empty()) {
    replica.horizon().Risen(survey.limit, lsn);
  }
  co_return lsn ? Status::Ok() : lsn.error();
}

Task<Status> PurgeRows::Drop(Replica& replica, Slice& slice, uint64_t term) {
  std::vector<partition::Latch> latches{kWholeRows};
  for (const std::string& prefix : slice.wanted) {
    latches.push_back({.name = std::hash<std::string_view>()(prefix)});
  }
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, std::move(latches));
  if (!turn) {
    co_return turn.error();
  }
  if (turn->term != term || replica.watched()) {
    co_return Status(Code::kUnavailable, "the partition has changed, or is being split");
  }
  auto collect = [&] { return slice.Collect(replica.state()); };
  ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(replica.workers(), collect));
  storage::WriteSet set;
  std::map<std::string, int64_t> changed;  // bytes, by logical partition
  for (const Slice::Change& change : slice.changes) {
    int64_t growth = -change.bytes;
    if (change.value) {
      growth += static_cast<int64_t>(change.key.size() + change.value->size());
      set.Put(Space::kItems, change.key, *change.value);
    } else {
      set.Delete(Space::kItems, change.key);
      set.change.items -= 1;
    }
    set.change.bytes += growth;
    changed[change.prefix] += growth;
  }
  if (set.empty()) {
    co_return Status::Ok();
  }
  set.time = replica.NextTime();
  set.frees_space = true;
  const storage::Totals change = set.change;
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  ++entries;
  for (const auto& [prefix, growth] : changed) {
    replica.sizes().End(prefix, growth, {}, lsn);
  }
  if (!lsn) {
    co_return lsn.error();
  }
  dropped += static_cast<uint64_t>(-change.items);
  trimmed += slice.changes.size() - static_cast<uint64_t>(-change.items);
  bytes -= change.bytes;
  co_return Status::Ok();
}

Task<Status> PurgeRows::Sweep(Replica& replica, const Survey& survey) {
  const std::string end = storage::PrefixEnd(survey.last);
  Slice slice{.limit = survey.limit, .span = {survey.first, end}};
  while (slice.span.begin != end) {
    if (stop()) {
      co_return Status(Code::kUnavailable, "the sweep is stopped");
    }
    const Instant began = replica.services().clock.Now();
    slice.span.end = end;
    auto find = [&] { return slice.Find(replica.state(), keys_max, bytes_max); };
    ORRERY_CO_RETURN_IF_ERROR(co_await runtime::OnBlocking(replica.workers(), find));
    slice.whole &= !slice.wanted.empty();
    if (!slice.wanted.empty()) {
      ORRERY_CO_RETURN_IF_ERROR(co_await Drop(replica, slice, survey.term));
    }
    slice.span.begin = slice.span.end;
    co_await Rest(replica, began);
  }
  co_return Status::Ok();
}

Task<Reply> PurgeRows::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const model::Container&>(*schema);
  if (!container.is_table()) {
    co_return replica.MakeReply(
        Status(Code::kInvalidArgument, "The container is not a table of Cassandra."), {});
  }
  if (!replica.set().leads()) {
    co_return replica.MakeReply(Status(Code::kNotLeader, "this replica does not lead"), {});
  }
  grace_ = container.grace_seconds * 1'000'000;
  const int64_t now = std::max(replica.wall(), replica.last_time()).micros;
  Survey survey{.limit = now - grace_, .term = replica.set().term(), .era = replica.sizes().era()};
  Status status = co_await Look(replica, survey);
  if (status.ok()) {
    status = co_await Mark(replica, survey);
  }
  if (status.ok() && !survey.first.empty()) {
    status = co_await Sweep(replica, survey);
  }
  next = survey.next;
  co_return replica.MakeReply(std::move(status), {});
}

}  // namespace orrery::rows
