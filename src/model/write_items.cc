#include <map>
#include <set>

#include "base/mutants.h"
#include "model/condition.h"
#include "model/container_kind.h"
#include "model/item_access.h"
#include "model/items.h"
#include "model/room.h"
#include "partition/pricing.h"

namespace orrery::model {

using partition::Latch;
using partition::Replica;
using partition::Reply;
using partition::RequestUnits;
using runtime::Task;
using storage::Space;
using types::Value;

namespace {

// In the place of the charge that is remembered: a refusal.
constexpr uint64_t kRefused = ~uint64_t{0};

// Of the operation, and not of who was asked and when.
bool IsAnswer(Code code) {
  switch (code) {
    case Code::kThrottled:
    case Code::kMoved:
    case Code::kSchemaChanged:
    case Code::kNotLeader:
    case Code::kSessionNotReached:
    case Code::kWouldBlock:
    case Code::kTimeout:
    case Code::kUnknownOutcome:
    case Code::kUnavailable:
    case Code::kCorruption:
    case Code::kInternal: return false;
    default: return true;
  }
}

// What the transaction has read and will leave of one item.
struct Slot {
  std::optional<std::string> stored;  // before the transaction; an expired item counts as stored
  bool expired = false;
  std::optional<std::string> now;  // after the steps so far
  bool changed = false;
  size_t written_by = 0;  // the last step that changed it
};

int32_t TtlOf(Value item) {
  Value ttl = types::Member(item, "ttl");
  return ttl.kind() == types::Kind::kNumber && ttl.is_integer()
             ? static_cast<int32_t>(ttl.integer())
             : 0;
}

Value Payload(std::string_view stored) {
  return Value::Object(stored.substr(storage::kItemHeaderBytes));
}
size_t PayloadBytes(std::string_view stored) { return stored.size() - storage::kItemHeaderBytes; }

storage::ItemHeader HeaderOf(std::string_view stored) {
  return storage::DecodeItem(stored)->header;
}

// The number in an item's rid: unique in the container as long as two partitions with the same low
// bits do not create in the same microsecond. 50 bits of time, 10 of the partition.
uint64_t ItemNumber(WallTime time, PartitionId partition) {
  return (static_cast<uint64_t>(time.micros) << 10 | (partition.value() & 1023)) &
         ((1ull << 60) - 1);
}

// The evaluation of one WriteItems: reads and checks, changes slots, prices each step.
class Evaluation {
 public:
  Evaluation(Replica& replica, const Container& container, const WriteItems& operation)
      : replica_(replica),
        container_(container),
        operation_(operation),
        prefix_(storage::LogicalPartitionPrefix(container.id, operation.address.epk,
                                                operation.address.key)) {}

  // Reads what the steps will need.
  Task<Status> Load();
  // Takes the next partition time and runs all steps, without waiting for anything. The first
  // failure, or ok. May be called again.
  Status Run(std::vector<StepResult>& results);
  // Checks the unique keys and adds their changes; on a violation `culprit` is the step to blame.
  Task<Status> CheckUnique(storage::WriteSet& set, size_t* culprit);
  // Whether the partition time of Run is still the newest. It is not if another operation took one
  // while CheckUnique waited; then Run must be called again, so that times follow the order of the
  // log.
  bool newest() const { return replica_.last_time() == last_; }
  // Puts the changes into the set. REQUIRES: newest().
  void Finish(storage::WriteSet& set) const;
  // What the changes add to the logical partition, in bytes; below zero: what they free.
  int64_t Growth() const;
  const std::string& prefix() const { return prefix_; }

 private:
  StepResult RunStep(size_t index);
  StepResult Create(size_t index, Slot& slot);
  StepResult Replace(size_t index, Slot& slot, const types::Document& body,
                     size_t patch_operations);
  StepResult Patch(size_t index, Slot& slot);
  Status CheckEtag(const ItemStep& step, const Slot& slot) const;
  // Each step has a microsecond of its own, so that its etag differs from those before it.
  WallTime TimeOf(size_t index) const {
    return {last_.micros - static_cast<int64_t>(operation_.steps.size() - 1 - index)};
  }

