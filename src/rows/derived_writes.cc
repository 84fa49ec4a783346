// What a write means for indexes and views: the rows that it changes, before and after.
#include <limits>
#include <set>

#include "rows/evaluation.h"

namespace orrery::rows {

using runtime::Task;
using storage::Space;

namespace {

// What one deletion may take away from a table with indexes or views.
constexpr size_t kRowsMax = 10'000;
constexpr size_t kBytesMax = 32 << 20;
constexpr size_t kBatchBytesMax = 16 << 20;

Status TooMany() {
  return Status(Code::kTooLarge,
                "A deletion of a table with indexes or views may cover at most 10,000 rows and 32 "
                "MB: delete them part by part.");
}

// The parts of a batch, one for each partition of a derived table.
class Parts {
 public:
  Parts(KeptBatch& batch, int64_t timestamp) : batch_(batch), timestamp_(timestamp) {}

  void Replace(const DerivedRow& row) { Add(row, RowAction::kMerge).end = row.Write(timestamp_); }
  void Delete(const DerivedRow& row) { Add(row, RowAction::kDeleteRow).timestamp = timestamp_; }
  size_t bytes() const { return bytes_; }

 private:
  RowChange& Add(const DerivedRow& row, RowAction action) {
    auto [at, fresh] = places_.try_emplace({row.container, row.partition_key}, batch_.parts.size());
    if (fresh) {
      batch_.parts.push_back({.container = row.container,
                              .epk = types::CassandraEpk(row.partition_key),
                              .partition_key = row.partition_key,
                              .changes = {}});
    }
    bytes_ += row.key.size();
    for (const DerivedRow::Cell& cell : row.cells) {
      bytes_ += cell.value.size();
    }
    RowChange& change = batch_.parts[at->second].changes.emplace_back();
    change.action = action;
    change.marks = action == RowAction::kMerge;
    change.key = row.key;
    change.made = timestamp_;
    return change;
  }

  KeptBatch& batch_;
  const int64_t timestamp_;
  std::map<std::pair<ContainerId, std::string>, size_t> places_;
  size_t bytes_ = 0;
};

bool SamePlace(const DerivedRow& a, const DerivedRow& b) {
  return a.container == b.container && a.partition_key == b.partition_key && a.key == b.key;
}

// Values that cannot be indexed and were there before the index was do not stand in the way of
// other changes of their row.
Status CheckBrought(const Derived& before, const Derived& after) {
  for (const Derived::LeftOut& value : after.left_out) {
    if (std::ranges::find(before.left_out, value) == before.left_out.end()) {
      return CannotIndex(value.value.size());
    }
  }
  return Status::Ok();
}

// Whether a deletion at this time leaves less of a row. Not of one that is gone already, of which
// there may be many, and not of one that is newer.
bool TakesAway(std::string_view stored, int64_t now, int64_t deleted, int64_t deletion) {
  auto before = cql::ReadRow(stored, now, deleted);
  auto after = cql::ReadRow(stored, now, std::max(deleted, deletion));
  if (!before || !after) {
    return true;  // what is wrong is told later
  }
  return before->mark.has_value() != after->mark.has_value() ||
         before->cells.size() != after->cells.size();
}

// What a cell adds to the key of an entry.
size_t BytesIn(const DerivedIndex& index, const CellChange& cell) {
  if (!index.column.type.multi_cell()) {
    return cell.value.size();
  }
  switch (index.kind) {
    case cql::IndexTargetKind::kKeys: return cell.path.size();
    case cql::IndexTargetKind::kEntries: return IndexPartitionOfEntry(cell.path, cell.value).size();
    default:
      return index.column.type.id() == cql::TypeId::kSet ? cell.path.size() : cell.value.size();
  }
}

Status CheckIndexed(const Derivation& derivation, const CellChange& cell) {
  auto is = [&](const ColumnSource& column) {
    return column.kind == ColumnSource::Kind::kCell && column.at == cell.column;
  };
  size_t bytes = 0;
  for (const DerivedIndex& index : derivation.indexes) {
    bytes = std::max(bytes, is(index.column) ? BytesIn(index, cell) : 0);
  }
  for (const DerivedView& view : derivation.views) {
    bytes = std::max(bytes, std::ranges::any_of(view.partition_key, is) ? cell.value.size() : 0);
  }
  return bytes > kIndexedBytesMax ? CannotIndex(bytes) : Status::Ok();
}

}  // namespace

Status CheckIndexed(const Derivation& derivation, const std::vector<RowChange>& changes) {
  for (const RowChange& change : changes) {
    for (const CellChange& cell : change.cells) {
      const bool brings = cell.action == CellAction::kSet || cell.action == CellAction::kAppend ||
                          cell.action == CellAction::kPrepend;
      if (brings) {
        ORRERY_RETURN_IF_ERROR(CheckIndexed(derivation, cell));
      }
    }
  }
  return Status::Ok();
}

Task<Status> Evaluation::ReadRange(std::string begin, std::string end, int64_t deletion) {
  const int64_t now = replica_.wall().seconds();
  auto scan = [&]() -> Status {
    size_t rows = 0;
    size_t bytes = 0;
    auto at = replica_.state().NewIterator(storage::Index(Space::kItems), begin, end);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      bytes_read_ += at->value().size();
      const int64_t deleted = DeletedAt(at->key().substr(prefix_.size() + 1), false);
      if (!TakesAway(at->value(), now, deleted, deletion)) {
        continue;
      }
      bytes += at->value().size();
      if (++rows > kRowsMax || bytes > kBytesMax) {
        return TooMany();
      }
      stored_[std::string(at->key())] = at->value();
    }
    return at->status();
  };
  co_return co_await runtime::OnBlocking(replica_.workers(), scan);
}

