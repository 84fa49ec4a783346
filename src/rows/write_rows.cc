#include <algorithm>
#include <functional>
#include <map>

#include "cql/assemble.h"
#include "cql/row.h"
#include "cql/value.h"
#include "model/room.h"
#include "partition/pricing.h"
#include "rows/condition.h"
#include "rows/rows.h"

namespace orrery::rows {

using partition::Latch;
using partition::Replica;
using partition::Reply;
using partition::RequestUnits;
using runtime::Task;
using storage::Space;

namespace {

bool NeedsList(CellAction action) { return action >= CellAction::kSetAt; }

bool NeedsRow(const RowChange& change) {
  return std::ranges::any_of(change.cells,
                             [](const CellChange& cell) { return NeedsList(cell.action); });
}

std::string KeyOf(const std::string& prefix, bool is_static, std::string_view clustering) {
  std::string key = prefix;
  key.push_back(is_static ? kStaticKey : kRowKey);
  if (!is_static) {
    key += clustering;
  }
  return key;
}

// Batches stand among the unique values of their partition, of which tables have none: so they go
// where it goes.
constexpr char kBatchMark = '\xFE';

std::string BatchKey(const std::string& prefix, const storage::OperationId& id) {
  std::string key = storage::UniquePrefix(prefix);
  key.push_back(kBatchMark);
  Encoder encoder(key);
  encoder.U64(id.high);
  encoder.U64(id.low);
  return key;
}

// The evaluation of one WriteRows.
class Evaluation {
 public:
  Evaluation(Replica& replica, const WriteRows& write, std::string prefix)
      : replica_(replica), write_(write), prefix_(std::move(prefix)) {}

  // Reads what conditions and lists need.
  Task<Status> Load();
  // Whether the conditions hold; what they saw is in `answer` if not. kCorruption.
  Result<bool> Check(WriteAnswer& answer);
  // Takes the next partition time and makes the changes, without waiting. May be called again.
  Status Make();
  bool newest() const { return replica_.last_time() == time_; }
  storage::WriteSet Finish();

  int64_t growth() const { return growth_; }
  size_t bytes_read() const { return bytes_read_; }
  const std::string& prefix() const { return prefix_; }

 private:
  Task<Status> Read(const std::string& key);
  // As it is stored; nothing if there is none.
  std::optional<std::string_view> Stored(const std::string& key) const;
  Result<cql::LiveRow> Live(const std::string& key, int64_t now) const;
  int64_t DeletedAt(std::string_view clustering, bool is_static) const;
  Status MakeRow(const RowChange& change, int64_t timestamp);
  Status ChangeList(const CellChange& cell, const std::string& key, const cql::Stamp& stamp,
                    cql::RowWriter& writer);
  void Add(std::string key, std::string operand);
  int64_t TimestampOf(const RowChange& change) const;

