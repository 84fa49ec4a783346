#include <algorithm>
#include <functional>

#include "model/room.h"
#include "partition/pricing.h"
#include "rows/evaluation.h"
#include "rows/rows.h"

namespace orrery::rows {

using partition::Latch;
using partition::Replica;
using partition::Reply;
using partition::RequestUnits;
using runtime::Task;
using storage::Space;

namespace {

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

// `answer`: what it was done with, if it was.
Reply Repeated(Replica& replica, const Replica::Outcome& outcome, const WriteAnswer& answer) {
  Decoder decoder(outcome.result);
  Reply reply =
      replica.MakeReply(Status(), RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64())));
  reply.lsn = outcome.lsn;
  reply.body = answer.Encode();
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

// Where a partition keeps the oldest version of the schema that its writes may know.
std::string SchemaKey(const Replica& replica) {
  std::string key =
      storage::UniquePrefix(PartitionPrefix(replica.container(), replica.range().range.min, ""));
  key.push_back(kSchemaMark);
  return key;
}

// A new leader may not have heard of an index for which its rows were refreshed already; nor may
// who sends it writes. kSchemaChanged: it must hear of it first. What is in the log of this term
// came through this leader, so that one look is enough.
Task<Status> CheckSchema(Replica& replica, uint64_t term) {
  auto kept = co_await replica.Read(Space::kIndex, SchemaKey(replica));
  if (!kept && kept.error().code() != Code::kNotFound) {
    co_return kept.error();
  }
  if (kept && Decoder(*kept).U64() > replica.schema()->version) {
    co_return Status(Code::kSchemaChanged, "the catalog of the leader is behind its log");
  }
  replica.SetSchemaTerm(term);
  co_return Status::Ok();
}

// Nobody could make room in a full partition without that.
bool OnlyDeletes(const std::vector<RowChange>& changes) {
  auto deletes_cell = [](const CellChange& cell) {
    return cell.action == CellAction::kDelete || cell.action == CellAction::kDeleteColumn;
  };
  return std::ranges::all_of(changes, [&](const RowChange& change) {
    switch (change.action) {
      case RowAction::kDeleteRow:
      case RowAction::kDeleteRange:
      case RowAction::kDeletePartition: return true;
      case RowAction::kWrite:
        return !change.marks && std::ranges::all_of(change.cells, deletes_cell);
      default: return false;
    }
  });
}

Status NotATable() {
  return Status(Code::kInvalidArgument, "The container is not a table of Cassandra.");
}

}  // namespace

bool WriteRows::reads() const {
  return !conditions.empty() || derivation != nullptr || std::ranges::any_of(changes, NeedsRow);
}

bool WriteRows::IsOldFor(const Replica& replica, int64_t horizon) const {
  if (horizon == partition::Horizon::kNone) {
    return false;
  }
  // Conditions take the beginning of a millisecond, of this time or a later one.
  return std::ranges::any_of(changes, [&](const auto& change) { return IsOld(change, horizon); }) ||
         (!conditions.empty() && replica.last_time().micros / 1000 * 1000 <= horizon);
}