  Replica& replica_;
  const Container& container_;
  const WriteItems& operation_;
  const std::string prefix_;
  std::map<std::string, Slot> slots_;
  WallTime last_;  // partition time of the last step
};

StepResult Refused(Status status) {
  return {.status = std::move(status), .charge = partition::PriceOfRefusedWrite()};
}

Task<Status> Evaluation::Load() {
  for (const ItemStep& step : operation_.steps) {
    auto [at, fresh] = slots_.try_emplace(step.id);
    if (!fresh) {
      continue;
    }
    Slot& slot = at->second;
    Result<std::string> stored = co_await replica_.Read(Space::kItems, prefix_ + step.id);
    if (stored) {
      Result<storage::ItemView> item = storage::DecodeItem(*stored);
      if (!item) {
        co_return item.error();
      }
      slot.expired = item->header.Expired(container_.default_ttl, replica_.wall());
      slot.stored = std::move(*stored);
    } else if (stored.error().code() != Code::kNotFound) {
      co_return stored.error();
    }
  }
  co_return Status::Ok();
}

Status Evaluation::CheckEtag(const ItemStep& step, const Slot& slot) const {
  if (!slot.now) {
    return Status::Ok();
  }
  std::string etag = ItemEtag(HeaderOf(*slot.now));
  bool same = step.if_match.empty() || step.if_match == "*" || step.if_match == etag;
  bool other =
      step.if_none_match.empty() || (step.if_none_match != "*" && step.if_none_match != etag);
  if (same && other) {
    return Status::Ok();
  }
  return Status(Code::kPreconditionFailed, "One of the specified pre-condition is not met.");
}

StepResult Evaluation::Create(size_t index, Slot& slot) {
  const types::Document& body = operation_.steps[index].body;
  WallTime time = TimeOf(index);
  storage::ItemHeader header{
      .time = time, .number = ItemNumber(time, replica_.id()), .ttl = TtlOf(body.root())};
  slot.now = storage::EncodeItem(header, body.bson());
  slot.changed = true;
  slot.written_by = index;
  return {.created = true,
          .charge = partition::PriceOfCreate(body.bson().size(),
                                             container_.index.CountTerms(body.root())),
          .item = *slot.now};
}

StepResult Evaluation::Replace(size_t index, Slot& slot, const types::Document& body,
                               size_t patch_operations) {
  storage::ItemHeader header = HeaderOf(*slot.now);
  IndexPolicy::Change terms = container_.index.CountChanges(Payload(*slot.now), body.root());
  RequestUnits charge = partition::PriceOfPatch(PayloadBytes(*slot.now), body.bson().size(),
                                                terms.removed, terms.added, patch_operations);
  header.time = TimeOf(index);
  header.ttl = TtlOf(body.root());
  slot.now = storage::EncodeItem(header, body.bson());
  slot.changed = true;
  slot.written_by = index;
  return {.charge = charge, .item = *slot.now};
}

StepResult Evaluation::Patch(size_t index, Slot& slot) {
  const ItemStep& step = operation_.steps[index];
  types::Document before = types::Document::Trusted(slot.now->substr(storage::kItemHeaderBytes));
  if (!step.patch.condition.empty()) {
    if (step.patch.condition.size() > kConditionBytesMax) {
      return Refused(
          Status(Code::kInvalidArgument, "The condition of a patch is at most 16 KB long."));
    }
    auto condition = Compile(step.patch.condition);
    if (!condition) {
      return Refused(condition.error());
    }
    types::Document seen = NamesSystemProperty(step.patch.condition)
                               ? WithSystemProperties(container_, *slot.now)
                               : before;
    Result<bool> holds = (*condition)->Holds(seen.root());
    if (!holds) {
      return Refused(holds.error());
    }
    if (!*holds) {
      return Refused(
          Status(Code::kConditionFalse, "One of the specified pre-condition is not met."));
    }
  }
  auto after = ApplyPatch(step.patch, before, container_.key_paths);
  if (!after) {
    return Refused(after.error());
  }
  if (Status ttl = CheckTtl(after->Get("ttl")); !ttl.ok()) {
    return Refused(std::move(ttl));
  }
  if (after->bson().size() > kItemBytesMax) {
    return Refused(Status(Code::kTooLarge, "Request size is too large"));
  }
  return Replace(index, slot, *after, step.patch.operations.size());
}

StepResult Evaluation::RunStep(size_t index) {
  const ItemStep& step = operation_.steps[index];
  Slot& slot = slots_.at(step.id);
  bool make = step.kind == StepKind::kCreate || (step.kind == StepKind::kUpsert && !slot.now);
  if (make && slot.now) {
    return Refused(
        Status(Code::kAlreadyExists, "Entity with the specified id already exists in the system."));
  }
  if (make) {
    return Create(index, slot);
  }
  if (!slot.now) {
    return Refused(ItemNotFound());
  }
  if (step.kind == StepKind::kRead) {
    const partition::ReadPrice price = partition::PriceOfLevel(operation_.level);
    if (!step.if_none_match.empty() &&
        (step.if_none_match == "*" || step.if_none_match == ItemEtag(HeaderOf(*slot.now)))) {
      return {.status = Status(Code::kNotModified), .charge = partition::PriceOfMiss(price)};
    }
    return {.charge = partition::PriceOfRead(PayloadBytes(*slot.now), price), .item = *slot.now};
  }
  if (Status fits = CheckEtag(step, slot); !fits.ok()) {
    return Refused(std::move(fits));
  }
  if (step.kind == StepKind::kPatch) {
    return Patch(index, slot);
  }
  if (step.kind != StepKind::kDelete) {
    return Replace(index, slot, step.body, 0);
  }
  RequestUnits charge = partition::PriceOfDelete(PayloadBytes(*slot.now),
                                                 container_.index.CountTerms(Payload(*slot.now)));
  slot.now.reset();
  slot.changed = true;
  slot.written_by = index;
  return {.charge = charge};
}

// Old values leave before new ones come, so that items of one transaction may exchange them.
Task<Status> Evaluation::CheckUnique(storage::WriteSet& set, size_t* culprit) {
  std::map<std::string, std::string> entries;  // entry -> id that holds it after the transaction
  std::set<std::string> gone;
  for (const auto& [id, slot] : slots_) {
    if (!slot.changed || !slot.stored) {
      continue;
    }
    for (const std::string& entry : UniqueEntries(container_, prefix_, Payload(*slot.stored))) {
      // An expired item may have lost its value to another one.
      Result<bool> held = co_await HoldsUnique(replica_, entry, id);
      if (!held) {
        co_return held.error();
      }
      if (*held) {
        gone.insert(entry);
      }
    }
  }
  for (const auto& [id, slot] : slots_) {
    if (!slot.changed || !slot.now) {
      continue;
    }
    for (const std::string& entry : UniqueEntries(container_, prefix_, Payload(*slot.now))) {
      auto [holder_now, fresh] = entries.emplace(entry, id);
      bool taken = !fresh;
      if (!taken && !gone.contains(entry)) {
        Result<std::string> holder = co_await replica_.Read(Space::kIndex, entry);
        if (holder) {
          // An expired item that is still stored does not hold its values.
          Result<std::string> live = co_await ReadLive(replica_, container_, prefix_ + *holder);
          if (!live && live.error().code() != Code::kNotFound) {
            co_return live.error();
          }
          taken = live.has_value();
        } else if (holder.error().code() != Code::kNotFound) {
          co_return holder.error();
        }
      }
      if (taken) {
        // Of two steps of this transaction the later one.
        *culprit = std::max(slot.written_by, slots_.at(holder_now->second).written_by);
        co_return Status(Code::kUniqueViolated, "Unique index constraint violation.");
      }
    }
  }
  for (const std::string& entry : gone) {
    if (!entries.contains(entry)) {
      set.Delete(Space::kIndex, entry);
    }
  }
  for (const auto& [entry, id] : entries) {
    set.Put(Space::kIndex, entry, id);
  }
  co_return Status::Ok();
}

void Evaluation::Finish(storage::WriteSet& set) const {
  set.time = last_;
  set.id = operation_.id;
  set.settled = operation_.settled;
  for (const auto& [id, slot] : slots_) {
    if (!slot.changed || (!slot.stored && !slot.now)) {
      continue;
    }
    std::string key = prefix_ + id;
    if (slot.stored) {
      set.change.bytes -= static_cast<int64_t>(key.size() + slot.stored->size());
      set.change.items -= 1;
    }
    if (slot.now) {
      set.PutItem(key, *slot.now);
      set.change.bytes += static_cast<int64_t>(key.size() + slot.now->size());
      set.change.items += 1;
    } else {
      set.Delete(Space::kItems, key);
    }
  }
  set.frees_space = set.change.bytes < 0;
}

int64_t Evaluation::Growth() const {
  int64_t growth = 0;
  for (const auto& [id, slot] : slots_) {
    auto key = static_cast<int64_t>(prefix_.size() + id.size());
    if (slot.changed) {
      growth += slot.now ? key + static_cast<int64_t>(slot.now->size()) : 0;
      growth -= slot.stored ? key + static_cast<int64_t>(slot.stored->size()) : 0;
    }
  }
  return growth;
}

// The step to blame when a transaction does not fit.
size_t LastGrowing(const std::vector<ItemStep>& steps) {
  size_t last = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::kDelete && steps[i].kind != StepKind::kRead) {
      last = i;
    }
  }
  return last;
}