  Replica& replica_;
  const WriteRows& write_;
  const std::string prefix_;
  std::map<std::string, std::optional<std::string>> stored_;
  std::optional<cql::Deletions> deletions_;
  size_t bytes_read_ = 0;
  int64_t newest_ = cql::kNeverWritten;  // timestamp of anything that a condition looked at
  WallTime time_;
  uint32_t list_number_ = 0;
  int64_t growth_ = 0;
  int64_t rows_ = 0;
  std::vector<std::pair<std::string, std::string>> operands_;
};

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
  for (const RowChange& change : write_.changes) {
    if (NeedsRow(change)) {
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
  co_return Status::Ok();
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

Result<bool> Evaluation::Check(WriteAnswer& answer) {
  const int64_t now = replica_.wall().seconds();
  const std::string static_key = KeyOf(prefix_, true, {});
  bool all = true;
  for (const RowCondition& condition : write_.conditions) {
    const std::string key = KeyOf(prefix_, condition.is_static, condition.key);
    ORRERY_TRY(cql::LiveRow row, Live(key, now));
    ORRERY_TRY(cql::LiveRow with_static, Live(static_key, now));
    for (const std::string& each : {key, static_key}) {
      if (auto stored = Stored(each)) {
        ORRERY_TRY(int64_t newest, cql::NewestIn(*stored));
        newest_ = std::max(newest_, newest);
      }
    }
    newest_ = std::max(newest_, DeletedAt(condition.key, condition.is_static));
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
      seen.row = Stored(key);
    }
    seen.static_row = Stored(static_key);
    seen.deleted = DeletedAt(condition.key, condition.is_static);
  }
  answer.now = now;
  answer.applied = all;
  if (all) {
    answer.seen.clear();
  }
  return all;
}

int64_t Evaluation::TimestampOf(const RowChange& change) const {
  if (!write_.conditions.empty()) {
    // Clients whose clocks count milliseconds may write again in this one, without a condition.
    const int64_t now = time_.micros / 1000 * 1000;
    return std::max(now, newest_ == cql::kNeverWritten ? newest_ : newest_ + 1);
  }
  return change.timestamp.value_or(time_.micros);
}

void Evaluation::Add(std::string key, std::string operand) {
  growth_ += static_cast<int64_t>(key.size() + operand.size());
  operands_.emplace_back(std::move(key), std::move(operand));
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
    rows_ += 1;
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
  }
  std::string operand = writer.Finish();
  if (operand.size() > kRowBytesMax) {
    return Status(Code::kTooLarge, "A row may have at most 2 MB, and this change of one has " +
                                       std::to_string(operand.size()) + " bytes.");
  }
  Add(key, std::move(operand));
  return Status::Ok();
}

Status Evaluation::Make() {
  time_ = replica_.NextTime();
  operands_.clear();
  list_number_ = 0;
  growth_ = 0;
  rows_ = 0;
  for (const RowChange& change : write_.changes) {
    const int64_t timestamp = TimestampOf(change);
    switch (change.action) {
      case RowAction::kWrite: ORRERY_RETURN_IF_ERROR(MakeRow(change, timestamp)); break;
      case RowAction::kDeleteRow: {
        cql::RowWriter writer;
        writer.DeleteRow(timestamp);
        Add(KeyOf(prefix_, change.is_static, change.key), writer.Finish());
        break;
      }
      case RowAction::kDeleteRange:
        Add(prefix_ + kDeletionsKey, cql::DeletionOfRange(change.key, change.end, timestamp));
        break;
      case RowAction::kDeletePartition:
        Add(prefix_ + kDeletionsKey, cql::DeletionOfPartition(timestamp));
        break;
    }
  }
  return Status::Ok();
}

storage::WriteSet Evaluation::Finish() {
  storage::WriteSet set;
  set.time = time_;
  set.id = write_.id;
  set.settled = write_.settled;
  for (const auto& [key, operand] : operands_) {
    set.Merge(Space::kItems, key, operand);
  }
  if (!write_.batch.empty()) {
    set.Put(Space::kIndex, BatchKey(prefix_, write_.id), write_.batch);
  }
  set.change.bytes = growth_;
  set.change.items = rows_;
  return set;
}

// What is remembered of a write: the charge, and of one that was refused the answer.
std::string Remembered(const Reply& reply, bool done) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U64(static_cast<uint64_t>(reply.charge.hundredths()));
  if (!done) {
    encoder.U8(static_cast<uint8_t>(reply.status.code()));
    encoder.Bytes(reply.status.message());
    encoder.Raw(reply.body);
  }
  return bytes;
}

Reply Repeated(Replica& replica, const Replica::Outcome& outcome) {
  Decoder decoder(outcome.result);
  Reply reply =
      replica.MakeReply(Status(), RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64())));
  reply.lsn = outcome.lsn;
  reply.body = WriteAnswer().Encode();
  if (decoder.left() > 0) {
    const auto code =
        static_cast<Code>(std::min(decoder.U8(), static_cast<uint8_t>(Code::kInternal)));
    reply.status = Status(code, std::string(decoder.Bytes()));
    reply.body = decoder.Rest();
  }
  if (!decoder.ok()) {
    reply.status = Status(Code::kUnknownOutcome, "the remembered outcome is malformed");
  }
  return reply;
}

