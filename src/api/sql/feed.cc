// The read feed, and queries that filter it.
#include "api/sql/feed.h"

#include <charconv>

#include "rows/rows.h"
#include "storage/keys.h"

namespace orrery::api::sql {

using model::Container;
using partition::Reply;
using runtime::Task;
using types::EpkRange;
using types::Kind;
using types::Value;

namespace {

constexpr uint32_t kPageItems = 1000;
constexpr uint32_t kPageItemsMost = 10'000;

Result<uint32_t> PageSize(std::string_view text) {
  if (text.empty() || text == "0") {
    return kPageItems;
  }
  if (text == "-1") {
    return kPageItemsMost;
  }
  uint32_t size = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    return kPageItemsMost;
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error(Code::kInvalidArgument,
                 "The x-ms-max-item-count '" + std::string(text) + "' is not a page size.");
  }
  return std::min(size, kPageItemsMost);
}

// The key comes from a client: of a table it must be one, of items any bytes will do.
bool IsRowKey(std::string_view key) {
  std::string partition_key;
  std::string_view row_key;
  return key.empty() || rows::SplitKey(key, &partition_key, &row_key);
}

Result<Position> ReadContinuation(std::string_view text, const Container& container,
                                  const EpkRange& whole) {
  auto bad = [] { return Error(Code::kInvalidArgument, "Invalid Continuation Token"); };
  Result<types::Document> parsed = types::ParseJsonValue(text);
  if (!parsed) {
    return bad();
  }
  Value first = types::Element(parsed->Get("v"), 0);
  Value range = types::Member(first, "range");
  Value token = types::Member(first, "token");
  Value min = types::Member(range, "min");
  Value max = types::Member(range, "max");
  Position position;
  if (token.kind() != Kind::kString || min.kind() != Kind::kString || max.kind() != Kind::kString ||
      !FromBase64(token.string(), &position.after) || !FromHex(min.string(), &position.range.min) ||
      !FromHex(max.string(), &position.range.max) || position.range.min < whole.min ||
      position.range.max > whole.max || (container.is_table() && !IsRowKey(position.after))) {
    return bad();
  }
  position.after_rows = types::Member(first, "rows").defined() ? 1 : 0;
  return position;
}

std::string WriteContinuation(const Position& position) {
  return "[{\"token\":\"" + ToBase64(position.after) +
         (position.after_rows > 0 ? "\",\"rows\":1,\"range" : "\",\"range") + "\":{\"min\":\"" +
         ToHex(position.range.min) + "\",\"max\":\"" + ToHex(position.range.max) + "\"}}]";
}

// Which part of the ring the request is about.
Result<Position> WholeOf(const Call& call, const Container& container, Feed& feed) {
  Position whole;
  std::string_view key = call.Header("x-ms-documentdb-partitionkey");
  if (container.is_table()) {
    ORRERY_TRY(feed.table, TableView::Of(call.catalog(), container));
  }
  if (!key.empty() && container.is_table()) {
    ORRERY_TRY(feed.only_rows, cql::PartitionKeyFromJson(feed.table->table, key));
    whole.range.min = types::CassandraEpk(*feed.only_rows);
    whole.range.max = whole.range.min + '\xFF';
    return whole;
  }
  if (!key.empty()) {
    ORRERY_TRY(types::PartitionKey parsed, types::PartitionKey::FromJson(key));
    bool prefix = container.key.kind == types::KeyKind::kMultiHash && !parsed.components.empty() &&
                  parsed.components.size() < container.key.paths.size();
    if (prefix) {
      whole.range = types::PrefixRange(container.key, parsed);
    } else {
      ORRERY_TRY(model::ItemAddress address, model::AddressOf(container, parsed));
      whole.range = {.min = address.epk, .max = address.epk + std::string(1, '\xFF')};
      feed.only_key = std::move(address.key);
    }
    return whole;
  }
  if (std::string_view id = call.Header("x-ms-documentdb-partitionkeyrangeid"); !id.empty()) {
    // A retired id is served by its children, and an unknown one (of a container that was made
    // anew) is not answered with 410: an SDK would ask again for ever.
    const partition::PartitionRange* range = container.map->FindId(call.NamedRange());
    if (range == nullptr) {
      return Error(Code::kOwnerNotFound,
                   "There is no partition key range '" + std::string(id) + "'.");
    }
    whole.range = range->range;
  }
  std::string min;
  std::string max;
  if (!FromHex(call.Header("x-ms-start-epk"), &min) ||
      !FromHex(call.Header("x-ms-end-epk"), &max)) {
    return Error(Code::kInvalidArgument, "The EPK range of the request is not in hex.");
  }
  whole.range.min = std::max(whole.range.min, min);
  if (!max.empty()) {
    whole.range.max = std::min(whole.range.max, max);
  }
  return whole;
}

Result<Feed> ReadRequest(const Call& call, const Container& container) {
  Feed feed;
  ORRERY_TRY(feed.position, WholeOf(call, container, feed));
  ORRERY_TRY(feed.items_max, PageSize(call.Header("x-ms-max-item-count")));
  ORRERY_TRY(feed.level, call.Level());
  if (std::string_view continuation = call.Header("x-ms-continuation"); !continuation.empty()) {
    ORRERY_TRY(feed.position, ReadContinuation(continuation, container, feed.position.range));
  }
  return feed;
}

struct QueryRequest {
  std::string text;
  types::Document parameters;  // its member "v"
};

Result<QueryRequest> ReadQuery(const Call& call) {
  if (call.Header("content-type").starts_with("application/sql")) {
    return QueryRequest{.text = std::string(call.request.body)};
  }
  ORRERY_TRY(types::Document body, types::Document::FromJson(call.request.body));
  Value text = body.Get("query");
  if (text.kind() != Kind::kString) {
    return Error(Code::kInvalidArgument, "The body of a query must hold its text as 'query'.");
  }
  types::DocumentBuilder builder;
  builder.Append("v", body.Get("parameters"));
  return QueryRequest{.text = std::string(text.string()), .parameters = builder.Finish()};
}

// Of items.
class ItemReader final : public PageReader {
 public:
  using PageReader::PageReader;

