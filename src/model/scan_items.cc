// Operations that walk over many items: pages of a feed, and deletes of many. The walking is done
// by blocking threads, in slices with limits; what was found is looked at again under latches
// before it is deleted.
#include <map>

#include "model/condition.h"
#include "model/item_access.h"
#include "model/items.h"

namespace orrery::model {

using partition::Replica;
using partition::Reply;
using partition::RequestUnits;
using runtime::Task;
using storage::Space;
using types::Value;

namespace {

constexpr Duration kFilterTime = std::chrono::milliseconds(100);
constexpr size_t kFeedScannedMax = 10'000;
constexpr size_t kFeedScannedBytesMax = 16 << 20;

struct Walk {
  storage::KeySpan span;
  std::string after;
  std::optional<int32_t> default_ttl;
  WallTime now;
};

// `after` may come from a client: it never leads out of the span.
std::string StartOf(const Walk& walk) {
  return walk.after.empty() ? walk.span.begin : std::max(walk.span.begin, walk.after + '\0');
}

struct FeedSlice {
  ReadFeed::Page page;
  size_t scanned_bytes = 0;
  size_t scanned = 0;
  Status status;
};

// A filter of items; null condition: all.
struct Filter {
  const Container& container;
  std::unique_ptr<Condition> condition;
  bool system_properties = false;

  Result<bool> Holds(std::string_view stored, const storage::ItemView& item) const {
    if (condition == nullptr) {
      return true;
    }
    return system_properties ? condition->Holds(WithSystemProperties(container, stored).root())
                             : condition->Holds(Value::Object(item.payload));
  }
};

FeedSlice ScanFeed(storage::Engine& state, const Walk& walk, size_t items_max, const Filter& filter,
                   const Clock& clock) {
  // A filter may be slow: others wait for this thread.
  const Instant end = clock.Now() + kFilterTime;
  FeedSlice slice;
  auto at = state.NewIterator(storage::Index(Space::kItems), StartOf(walk), walk.span.end);
  size_t page_bytes = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    bool full = slice.page.items.size() >= items_max || page_bytes >= kPageBytesMax ||
                slice.scanned >= kFeedScannedMax || slice.scanned_bytes >= kFeedScannedBytesMax ||
                (filter.condition != nullptr && clock.Now() >= end);
    if (full) {
      return slice;
    }
    auto item = storage::DecodeItem(at->value());
    if (!item) {
      slice.status = item.error();
      return slice;
    }
    slice.page.last = at->key();
    ++slice.scanned;
    if (item->header.Expired(walk.default_ttl, walk.now)) {
      continue;
    }
    slice.scanned_bytes += item->payload.size();
    Result<bool> holds = filter.Holds(at->value(), *item);
    if (!holds) {
      slice.status = holds.error();
      return slice;
    }
    if (*holds) {
      page_bytes += at->value().size();
      slice.page.items.emplace_back(at->value());
    }
  }
  slice.status = at->status();
  slice.page.last.clear();
  return slice;
}

struct DeleteSlice {
  std::vector<std::string> keys;
  std::string last;
  Status status;
};

DeleteSlice ScanDeletes(storage::Engine& state, const Walk& walk, bool only_expired) {
  DeleteSlice slice;
  size_t scanned = 0;
  auto at = state.NewIterator(storage::Index(Space::kItems), StartOf(walk), walk.span.end);
  for (at->SeekToFirst(); at->Valid(); at->Next(), ++scanned) {
    if (slice.keys.size() >= DeleteItems::kDeletesMax || scanned >= DeleteItems::kScannedMax) {
      return slice;
    }
    auto item = storage::DecodeItem(at->value());
    if (!item) {
      slice.status = item.error();
      return slice;
    }
    slice.last = at->key();
    if (!only_expired || item->header.Expired(walk.default_ttl, walk.now)) {
      slice.keys.emplace_back(at->key());
    }
  }
  slice.status = at->status();
  slice.last.clear();
  return slice;
}

std::string_view IdOf(std::string_view stored) {
  Value id = types::Member(Value::Object(stored.substr(storage::kItemHeaderBytes)), "id");
  return id.kind() == types::Kind::kString ? id.string() : std::string_view();
}

// An item whose header is sound.
Task<Result<std::string>> ReadValid(Replica& replica, const std::string& key) {
  Result<std::string> stored = co_await replica.Read(Space::kItems, key);
  if (stored) {
    ORRERY_CO_TRY([[maybe_unused]] storage::ItemView item, storage::DecodeItem(*stored));
  }
  co_return stored;
}

struct ToDelete {
  std::string key;
  std::string prefix;  // of its logical partition
};

// Those that are still there, and the latches that a delete of them needs.
Task<Result<std::vector<ToDelete>>> FindDeletes(Replica& replica, const Container& container,
                                                std::vector<std::string> keys,
                                                std::vector<partition::Latch>& latches) {
  std::vector<ToDelete> found;
  for (std::string& key : keys) {
    Result<std::string> stored = co_await ReadValid(replica, key);
    if (!stored && stored.error().code() == Code::kNotFound) {
      continue;
    }
    if (!stored) {
      co_return Error(stored.error());
    }
    std::string prefix = key.substr(0, key.size() - IdOf(*stored).size());
    latches.push_back(LogicalPartitionLatch(prefix, !container.unique_keys.empty()));
    latches.push_back(ItemLatch(prefix, IdOf(*stored)));
    found.push_back({std::move(key), std::move(prefix)});
  }
  co_return found;
}

storage::KeySpan LogicalSpan(const Container& container, const ItemAddress& address) {
  std::string prefix = storage::LogicalPartitionPrefix(container.id, address.epk, address.key);
  return {prefix, storage::PrefixEnd(prefix)};
}

// The reply to a delete that was already done.
Reply RepeatDelete(const Replica& replica, const Replica::Outcome& outcome) {
  Decoder decoder(outcome.result);
  Reply reply =
      replica.MakeReply(Status(), RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64())));
  reply.lsn = outcome.lsn;
  reply.body = decoder.Bytes();
  if (!decoder.done()) {
    reply.status = Status(Code::kUnknownOutcome, "the remembered outcome is malformed");
  }
  return reply;
}

}  // namespace