Task<Result<Replica::Turn>> WriteRows::TakeTurn(Replica& replica, const std::string& prefix,
                                                int64_t& horizon) {
  for (;;) {
    if (!replica.horizon().known()) {
      ORRERY_CO_TRY([[maybe_unused]] int64_t read, co_await replica.horizon().Read());
    }
    // Once more if the horizon has risen, or the term is another, while it waited.
    const bool old = IsOldFor(replica, replica.horizon().known().value_or(INT64_MAX));
    std::vector<Latch> latches{
        {.name = std::hash<std::string_view>()(prefix), .exclusive = reads() || old}};
    if (old) {
      latches.push_back(kWholeRows);
    }
    Result<Replica::Turn> turn = co_await replica.Acquire(*this, std::move(latches));
    const std::optional<int64_t> now = replica.horizon().known();
    if (!turn || (now && (old || !IsOldFor(replica, *now)))) {
      horizon = turn && old ? *now : cql::kNeverWritten;
      co_return turn;
    }
  }
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
    co_return co_await replica.Confirm(turn);
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
  int64_t horizon = cql::kNeverWritten;
  Result<Replica::Turn> turn = co_await TakeTurn(replica, prefix, horizon);
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  if (replica.schema_term() != turn->term) {
    if (Status known = co_await CheckSchema(replica, turn->term); !known.ok()) {
      co_return replica.MakeReply(known, RequestUnits());
    }
  }
  WriteAnswer answer;
  if (replica.Recall(id) != nullptr) {
    // Who asks again does what is left of the batch, too.
    if (derivation != nullptr) {
      auto kept = co_await replica.Read(Space::kIndex, BatchKey(prefix, id));
      answer.batch = kept ? std::move(*kept) : "";
      answer.batch_id = id;
    }
    if (const Replica::Outcome* before = replica.Recall(id)) {
      co_return Repeated(replica, *before, answer);
    }
    co_return replica.MakeReply(Status(Code::kUnknownOutcome, "the outcome is forgotten"), {});
  }

  Evaluation evaluation(replica, *this, std::move(prefix), horizon);
  Reply reply = replica.MakeReply(Status(), RequestUnits());
  if (reads() || horizon != cql::kNeverWritten) {
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
  if (writes && reply.status.ok() && !forced && !OnlyDeletes(changes) &&
      model::MayBeFull(replica, evaluation.growth())) {
    reply.status = co_await model::CheckRoom(replica, evaluation.prefix(), evaluation.growth());
    if (reply.status.code() == Code::kQuotaExceeded &&
        replica.sizes().Doubt(evaluation.prefix(), replica.services().clock.Now())) {
      reply.status = co_await model::CheckRoom(replica, evaluation.prefix(), evaluation.growth());
    }
    if (reply.status.ok() && !evaluation.newest()) {
      reply.status = evaluation.Make();
    }
  }
  if (writes && reply.status.ok()) {
    reply.status = evaluation.AddDerived();
  }
  if (static_cast<const model::Container&>(*replica.schema()).derived != derived) {
    co_return replica.MakeReply(
        Status(Code::kPreconditionFailed, "the indexes or views of the table have changed"), {});
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
  if (derivation != nullptr && !evaluation.batch().empty()) {
    answer.batch = evaluation.batch();
    answer.batch_id = id;
    reply.body = answer.Encode();
  }
  reply.charge += partition::PriceOfCreate(static_cast<size_t>(evaluation.growth()), 0);
  storage::WriteSet set = evaluation.Finish();
  set.result = Remembered(reply, true);
  partition::LogicalSizes& sizes = replica.sizes();
  const int64_t change = set.change.bytes;
  auto ticket = sizes.Begin(evaluation.prefix(), change);
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  sizes.End(evaluation.prefix(), change, ticket, lsn);
  if (!lsn) {
    co_return replica.MakeReply(lsn.error(), partition::PriceOfRefusedWrite());
  }
  evaluation.Committed();
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
  if (batch == storage::OperationId()) {
    if (Status known = co_await CheckSchema(replica, turn->term); !known.ok()) {
      co_return replica.MakeReply(known, RequestUnits());
    }
    std::string version;
    Encoder(version).U64(target.schema_version);
    set.Put(Space::kIndex, SchemaKey(replica), version);
  } else {
    set.frees_space = true;
    set.Delete(Space::kIndex, BatchKey(prefix, batch));
  }
  set.time = replica.NextTime();
  set.id = id;
  set.settled = settled;
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  co_return replica.MakeReply(lsn ? Status() : lsn.error(), RequestUnits());
}

std::vector<FoundBatch> FindBatches(storage::Engine& state, ContainerId container,
                                    const types::EpkRange& range, const std::string& after,
                                    size_t most) {
  constexpr size_t kTail = 1 + 2 * sizeof(uint64_t);
  std::vector<FoundBatch> found;
  const storage::KeySpan span = storage::UniqueSpan(container, range);
  const std::string begin = std::max(span.begin, after.empty() ? after : after + '\0');
  auto at = state.NewIterator(storage::Index(Space::kIndex), begin, span.end);
  for (at->SeekToFirst(); at->Valid() && found.size() < most; at->Next()) {
    std::string_view key = at->key().substr(1);
    FoundBatch each;
    each.key = at->key();
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
  // Nobody may write what it read before.
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, {{.name = kWholeRows.name}});
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
