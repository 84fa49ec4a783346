#include "rows/evaluation.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "cql/assemble.h"
#include "cql/value.h"
#include "rows/condition.h"

namespace orrery::rows {

using partition::Replica;
using runtime::Task;
using storage::Space;

namespace {

// Microseconds by which timestamps of clients are behind.
constexpr int64_t kUsualDelay = 1'000'000;

bool NeedsList(CellAction action) { return action >= CellAction::kSetAt; }

bool Deletes(CellAction action) {
  switch (action) {
    case CellAction::kDelete:
    case CellAction::kDeleteColumn:
    case CellAction::kReplaceColumn:
    case CellAction::kDeleteAt:
    case CellAction::kRemove: return true;
    default: return false;
  }
}

// Whether it changes one row, and not a range of them.
bool ChangesRow(const RowChange& change) {
  return change.action == RowAction::kWrite || change.action == RowAction::kDeleteRow ||
         change.action == RowAction::kMerge;
}

std::string KeyOf(const std::string& prefix, bool is_static, std::string_view clustering) {
  std::string key = prefix;
  key.push_back(is_static ? kStaticKey : kRowKey);
  if (!is_static) {
    key += clustering;
  }
  return key;
}

Status TooManyCounters() {
  return Status(
      Code::kTooLarge,
      "A deletion of counters may cover at most 10,000 rows and 32 MB: delete them part by "
      "part.");
}

}  // namespace

bool DeletesEach(const RowChange& change) {
  return change.marks &&
         (change.action == RowAction::kDeleteRange || change.action == RowAction::kDeletePartition);
}

bool NeedsRow(const RowChange& change) {
  return DeletesEach(change) || std::ranges::any_of(change.cells, [](const CellChange& cell) {
           return NeedsList(cell.action);
         });
}

bool IsOld(const RowChange& change, int64_t horizon) {
  // Deletions of ranges say themselves that they came late: nothing is read for them.
  if (!ChangesRow(change)) {
    return false;
  }
  const int64_t timestamp = change.action == RowAction::kMerge
                                ? cql::OldestIn(change.end).value_or(INT64_MAX)
                                : change.timestamp.value_or(INT64_MAX);
  return timestamp <= horizon;
}

// Batches stand among the unique values of their partition, of which tables have none: so they go
// where it goes.
std::string BatchKey(const std::string& prefix, const storage::OperationId& id) {
  std::string key = storage::UniquePrefix(prefix);
  key.push_back(kBatchMark);
  Encoder encoder(key);
  encoder.U64(id.high);
  encoder.U64(id.low);
  return key;
}

Task<Status> Evaluation::Read(const std::string& key) {
  auto [at, fresh] = stored_.try_emplace(key);
  if (!fresh) {
    co_return Status::Ok();
  }
  Result<std::string> value = co_await replica_.Read(Space::kItems, key);
  if (!value && value.error().code() != Code::kNotFound) {
    co_return value.error();
  }
  if (value) {
    bytes_read_ += value->size();
    at->second = std::move(*value);
  }
  co_return Status::Ok();
}

Task<Status> Evaluation::Load() {
  for (const RowCondition& condition : write_.conditions) {
    ORRERY_CO_RETURN_IF_ERROR(co_await Read(KeyOf(prefix_, true, {})));
    if (!condition.is_static) {
      ORRERY_CO_RETURN_IF_ERROR(co_await Read(KeyOf(prefix_, false, condition.key)));
    }
  }
  const bool looks = !write_.conditions.empty() || horizon_ != cql::kNeverWritten;
  for (const RowChange& change : write_.changes) {
    if (DeletesEach(change)) {
      const auto [begin, end] = KeysOf(change);
      const int64_t time = change.timestamp.value_or(std::numeric_limits<int64_t>::max());
      Status read = begin < end ? co_await ReadRange(begin, end, time) : Status::Ok();
      if (!read.ok()) {
        co_return read.code() == Code::kTooLarge ? TooManyCounters() : read;
      }
    } else if (NeedsRow(change) || (looks && ChangesRow(change))) {
      ORRERY_CO_RETURN_IF_ERROR(co_await Read(KeyOf(prefix_, change.is_static, change.key)));
    }
  }
  const std::string deletions = prefix_ + kDeletionsKey;
  ORRERY_CO_RETURN_IF_ERROR(co_await Read(deletions));
  if (auto stored = Stored(deletions)) {
    auto parsed = cql::Deletions::Parse(*stored);
    if (!parsed) {
      co_return parsed.error();
    }
    deletions_ = std::move(*parsed);
  }
  co_return write_.derivation == nullptr ? Status::Ok() : co_await LoadDerived();
}

std::pair<std::string, std::string> Evaluation::KeysOf(const RowChange& change) const {
  const std::string rows = prefix_ + kRowKey;
  return change.action == RowAction::kDeletePartition
             ? std::pair(prefix_ + kStaticKey, storage::PrefixEnd(rows))
             : std::pair(rows + change.key, rows + change.end);
}

void Evaluation::DeleteEach(const RowChange& change, int64_t timestamp) {
  const auto [begin, end] = KeysOf(change);
  for (auto at = stored_.lower_bound(begin); at != stored_.end() && at->first < end; ++at) {
    cql::RowWriter writer;
    writer.DeleteRow(timestamp);
    writer.Late(LateOf(timestamp));
    Add(at->first, writer.Finish(), timestamp);
  }
}

std::optional<std::string_view> Evaluation::Stored(const std::string& key) const {
  auto at = stored_.find(key);
  return at == stored_.end() || !at->second ? std::nullopt
                                            : std::optional<std::string_view>(*at->second);
}

int64_t Evaluation::DeletedAt(std::string_view clustering, bool is_static) const {
  if (!deletions_) {
    return cql::kNeverWritten;
  }
  return is_static ? deletions_->partition() : deletions_->At(clustering);
}

Result<cql::LiveRow> Evaluation::Live(const std::string& key, int64_t now) const {
  auto stored = Stored(key);
  if (!stored) {
    return cql::LiveRow();
  }
  const bool is_static = key[prefix_.size()] == kStaticKey;
  return cql::ReadRow(*stored, now,
                      DeletedAt(std::string_view(key).substr(prefix_.size() + 1), is_static));
}

std::optional<std::string> Evaluation::Seen(const std::string& key) const {
  auto stored = Stored(key);
  const int64_t deleted = DeletedAt(std::string_view(key).substr(prefix_.size() + 1), false);
  if (!stored || deleted == DeletedAt({}, true)) {
    return std::optional<std::string>(stored);
  }
  cql::RowWriter writer;
  writer.DeleteRow(deleted);
  const std::string deletion = writer.Finish();
  const std::string_view operands[] = {deletion};
  return cql::MergeRows(stored, operands);
}

Status Evaluation::NoteNewest(const std::string& key) {
  if (auto stored = Stored(key)) {
    auto newest = cql::NewestIn(*stored);
    if (!newest) {
      return newest.error();
    }
    newest_ = std::max(newest_, *newest);
  }
  const bool is_static = key[prefix_.size()] == kStaticKey;
  newest_ =
      std::max(newest_, DeletedAt(std::string_view(key).substr(prefix_.size() + 1), is_static));
  return Status::Ok();
}

Result<bool> Evaluation::Check(WriteAnswer& answer) {
  const int64_t now = replica_.wall().seconds();
  const std::string static_key = KeyOf(prefix_, true, {});
  bool all = true;
  for (const RowCondition& condition : write_.conditions) {
    const std::string key = KeyOf(prefix_, condition.is_static, condition.key);
    ORRERY_TRY(cql::LiveRow row, Live(key, now));
    ORRERY_TRY(cql::LiveRow with_static, Live(static_key, now));
    ORRERY_TRY_STATUS(NoteNewest(key));
    ORRERY_TRY_STATUS(NoteNewest(static_key));
    bool holds = true;
    switch (condition.kind) {
      case RowCondition::Kind::kExists: holds = row.exists(); break;
      case RowCondition::Kind::kNotExists: holds = !row.exists(); break;
      case RowCondition::Kind::kCells: {
        // Ids of columns tell static ones from the others.
        cql::LiveRow both = std::move(with_static);
        both.cells.insert(both.cells.end(), row.cells.begin(), row.cells.end());
        if (!condition.is_static) {
          std::ranges::sort(both.cells, {}, [](const cql::CellView& cell) {
            return std::pair(cell.column, cell.path);
          });
        } else {
          both = std::move(row);
        }
        for (const CellCondition& cell : condition.cells) {
          holds = holds && Holds(cell, both);
        }
        break;
      }
    }
    all = all && holds;
    SeenRow& seen = answer.seen.emplace_back();
    seen.key = condition.key;
    if (!condition.is_static) {
      seen.row = Seen(key);
    }
    seen.static_row = Stored(static_key);
    seen.deleted = DeletedAt({}, true);
  }
  answer.now = now;
  answer.applied = all;
  if (all) {
    answer.seen.clear();
  }
  for (const RowChange& change : write_.changes) {
    if (ChangesRow(change)) {
      ORRERY_TRY_STATUS(NoteNewest(KeyOf(prefix_, change.is_static, change.key)));
    }
  }
  return all;
}

int64_t Evaluation::TimestampOf(const RowChange& change) const {
  if (!write_.conditions.empty()) {
    // Clients whose clocks count milliseconds may write again in this one, without a condition. Of
    // a deletion of many rows it is not known how new they are: it is later than all that was done.
    const int64_t now = ChangesRow(change) ? time_.micros / 1000 * 1000 : time_.micros;
    return std::max(now, newest_ == cql::kNeverWritten ? newest_ : newest_ + 1);
  }
  return change.timestamp.value_or(time_.micros);
}

void Evaluation::Add(std::string key, std::string operand, int64_t timestamp, bool marks,
                     uint32_t whole) {
  growth_ += static_cast<int64_t>(key.size() + operand.size());
  if (horizon_ != cql::kNeverWritten && timestamp <= horizon_ &&
      key[prefix_.size()] != kDeletionsKey) {
    resolved_.try_emplace(key);
  }
  operands_.push_back({std::move(key), std::move(operand), marks, whole});
}

int64_t Evaluation::LateOf(int64_t timestamp) const {
  const bool usual = timestamp >= time_.micros - kUsualDelay &&
                     timestamp > replica_.horizon().known().value_or(INT64_MAX);
  return usual ? 0 : time_.seconds();
}

Status Evaluation::ChangeList(const CellChange& cell, const std::string& key,
                              const cql::Stamp& stamp, cql::RowWriter& writer) {
  auto row = Live(key, time_.seconds());
  if (!row) {
    return row.error();
  }
  auto cells = cql::CellsOf(*row, cell.column);
  if (cell.action == CellAction::kRemove) {
    for (const cql::CellView& each : cells) {
      if (each.value == cell.value) {
        writer.Delete(cell.column, each.path, stamp.timestamp);
      }
    }
    return Status::Ok();
  }
  const int64_t position = cell.path.size() == 4 ? cql::ReadInt(cell.path) : -1;
  if (cells.empty()) {
    return Status(Code::kInvalidArgument,
                  cell.action == CellAction::kSetAt
                      ? "Attempted to set an element on a list which is null"
                      : "Attempted to delete an element from a list which "
                        "is null");
  }
  if (position < 0 || position >= static_cast<int64_t>(cells.size())) {
    return Status(Code::kInvalidArgument, "List index " + std::to_string(position) +
                                              " out of bound, list has size " +
                                              std::to_string(cells.size()));
  }
  std::string_view path = cells[static_cast<size_t>(position)].path;
  if (cell.action == CellAction::kSetAt) {
    writer.Set(cell.column, path, stamp, cell.value);
  } else {
    writer.Delete(cell.column, path, stamp.timestamp);
  }
  return Status::Ok();
}

Status Evaluation::MakeRow(const RowChange& change, int64_t timestamp) {
  const std::string key = KeyOf(prefix_, change.is_static, change.key);
  cql::Stamp stamp{.timestamp = timestamp, .ttl = change.ttl};
  const int64_t made = change.made != 0 ? change.made : time_.micros;
  if (change.ttl > 0) {
    stamp.expires = WallTime{made}.seconds() + change.ttl;
  }
  cql::RowWriter writer;
  if (change.marks) {
    writer.Mark(stamp);
  }
  for (const CellChange& cell : change.cells) {
    switch (cell.action) {
      case CellAction::kSet: writer.Set(cell.column, cell.path, stamp, cell.value); break;
      case CellAction::kDelete: writer.Delete(cell.column, cell.path, timestamp); break;
      case CellAction::kDeleteColumn: writer.DeleteColumn(cell.column, timestamp); break;
      case CellAction::kReplaceColumn: writer.DeleteColumn(cell.column, timestamp - 1); break;
      case CellAction::kAdd: writer.Add(cell.column, cql::ReadBigint(cell.value), timestamp); break;
      case CellAction::kAppend:
      case CellAction::kPrepend: {
        const bool append = cell.action == CellAction::kAppend;
        std::string path = cql::ListPath(append ? made : -made, list_number_++);
        writer.Set(cell.column, path, stamp, cell.value);
        break;
      }
      default: ORRERY_RETURN_IF_ERROR(ChangeList(cell, key, stamp, writer));
    }
    if (Deletes(cell.action)) {
      writer.Late(LateOf(timestamp));
    }
  }
  std::string operand = writer.Finish();
  if (operand.size() > kRowBytesMax) {
    return Status(Code::kTooLarge, "A row may have at most 2 MB, and this change of one has " +
                                       std::to_string(operand.size()) + " bytes.");
  }
  Add(key, std::move(operand), timestamp, change.marks, change.whole);
  return Status::Ok();
}

bool Evaluation::Replaces(const Operand& operand) {
  if (operand.key[prefix_.size()] != kRowKey) {
    return false;
  }
  partition::Horizon& horizon = replica_.horizon();
  const int64_t newest = cql::NewestIn(operand.bytes).value_or(INT64_MAX);
  const bool later = horizon.NoteWrite(operand.key, newest, time_);
  return later && operand.whole > horizon.columns();
}

Status Evaluation::Resolve() {
  change_ = {};
  for (const Operand& operand : operands_) {
    if (!resolved_.contains(operand.key)) {
      change_.bytes += static_cast<int64_t>(operand.key.size() + operand.bytes.size());
      change_.items += operand.marks;
    }
  }
  if (resolved_.empty()) {
    return Status::Ok();
  }
  auto deletions = DeletionsAfter();
  if (!deletions) {
    return deletions.error();
  }
  for (auto& [key, left] : resolved_) {
    ORRERY_CHECK(stored_.contains(key));
    const std::string_view clustering = std::string_view(key).substr(prefix_.size() + 1);
    const bool is_static = key[prefix_.size()] == kStaticKey;
    const int64_t deleted = !*deletions ? cql::kNeverWritten
                            : is_static ? (*deletions)->partition()
                                        : (*deletions)->At(clustering);
    std::string row = After(key);
    auto remains = cql::PurgeRow(row, deleted, cql::kNeverWritten);
    if (!remains) {
      return remains.error();
    }
    left = remains->changed ? std::move(remains->value) : std::move(row);
    const auto stored = Stored(key);
    auto size = [&key](const auto& row) {
      return row ? static_cast<int64_t>(key.size() + row->size()) : 0;
    };
    change_.bytes += size(left) - size(stored);
    change_.items += static_cast<int64_t>(left.has_value()) - stored.has_value();
  }
  return Status::Ok();
}

Status Evaluation::Make() {
  time_ = replica_.NextTime();
  operands_.clear();
  list_number_ = 0;
  growth_ = 0;
  resolved_.clear();
  for (const RowChange& change : write_.changes) {
    const int64_t timestamp = TimestampOf(change);
    if (DeletesEach(change)) {
      DeleteEach(change, timestamp);
      continue;
    }
    switch (change.action) {
      case RowAction::kWrite: ORRERY_RETURN_IF_ERROR(MakeRow(change, timestamp)); break;
      case RowAction::kDeleteRow: {
        cql::RowWriter writer;
        writer.DeleteRow(timestamp);
        writer.Late(LateOf(timestamp));
        Add(KeyOf(prefix_, change.is_static, change.key), writer.Finish(), timestamp);
        break;
      }
      case RowAction::kDeleteRange:
        Add(prefix_ + kDeletionsKey,
            cql::DeletionOfRange(change.key, change.end, timestamp, LateOf(timestamp)), timestamp);
        break;
      case RowAction::kDeletePartition:
        Add(prefix_ + kDeletionsKey, cql::DeletionOfPartition(timestamp, LateOf(timestamp)),
            timestamp);
        break;
      case RowAction::kMerge:
        Add(KeyOf(prefix_, change.is_static, change.key), change.end,
            cql::OldestIn(change.end).value_or(INT64_MAX), change.marks);
        break;
      case RowAction::kRefresh: break;
    }
  }
  return Resolve();
}

storage::WriteSet Evaluation::Finish() {
  storage::WriteSet set;
  set.time = time_;
  set.id = write_.id;
  set.settled = write_.settled;
  for (const RowChange& change : write_.changes) {
    for (const CellChange& cell : change.cells) {
      replica_.horizon().NoteColumn(cell.column);
    }
  }
  for (const Operand& operand : operands_) {
    const bool replaces = Replaces(operand);
    if (resolved_.contains(operand.key)) {
      continue;
    }
    if (replaces) {
      set.Put(Space::kItems, operand.key, operand.bytes);
    } else {
      set.Merge(Space::kItems, operand.key, operand.bytes);
    }
  }
  for (const auto& [key, left] : resolved_) {
    if (left) {
      set.Put(Space::kItems, key, *left);
    } else if (Stored(key)) {
      set.Delete(Space::kItems, key);
    }
  }
  if (!batch_.empty()) {
    set.Put(Space::kIndex, BatchKey(prefix_, write_.id), batch_);
  }
  set.change = change_;
  bounds_ = replica_.horizon().AddBoundsTo(set);
  return set;
}

void Evaluation::Committed() const {
  if (bounds_) {
    replica_.horizon().Kept(*bounds_);
  }
}

}  // namespace orrery::rows