// The failure of one step is the failure of all: the others are reported as undone.
void Undo(std::vector<StepResult>& results, size_t steps, size_t culprit) {
  results.resize(steps);
  for (size_t i = 0; i < steps; ++i) {
    if (i != culprit) {
      RequestUnits charge = results[i].charge;
      results[i] = {.status = Status(Code::kUnavailable), .undone = true, .charge = charge};
    }
  }
}

Status Evaluation::Run(std::vector<StepResult>& results) {
  const size_t count = operation_.steps.size();
  last_ = replica_.NextTime(static_cast<int64_t>(count));
  results.clear();
  for (auto& [id, slot] : slots_) {
    slot.now = slot.expired ? std::nullopt : slot.stored;
    slot.changed = false;
  }
  size_t result_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    StepResult& result = results.emplace_back(RunStep(i));
    result_bytes += result.item.size();
    if (result_bytes > kResultBytesMax && count > 1) {
      result.status = Status(Code::kTooLarge, "The results of the batch are too large.");
    }
    if (!result.status.ok() && result.status.code() != Code::kNotModified) {
      Status failure = result.status;
      Undo(results, count, i);
      return failure;
    }
  }
  return Status::Ok();
}

// A single write of an item without unique keys shares its logical partition; everything else has
// it alone.
std::vector<Latch> LatchesOf(const Container& container, const WriteItems& operation) {
  std::string prefix =
      storage::LogicalPartitionPrefix(container.id, operation.address.epk, operation.address.key);
  if (operation.steps.size() == 1 && container.unique_keys.empty()) {
    return {LogicalPartitionLatch(prefix, false), ItemLatch(prefix, operation.steps[0].id)};
  }
  return {LogicalPartitionLatch(prefix, true)};
}

}  // namespace