Task<Status> Evaluation::LoadDerived() {
  const std::string rows = prefix_ + kRowKey;
  for (const RowChange& change : write_.changes) {
    const int64_t time = change.timestamp.value_or(std::numeric_limits<int64_t>::max());
    switch (change.action) {
      case RowAction::kDeletePartition:
        ORRERY_CO_RETURN_IF_ERROR(co_await ReadRange(rows, storage::PrefixEnd(rows), time));
        break;
      case RowAction::kDeleteRange:
        if (change.key < change.end) {
          ORRERY_CO_RETURN_IF_ERROR(co_await ReadRange(rows + change.key, rows + change.end, time));
        }
        break;
      default:
        if (!change.is_static) {
          ORRERY_CO_RETURN_IF_ERROR(co_await Read(rows + change.key));
        }
    }
  }
  co_return Status::Ok();
}

std::string Evaluation::After(const std::string& key) const {
  std::vector<std::string_view> operands;
  for (const Operand& operand : operands_) {
    if (operand.key == key) {
      operands.push_back(operand.bytes);
    }
  }
  auto stored = Stored(key);
  if (operands.empty()) {
    return std::string(stored.value_or(""));
  }
  return cql::MergeRows(stored, operands);
}

Result<std::optional<cql::Deletions>> Evaluation::DeletionsAfter() const {
  const std::string bytes = After(prefix_ + kDeletionsKey);
  if (bytes.empty()) {
    return std::optional<cql::Deletions>();
  }
  ORRERY_TRY(cql::Deletions parsed, cql::Deletions::Parse(bytes));
  return std::optional(std::move(parsed));
}

Result<Derived> Evaluation::DerivedFrom(const std::string& key, std::string_view row,
                                        const std::optional<cql::Deletions>& deletions) const {
  if (row.empty()) {
    return Derived();
  }
  const std::string_view clustering = std::string_view(key).substr(prefix_.size() + 1);
  const int64_t deleted = deletions ? deletions->At(clustering) : cql::kNeverWritten;
  ORRERY_TRY(cql::LiveRow live, cql::ReadRow(row, time_.seconds(), deleted));
  return Derive(*write_.derivation, key, write_.partition_key, clustering, live);
}

Status Evaluation::AddDerived() {
  batch_ = write_.batch;
  if (write_.derivation == nullptr) {
    return Status::Ok();
  }
  KeptBatch batch{.made = replica_.wall().micros, .parts = {}};
  if (!write_.batch.empty()) {
    auto given = KeptBatch::Decode(write_.batch);
    if (!given) {
      return given.error();
    }
    batch = std::move(*given);
  }
  std::set<std::string> refreshed;
  for (const RowChange& change : write_.changes) {
    if (change.action == RowAction::kRefresh) {
      refreshed.insert(prefix_ + kRowKey + change.key);
    }
  }
  auto deletions = DeletionsAfter();
  if (!deletions) {
    return deletions.error();
  }
  const size_t given = batch.parts.size();
  size_t rows = 0;
  Parts parts(batch, time_.micros);
  for (const auto& [key, stored] : stored_) {
    if (key[prefix_.size()] != kRowKey) {
      continue;
    }
    auto before = DerivedFrom(key, stored.value_or(""), deletions_);
    const std::string row = After(key);
    auto after = DerivedFrom(key, row, *deletions);
    if (!before || !after) {
      return before ? after.error() : before.error();
    }
    if (!write_.forced) {
      ORRERY_RETURN_IF_ERROR(CheckBrought(*before, *after));
    }
    ++rows;
    for (const DerivedRow& old : before->rows) {
      auto same = [&](const DerivedRow& other) { return SamePlace(old, other); };
      if (std::ranges::none_of(after->rows, same)) {
        parts.Delete(old);
      }
    }
    const bool all = refreshed.contains(key);
    for (const DerivedRow& made : after->rows) {
      if (all || std::ranges::find(before->rows, made) == before->rows.end()) {
        parts.Replace(made);
      }
    }
    if (parts.bytes() > kBatchBytesMax && (rows > 1 || !write_.forced)) {
      return TooMany();
    }
  }
  if (batch.parts.size() > given) {
    batch_ = batch.Encode();
  }
  return Status::Ok();
}

}  // namespace orrery::rows