Task<Reply> ReadFeed::Run(Replica& replica) {
  const partition::ReadPrice price = partition::PriceOfLevel(level);
  auto schema = replica.schema();
  const auto& container = static_cast<const Container&>(*schema);
  if (Status reached = CheckSession(replica, session); !reached.ok()) {
    co_return replica.MakeReply(std::move(reached), partition::PriceOfMiss(price));
  }
  Filter only{.container = container, .system_properties = NamesSystemProperty(filter)};
  if (!filter.empty()) {
    auto compiled = Compile(filter, parameters.Get("v"));
    if (!compiled) {
      co_return replica.MakeReply(compiled.error(), partition::PriceOfMiss(price));
    }
    only.condition = std::move(*compiled);
  }
  Walk walk{.span = only_key
                        ? LogicalSpan(container, {.epk = range.min, .key = *only_key})
                        : storage::ItemSpan(container.id, range.Intersect(replica.range().range)),
            .after = after,
            .default_ttl = container.default_ttl,
            .now = replica.wall()};
  Lsn lsn = replica.applied();
  auto scan = [&] {
    return ScanFeed(replica.state(), walk, items_max, only, replica.services().clock);
  };
  FeedSlice slice = co_await runtime::OnBlocking(replica.workers(), scan);
  Reply reply = replica.MakeReply(
      slice.status, partition::PriceOfFeed(slice.scanned, slice.scanned_bytes, price));
  reply.lsn = lsn;
  reply.body = slice.page.Encode();
  co_return reply;
}

RequestUnits DeleteItems::least_price() const {
  // Expired items are on nobody's account, a logical partition is on its owner's.
  return logical_partition ? partition::LeastPriceOfWrite(0) : RequestUnits();
}

// A late try would delete what was made since. What has expired is looked at again anyway.
void DeleteItems::Remember(const Reply& reply, storage::WriteSet& set) const {
  if (!logical_partition) {
    return;
  }
  set.id = id;
  set.settled = settled;
  Encoder encoder(set.result);
  encoder.U64(static_cast<uint64_t>(reply.charge.hundredths()));
  encoder.Bytes(reply.body);
}