partition::Latch LogicalPartitionLatch(std::string_view prefix, bool exclusive) {
  return {.name = std::hash<std::string_view>()(prefix), .exclusive = exclusive};
}

partition::Latch ItemLatch(std::string_view prefix, std::string_view id) {
  std::hash<std::string_view> hash;
  return {.name = hash(id) ^ (hash(prefix) * 31 + 7)};
}

std::set<std::string> UniqueEntries(const Container& container, std::string_view prefix,
                                    Value item) {
  std::set<std::string> entries;
  for (size_t policy = 0; policy < container.unique_keys.size(); ++policy) {
    std::string entry = storage::UniquePrefix(prefix);
    entry.push_back(static_cast<char>(policy));
    for (const auto& path : container.unique_keys[policy]) {
      Value value = item;
      for (const std::string& name : path) {
        value = types::Member(value, name);
      }
      // A missing path counts as null, so two items without it collide, as in the service.
      std::string json = "null";
      if (value.defined()) {
        json.clear();
        types::AppendJson(value, json);
      }
      types::AppendOrderedBytes(json, entry);
    }
    entries.insert(std::move(entry));
  }
  return entries;
}

RequestUnits WriteItems::least_price() const {
  RequestUnits least;
  for (const ItemStep& step : steps) {
    least += step.kind == StepKind::kRead ? partition::LeastPriceOfRead()
                                          : partition::LeastPriceOfWrite(step.body.bson().size());
  }
  return least;
}

// What is remembered of a reply: without the bodies of items, which a repetition brings along
// again.
std::string WriteItems::Remembered(const Reply& reply, const std::vector<StepResult>& results) {
  std::vector<StepResult> heads = results;
  for (StepResult& head : heads) {
    head.item.resize(reply.status.ok() ? std::min(head.item.size(), storage::kItemHeaderBytes) : 0);
  }
  std::string bytes;
  Encoder encoder(bytes);
  if (!reply.status.ok()) {
    encoder.U64(kRefused);
    encoder.U8(static_cast<uint8_t>(reply.status.code()));
    encoder.Bytes(reply.status.message());
  }
  encoder.U64(static_cast<uint64_t>(reply.charge.hundredths()));
  encoder.Raw(EncodeStepResults(heads));
  return bytes;
}