 private:
  std::unique_ptr<partition::Operation> NextRead() const override;
  Task<Status> Take(const Reply& reply, const partition::PartitionRange& range) override;
};

std::unique_ptr<partition::Operation> ItemReader::NextRead() const {
  auto read = std::make_unique<model::ReadFeed>();
  read->range = feed_.position.range;
  read->only_key = feed_.only_key;
  read->after = feed_.position.after;
  read->items_max = feed_.items_max - static_cast<uint32_t>(count_);
  read->filter = feed_.filter;
  read->parameters = feed_.parameters;
  return read;
}

Task<Status> ItemReader::Take(const Reply& reply, const partition::PartitionRange& range) {
  auto page = model::ReadFeed::Page::Decode(reply.body);
  if (!page) {
    co_return page.error();
  }
  for (const std::string& item : page->items) {
    ORRERY_CO_RETURN_IF_ERROR(AppendItem(*container_, item, NextDocument()));
  }
  co_return MoveBehind(std::move(page->last), range);
}

std::unique_ptr<PageReader> ReaderOf(Call& call, std::shared_ptr<const Container> container,
                                     Feed feed) {
  if (container->is_table()) {
    return MakeRowReader(call, std::move(container), std::move(feed));
  }
  return std::make_unique<ItemReader>(call, std::move(container), std::move(feed));
}

}  // namespace

Task<Status> PageReader::Read() {
  // Bounded: each turn reads a slice of a partition or leaves one behind, and the deadline ends a
  // page early.
  deadline_ = call_.clock().Now() + std::chrono::seconds(2);
  partition::Ring ring = container_->ring();
  auto wide = [this] { return seen_.size() >= kPagePartitionsMax; };
  for (int moved = 0; !Full() && !Exhausted() && !Late() && !wide();) {
    const partition::PartitionRange& range = ring.map->Find(feed_.position.range.min);
    std::unique_ptr<partition::Operation> read = NextRead();
    read->level = feed_.level;
    read->claim = call_.claim;
    read->tokens = call_.tokens;
    Reply reply = co_await call_.router().ExecuteAt(ring, range, *read);
    Code code = reply.status.code();
    if (code == Code::kMoved || code == Code::kSchemaChanged) {
      auto next = co_await call_.router().LookAgain(ring, ++moved);
      if (!next) {
        co_return Status(Code::kUnavailable, "The partitions of the container are being changed.");
      }
      ring = std::move(*next);
      if (ring.map == nullptr) {
        co_return Status(Code::kOwnerNotFound, "Owner resource does not exist");
      }
      continue;
    }
    charge_ += reply.charge;
    seen_.Add(reply);
    last_ = {.status = reply.status, .lsn = reply.lsn, .partition = reply.partition};
    if (!reply.status.ok()) {
      last_.body = std::move(reply.body);
      // What was read before is not thrown away: the client comes back for the rest.
      co_return progressed_&& code == Code::kThrottled ? Status::Ok() : reply.status;
    }
    ORRERY_CO_RETURN_IF_ERROR(co_await Take(reply, range));
    progressed_ = true;
  }
  co_return Status::Ok();
}

