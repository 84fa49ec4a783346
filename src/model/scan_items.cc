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

types::EpkRange Intersect(const types::EpkRange& a, const types::EpkRange& b) {
  types::EpkRange both{std::max(a.min, b.min), std::min(a.max, b.max)};
  return both;
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

storage::KeySpan LogicalSpan(const Container& container, const ItemAddress& address) {
  std::string prefix = storage::LogicalPartitionPrefix(container.id, address.epk, address.key);
  return {prefix, storage::PrefixEnd(prefix)};
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
                        : storage::ItemSpan(container.id, Intersect(range, replica.range().range)),
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

Task<Reply> DeleteItems::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const Container&>(*schema);
  Walk walk{.span = logical_partition ? LogicalSpan(container, *logical_partition)
                                      : storage::ItemSpan(container.id, replica.range().range),
            .after = after,
            .default_ttl = container.default_ttl,
            .now = replica.wall()};
  auto scan = [&] { return ScanDeletes(replica.state(), walk, !logical_partition); };
  DeleteSlice slice = co_await runtime::OnBlocking(replica.workers(), scan);
  if (!slice.status.ok()) {
    co_return replica.MakeReply(slice.status, RequestUnits());
  }

  std::vector<partition::Latch> latches;
  std::vector<std::pair<std::string, std::string>> found;  // key, logical partition prefix
  for (std::string& key : slice.keys) {
    Result<std::string> stored = co_await ReadValid(replica, key);
    if (!stored && stored.error().code() == Code::kNotFound) {
      continue;
    }
    if (!stored) {
      co_return replica.MakeReply(stored.error(), RequestUnits());
    }
    std::string prefix = key.substr(0, key.size() - IdOf(*stored).size());
    latches.push_back(LogicalPartitionLatch(prefix, !container.unique_keys.empty()));
    latches.push_back(ItemLatch(prefix, IdOf(*stored)));
    found.emplace_back(std::move(key), std::move(prefix));
  }
  Result<Replica::Turn> turn = co_await replica.Acquire(*this, std::move(latches));
  if (!turn) {
    co_return replica.MakeReply(turn.error(), RequestUnits());
  }
  if (replica.watched() && !logical_partition) {
    co_return replica.MakeReply(Status(Code::kUnavailable, "the partition is being split"), {});
  }

  storage::WriteSet set;
  std::map<std::string, int64_t> changes;  // of bytes, by logical partition
  RequestUnits charge;
  for (const auto& [key, prefix] : found) {
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
  if (!set.empty()) {
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
  }
  reply.body = slice.last;
  co_return reply;
}

}  // namespace orrery::model