// Of the operation, and not of who was asked and when.
bool IsAnswer(Code code) {
  return code == Code::kOk || code == Code::kInvalidArgument || code == Code::kTooLarge ||
         code == Code::kForbidden || code == Code::kQuotaExceeded;
}

Status NotATable() {
  return Status(Code::kInvalidArgument, "The container is not a table of Cassandra.");
}

}  // namespace

bool WriteRows::reads() const {
  return !conditions.empty() || std::ranges::any_of(changes, NeedsRow);
}

std::string WriteRows::logical_partition() const { return "\"0x" + ToHex(partition_key) + "\""; }

RequestUnits WriteRows::least_price() const {
  if (forced) {
    return {};
  }
  size_t bytes = 0;
  for (const RowChange& change : changes) {
    for (const CellChange& cell : change.cells) {
      bytes += cell.value.size();
    }
  }
  return partition::LeastPriceOfWrite(bytes);
}

Task<Status> WriteRows::Refuse(Replica& replica, const Replica::Turn& turn, const Reply& reply) {
  if (!again || settled == 0 || !IsAnswer(reply.status.code())) {
    // It says something about the data: it must not come from an old leader.
    co_return co_await replica.set().ReadBarrier();
  }
  storage::WriteSet set;
  set.id = id;
  set.settled = settled;
  set.time = replica.NextTime();
  set.result = Remembered(reply, false);
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), turn);
  co_return lsn ? Status::Ok() : lsn.error();
}

Task<Reply> WriteRows::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const model::Container&>(*schema);
  if (!container.is_table()) {
    co_return replica.MakeReply(NotATable(), partition::PriceOfRefusedWrite());
  }
  std::string prefix = PartitionPrefix(container.id, epk, partition_key);
  std::vector<Latch> latches{{.name = std::hash<std::string_view>()(prefix), .exclusive = reads()}};
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, std::move(latches));
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  if (const Replica::Outcome* before = replica.Recall(id)) {
    co_return Repeated(replica, *before);
  }

  Evaluation evaluation(replica, *this, std::move(prefix));
  Reply reply = replica.MakeReply(Status(), RequestUnits());
  WriteAnswer answer;
  if (reads()) {
    reply.status = co_await evaluation.Load();
    reply.charge = partition::PriceOfRead(evaluation.bytes_read());
  }
  if (reply.status.ok() && !conditions.empty()) {
    Result<bool> holds = evaluation.Check(answer);
    reply.status = holds ? Status() : holds.error();
  }
  const bool writes = reply.status.ok() && answer.applied;
  if (writes) {
    reply.status = evaluation.Make();
  }
  if (writes && reply.status.ok() && evaluation.growth() > static_cast<int64_t>(kWriteBytesMax)) {
    reply.status = Status(Code::kTooLarge, "The changes of the write are too large.");
  }
  if (writes && reply.status.ok() && model::MayBeFull(replica, evaluation.growth())) {
    reply.status = co_await model::CheckRoom(replica, evaluation.prefix(), evaluation.growth());
    if (reply.status.ok() && !evaluation.newest()) {
      reply.status = evaluation.Make();
    }
  }
  reply.body = answer.Encode();
  if (!reply.status.ok() || !answer.applied) {
    reply.charge = std::max(reply.charge, partition::PriceOfRefusedWrite());
    if (Status current = co_await Refuse(replica, *turn, reply); !current.ok()) {
      reply.status = current;
    }
    co_return reply;
  }
  if (changes.empty() && batch.empty()) {
    co_return reply;
  }
  reply.charge += partition::PriceOfCreate(static_cast<size_t>(evaluation.growth()), 0);
  storage::WriteSet set = evaluation.Finish();
  set.result = Remembered(reply, true);
  partition::LogicalSizes& sizes = replica.sizes();
  auto ticket = sizes.Begin(evaluation.prefix(), evaluation.growth());
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  sizes.End(evaluation.prefix(), evaluation.growth(), ticket, lsn);
  if (!lsn) {
    co_return replica.MakeReply(lsn.error(), partition::PriceOfRefusedWrite());
  }
  reply.lsn = *lsn;
  co_return reply;
}