Task<Reply> WriteItems::Repeat(Replica& replica, const Container& container,
                               const Replica::Outcome& outcome) {
  Decoder decoder(outcome.result);
  uint64_t charge = decoder.U64();
  Status refusal;
  if (charge == kRefused) {
    const uint8_t code = std::min(decoder.U8(), static_cast<uint8_t>(Code::kInternal));
    refusal = Status(static_cast<Code>(code), std::string(decoder.Bytes()));
    charge = decoder.U64();
  }
  Reply reply = replica.MakeReply(refusal, RequestUnits::Hundredths(static_cast<int64_t>(charge)));
  reply.lsn = outcome.lsn;
  Result<std::vector<StepResult>> results = DecodeStepResults(decoder.Rest());
  if (!results || (refusal.ok() && results->size() != steps.size())) {
    reply.status = Status(Code::kUnknownOutcome, "the remembered outcome is malformed");
    co_return reply;
  }
  if (!refusal.ok()) {
    reply.body = EncodeStepResults(*results);
    co_return reply;
  }
  std::string prefix = storage::LogicalPartitionPrefix(container.id, address.epk, address.key);
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string& item = (*results)[i].item;
    if (item.empty()) {
      continue;
    }
    if (steps[i].kind == StepKind::kPatch || steps[i].kind == StepKind::kRead) {
      item = (co_await ReadLive(replica, container, prefix + steps[i].id)).value_or(std::string());
    } else {
      item += steps[i].body.bson();
    }
  }
  reply.body = EncodeStepResults(*results);
  co_return reply;
}

Task<Status> WriteItems::Refuse(Replica& replica, const Replica::Turn& turn, const Reply& reply,
                                const std::vector<StepResult>& results) {
  if (Active(Mutant::kBareRefusal)) {
    co_return Status::Ok();
  }
  if (!again || settled == 0 || !IsAnswer(reply.status.code()) || Active(Mutant::kRefuseLightly)) {
    // It says something about the data: it must not come from an old leader.
    co_return co_await replica.Confirm(turn);
  }
  storage::WriteSet set;
  set.id = id;
  set.settled = settled;
  set.time = replica.NextTime();
  set.result = Remembered(reply, results);
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), turn);
  co_return lsn ? Status::Ok() : lsn.error();
}

Task<Reply> WriteItems::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const Container&>(*schema);
  if (Status reached = CheckSession(replica, session); !reached.ok()) {
    co_return replica.MakeReply(std::move(reached), partition::PriceOfRefusedWrite());
  }
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, LatchesOf(container, *this));
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  if (const Replica::Outcome* before = replica.Recall(id)) {
    co_return co_await Repeat(replica, container, Replica::Outcome(*before));
  }

  Evaluation evaluation(replica, container, *this);
  Reply reply = replica.MakeReply(co_await evaluation.Load(), RequestUnits());
  std::vector<StepResult> results;
  storage::WriteSet set;
  if (reply.status.ok()) {
    reply.status = evaluation.Run(results);
  }
  if (reply.status.ok() && !container.unique_keys.empty()) {
    size_t culprit = 0;
    reply.status = co_await evaluation.CheckUnique(set, &culprit);
    if (!reply.status.ok()) {
      results[culprit].status = reply.status;
      Undo(results, steps.size(), culprit);
    }
  }
  const int64_t growth = reply.status.ok() ? evaluation.Growth() : 0;
  if (growth > 0 && MayBeFull(replica, growth)) {
    reply.status = co_await CheckRoom(replica, evaluation.prefix(), growth);
    if (!reply.status.ok()) {
      size_t culprit = LastGrowing(steps);
      results[culprit].status = reply.status;
      Undo(results, steps.size(), culprit);
    }
  }
  if (reply.status.ok() && !evaluation.newest()) {
    reply.status = evaluation.Run(results);
  }
  for (const StepResult& result : results) {
    reply.charge += result.charge;
  }
  if (reply.status.ok()) {
    evaluation.Finish(set);
    if (set.bytes() > kWriteSetBytesMax) {
      reply.status = Status(Code::kTooLarge, "The changes of the batch are too large.");
      results.clear();
    }
  }
  reply.body = EncodeStepResults(results);
  if (!reply.status.ok()) {
    reply.charge = std::max(reply.charge, partition::PriceOfRefusedWrite());
    if (Status current = co_await Refuse(replica, *turn, reply, results); !current.ok()) {
      reply.status = current;
    }
    reply.lsn = replica.applied();  // by the latches, what was seen is as it is there
    co_return reply;
  }
  if (!set.empty()) {
    set.result = Remembered(reply, results);
    partition::LogicalSizes& sizes = replica.sizes();
    auto ticket = sizes.Begin(evaluation.prefix(), growth);
    Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
    sizes.End(evaluation.prefix(), growth, ticket, lsn);
    if (!lsn) {
      co_return replica.MakeReply(lsn.error(), partition::PriceOfRefusedWrite());
    }
    reply.lsn = *lsn;
  } else if (level <= partition::ReadLevel::kBounded) {
    if (Status current = co_await replica.Confirm(*turn, level); !current.ok()) {
      co_return replica.MakeReply(std::move(current), partition::PriceOfRefusedWrite());
    }
    reply.lsn = replica.applied();  // by the latches, what was read is as it is there
  }
  co_return reply;
}

}  // namespace orrery::model