Task<Reply> DeleteItems::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const Container&>(*schema);
  Walk walk{.span = logical_partition ? LogicalSpan(container, *logical_partition)
                                      : storage::ItemSpan(container.id, replica.range().range),
            .after = after,
            .default_ttl = container.default_ttl,
            .now = replica.wall()};
  Result<Replica::Turn> turn;
  if (logical_partition) {
    // Before it is looked at: an earlier try has come to its end, and so have writes to it.
    std::vector<partition::Latch> all{LogicalPartitionLatch(walk.span.begin, true)};
    turn = co_await replica.Acquire(*this, std::move(all));
    if (!turn) {
      co_return replica.MakeReply(turn.error(), RequestUnits());
    }
    if (const Replica::Outcome* before = replica.Recall(id)) {
      co_return RepeatDelete(replica, *before);
    }
  }
  auto scan = [&] { return ScanDeletes(replica.state(), walk, !logical_partition); };
  DeleteSlice slice = co_await runtime::OnBlocking(replica.workers(), scan);
  std::vector<partition::Latch> latches;
  Result<std::vector<ToDelete>> found = Error(slice.status);
  if (slice.status.ok()) {
    found = co_await FindDeletes(replica, container, std::move(slice.keys), latches);
  }
  if (!found) {
    co_return replica.MakeReply(found.error(), RequestUnits());
  }
  if (!logical_partition) {
    turn = co_await replica.Acquire(*this, std::move(latches));
    if (!turn) {
      co_return replica.MakeReply(turn.error(), RequestUnits());
    }
    if (replica.watched()) {
      co_return replica.MakeReply(Status(Code::kUnavailable, "the partition is being split"), {});
    }
  }

  storage::WriteSet set;
  std::map<std::string, int64_t> changes;  // of bytes, by logical partition
  RequestUnits charge;
  for (const auto& [key, prefix] : *found) {
    Result<std::string> stored = co_await ReadValid(replica, key);
    if (!stored && stored.error().code() != Code::kNotFound) {
      co_return replica.MakeReply(stored.error(), RequestUnits());
    }
    if (!stored || (!logical_partition && !storage::DecodeItem(*stored)->header.Expired(
                                              container.default_ttl, replica.wall()))) {
      continue;  // somebody was faster
    }
    Value item = Value::Object(std::string_view(*stored).substr(storage::kItemHeaderBytes));
    charge += partition::PriceOfDelete(item.bson().size(), container.index.CountTerms(item));
    set.Delete(Space::kItems, key);
    for (const std::string& entry : UniqueEntries(container, prefix, item)) {
      Result<bool> held = co_await HoldsUnique(replica, entry, IdOf(*stored));
      if (!held) {
        co_return replica.MakeReply(held.error(), RequestUnits());
      }
      if (*held) {
        set.Delete(Space::kIndex, entry);
      }
    }
    auto bytes = static_cast<int64_t>(key.size() + stored->size());
    changes[prefix] -= bytes;
    set.change.bytes -= bytes;
    set.change.items -= 1;
  }
  Reply reply = replica.MakeReply(Status(), charge);
  reply.body = slice.last;
  // If another try may still come, also that there was nothing to delete is remembered.
  if (!set.empty() || (logical_partition && again && settled > 0)) {
    Remember(reply, set);
    set.frees_space = true;
    set.time = replica.NextTime();
    Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
    for (const auto& [prefix, change] : changes) {
      replica.sizes().End(prefix, change, {}, lsn);
    }
    if (!lsn) {
      co_return replica.MakeReply(lsn.error(), RequestUnits());
    }
    reply.lsn = *lsn;
  } else if (logical_partition) {
    // That nothing is there must not come from an old leader.
    if (Status current = co_await replica.Confirm(*turn); !current.ok()) {
      co_return replica.MakeReply(std::move(current), RequestUnits());
    }
    reply.lsn = replica.applied();  // by the latch, there is nothing there either
  }
  co_return reply;
}

}  // namespace orrery::model