Task<Reply> EndBatch::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const model::Container&>(*schema);
  const std::string prefix = PartitionPrefix(container.id, epk, partition_key);
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, {});
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  storage::WriteSet set;
  set.time = replica.NextTime();
  set.id = id;
  set.settled = settled;
  set.frees_space = true;
  set.Delete(Space::kIndex, BatchKey(prefix, batch));
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  co_return replica.MakeReply(lsn ? Status() : lsn.error(), RequestUnits());
}

std::vector<FoundBatch> FindBatches(storage::Engine& state, ContainerId container,
                                    const types::EpkRange& range, size_t most) {
  constexpr size_t kTail = 1 + 2 * sizeof(uint64_t);
  std::vector<FoundBatch> found;
  const storage::KeySpan span = storage::UniqueSpan(container, range);
  auto at = state.NewIterator(storage::Index(Space::kIndex), span.begin, span.end);
  for (at->SeekToFirst(); at->Valid() && found.size() < most; at->Next()) {
    std::string_view key = at->key().substr(1);
    FoundBatch each;
    std::string_view tail;
    if (!storage::ReadItemEpk(key, &each.epk) || !SplitKey(key, &each.partition_key, &tail) ||
        tail.size() != kTail || tail[0] != kBatchMark) {
      continue;
    }
    each.id = {.high = GetU64(tail.data() + 1), .low = GetU64(tail.data() + 9)};
    auto batch = KeptBatch::Decode(at->value());
    if (batch) {
      each.batch = std::move(*batch);
      found.push_back(std::move(each));
    }
  }
  return found;
}

namespace {

struct TruncateSlice {
  std::vector<std::string> keys;
  int64_t bytes = 0;
  Status status;
};

TruncateSlice ScanKeys(storage::Engine& state, const storage::KeySpan& span) {
  TruncateSlice slice;
  auto at = state.NewIterator(storage::Index(Space::kItems), span.begin, span.end);
  for (at->SeekToFirst(); at->Valid() && slice.keys.size() < TruncateRows::kDeletesMax;
       at->Next()) {
    slice.keys.emplace_back(at->key());
    slice.bytes += static_cast<int64_t>(at->key().size() + at->value().size());
  }
  slice.status = at->status();
  return slice;
}

}  // namespace

Task<Reply> TruncateRows::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const model::Container&>(*schema);
  if (!container.is_table()) {
    co_return replica.MakeReply(NotATable(), partition::PriceOfRefusedWrite());
  }
  auto scan = [&] {
    return ScanKeys(replica.state(), storage::ItemSpan(container.id, replica.range().range));
  };
  TruncateSlice slice = co_await runtime::OnBlocking(replica.workers(), scan);
  if (!slice.status.ok() || slice.keys.empty()) {
    co_return replica.MakeReply(slice.status, partition::LeastPriceOfWrite(0));
  }
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, {});
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  if (replica.watched()) {
    co_return replica.MakeReply(Status(Code::kUnavailable, "the partition is being split"), {});
  }
  storage::WriteSet set;
  set.time = replica.NextTime();
  set.id = id;
  set.settled = settled;
  for (const std::string& key : slice.keys) {
    set.Delete(Space::kItems, key);
  }
  // What was written without a look was counted as if nothing had been there before.
  const storage::Totals totals = replica.totals();
  const bool last = slice.keys.size() < kDeletesMax;
  set.change.bytes = last ? -totals.bytes : -std::min(slice.bytes, totals.bytes);
  set.change.items =
      last ? -totals.items : -std::min(static_cast<int64_t>(slice.keys.size()), totals.items);
  set.frees_space = true;
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  replica.sizes().Forget();
  Reply reply = replica.MakeReply(lsn ? Status() : lsn.error(), partition::LeastPriceOfWrite(0));
  if (lsn) {
    reply.lsn = *lsn;
    reply.body = last ? "" : "more";
  }
  co_return reply;
}

}  // namespace orrery::rows