Status PageReader::MoveBehind(std::string key, const partition::PartitionRange& range) {
  Position& position = feed_.position;
  const bool one = feed_.only_key || feed_.only_rows;
  position.after = std::move(key);
  if (position.after.empty()) {
    position.range.min = one ? position.range.max : range.range.max;
  } else if (!one && !storage::ReadItemEpk(position.after, &position.range.min)) {
    // The rest begins with the last item's place: it stays true when the partition is split.
    return Status(Code::kInternal, "the key of an item is malformed");
  }
  return Status::Ok();
}

void PageReader::Answer() {
  std::string& out = call_.reply.body;
  out = "{\"_rid\":\"" + container_->rid + "\",\"Documents\":[";
  out += documents_;
  out += "],\"_count\":" + std::to_string(count_) + "}";
  call_.reply.Add("x-ms-item-count", std::to_string(count_));
  if (!Exhausted()) {
    call_.reply.Add("x-ms-continuation", WriteContinuation(feed_.position));
  }
  call_.Succeed(200);
}

namespace {

Task<> AnswerFeed(Call& call, std::shared_ptr<const Container> container, Feed feed) {
  std::unique_ptr<PageReader> reader = ReaderOf(call, container, std::move(feed));
  Status status = co_await reader->Read();
  reader->AddHeaders();
  call.AddContainerHeaders(*container);
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  reader->Answer();
}

}  // namespace

Task<> ListItems(Call& call) {
  if (!call.Header("a-im").empty()) {
    call.Fail(Status(Code::kNotSupported, "The change feed is not supported yet."));
    co_return;
  }
  Result<Feed> feed = ReadRequest(call, *call.found);
  if (!feed) {
    call.Fail(feed.error());
    co_return;
  }
  co_await AnswerFeed(call, call.found, std::move(*feed));
}

Task<> QueryItems(Call& call, std::shared_ptr<const Container> container) {
  Result<QueryRequest> request = ReadQuery(call);
  Result<Feed> feed = ReadRequest(call, *container);
  if (!request || !feed) {
    call.Fail(!request ? request.error() : feed.error());
    co_return;
  }
  Result<query::Query> query = query::Query::Parse(request->text, request->parameters.Get("v"));
  if (!query) {
    call.Fail(query.error());
    co_return;
  }
  if (query->has_filter()) {
    feed->filter = std::move(request->text);
    feed->parameters = std::move(request->parameters);
    feed->query = std::make_shared<const query::Query>(std::move(*query));
  }
  co_await AnswerFeed(call, std::move(container), std::move(*feed));
}

Task<> PlanQuery(Call& call, std::shared_ptr<const Container> container) {
  Result<QueryRequest> request = ReadQuery(call);
  if (!request) {
    call.Fail(request.error());
    co_return;
  }
  Result<query::Query> query = query::Query::Parse(request->text, request->parameters.Get("v"));
  Feed unused;
  Result<Position> whole = WholeOf(call, *container, unused);
  if (!query || !whole) {
    call.Fail(!query ? query.error() : whole.error());
    co_return;
  }
  call.charge = partition::PriceOfControl(false);
  call.AddContainerHeaders(*container);
  call.reply.body = query::QueryPlanJson(*query, ToHex(whole->range.min), ToHex(whole->range.max));
  call.Succeed(200);
}

}  // namespace orrery::api::sql
