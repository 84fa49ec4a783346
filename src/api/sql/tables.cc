#include "api/sql/tables.h"

#include <algorithm>

#include "api/sql/call.h"
#include "api/sql/feed.h"
#include "base/bytes.h"
#include "cql/partition_token.h"
#include "cql/schema_document.h"
#include "cql/value_text.h"
#include "rows/rows.h"
#include "types/murmur3.h"

namespace orrery::api::sql {

using cql::RowValues;
using model::Container;
using partition::Reply;
using runtime::Task;

namespace {

constexpr uint32_t kRowsAtOnce = 1000;
// With a filter at least so many are read at once, of which few may be shown.
constexpr uint32_t kRowsFiltered = 100;
// Filters may be slow: others get their turn after so long.
constexpr Duration kTurn = std::chrono::milliseconds(5);

std::string KeyOf(const RowValues& values) {
  const auto all = values.values();
  return cql::JoinedKey(all.first(values.table().partition_columns)).value_or("");
}

Status RowNotFound() {
  return Status(Code::kNotFound, "Entity with the specified id does not exist in the system.");
}

// kSessionNotReached if who answered has not applied what the client has seen.
Status CheckSeen(const Call& call, const Reply& reply) {
  auto token = std::ranges::find(call.tokens, reply.partition, &types::SessionToken::partition);
  if (token != call.tokens.end() && reply.lsn < token->lsn) {
    return Status(Code::kSessionNotReached,
                  "The read session is not available for the input session token.");
  }
  return Status::Ok();
}

}  // namespace

Result<std::shared_ptr<const TableView>> TableView::Of(const model::Catalog& catalog,
                                                       const Container& container) {
  auto database = catalog.view()->FindDatabase(container.database);
  if (database == nullptr || !database->definition) {
    return Error(Code::kOwnerNotFound, "Owner resource does not exist");
  }
  if (types::Member(container.definition.Get("cassandra"), "indexOf").defined()) {
    return Error(Code::kInvalidArgument, "The container has the entries of an index, and no rows.");
  }
  ORRERY_TRY(cql::Keyspace keyspace, cql::KeyspaceFromDocument(database->definition->root()));
  auto view = std::make_shared<TableView>();
  ORRERY_TRY(view->table,
             cql::TableFromDocument(container.definition.Get("cassandra"), cql::ScopeOf(keyspace)));
  view->names = cql::MemberNames(view->table);
  return view;
}

RowDocument MakeRowDocument(const Container& container, const TableView& view,
                            const RowValues& values) {
  RowDocument made;
  made.json = "{";
  cql::AppendRowMembers(view.table, view.names, values.values(), made.json);
  const types::Hash128 content = types::Murmur128(made.json);
  std::string bytes;
  Encoder(bytes).U64(content.first);
  Encoder(bytes).U64(content.second);
  made.etag = '"' + cql::UuidToText(bytes) + '"';
  const std::string key = KeyOf(values) + '\0' + cql::RowId(view.table, values.values());
  const uint64_t number = types::Murmur128(key).first >> 4;
  AppendItemProperties(container, number, made.etag,
                       WallTime{.micros = std::max<int64_t>(values.newest(), 0)}, made.json);
  made.json += '}';
  return made;
}

// --- Pages ---------------------------------------------------------------------------------------

namespace {

class RowReader final : public PageReader {
 public:
  RowReader(Call& call, std::shared_ptr<const Container> container, Feed feed)
      : PageReader(call, std::move(container), std::move(feed)),
        view_(feed_.table),
        values_(view_->table) {}

 private:
  std::unique_ptr<partition::Operation> NextRead() const override;
  Task<Status> Take(const Reply& reply, const partition::PartitionRange& range) override;
  // Shows the row if the filter lets it pass, and lets others work in between.
  Task<Status> AddRow();
  std::string KeyBehind(std::string_view partition_key, char kind, std::string_view row) const;

  const std::shared_ptr<const TableView> view_;
  RowValues values_;
  Instant turn_;
};

std::unique_ptr<partition::Operation> RowReader::NextRead() const {
  auto read = std::make_unique<rows::ReadRows>();
  const auto wanted = feed_.items_max - static_cast<uint32_t>(count_);
  read->partition_key = feed_.only_rows;
  read->range = feed_.position.range;
  read->with_static = view_->table.has_static();
  read->rows_max = std::min(std::max(wanted, feed_.query ? kRowsFiltered : 1), kRowsAtOnce);
  read->after = feed_.position.after;
  read->after_rows = feed_.position.after_rows;
  return read;
}

Task<Status> RowReader::AddRow() {
  RowDocument row = MakeRowDocument(*container_, *view_, values_);
  bool shown = true;
  if (feed_.query != nullptr) {
    Result<types::Document> document = types::Document::FromJson(row.json);
    if (!document) {
      // Decimals and varints can be larger than any number of documents.
      co_return Status(Code::kInvalidArgument,
                       "The row '" + cql::RowId(view_->table, values_.values()) +
                           "' cannot be compared with a filter: " + document.error().message());
    }
    Result<bool> matches = feed_.query->Matches(document->root());
    if (!matches) {
      co_return matches.error();
    }
    shown = *matches;
  }
  if (shown) {
    NextDocument() += row.json;
  }
  if (call_.clock().Now() - turn_ >= kTurn) {
    co_await runtime::Yield();
    turn_ = call_.clock().Now();
  }
  co_return Status::Ok();
}

std::string RowReader::KeyBehind(std::string_view partition_key, char kind,
                                 std::string_view row) const {
  std::string key =
      rows::PartitionPrefix(container_->id, types::CassandraEpk(partition_key), partition_key);
  key += kind;
  key += row;
  return key;
}

Task<Status> RowReader::Take(const Reply& reply, const partition::PartitionRange& range) {
  ORRERY_CO_RETURN_IF_ERROR(CheckSeen(call_, reply));
  auto page = rows::RowPage::Decode(reply.body);
  if (!page) {
    co_return page.error();
  }
  turn_ = call_.clock().Now();
  for (const rows::RowPage::Partition& partition : page->partitions) {
    ORRERY_CO_RETURN_IF_ERROR(values_.BeginPartition(partition.key));
    if (partition.static_row) {
      ORRERY_CO_RETURN_IF_ERROR(
          values_.SetStatic(*partition.static_row, page->now, partition.deleted));
    }
    const bool last = &partition == &page->partitions.back();
    for (const rows::RowPage::Row& row : partition.rows) {
      ORRERY_CO_RETURN_IF_ERROR(values_.SetRow(row.key, row.row, page->now, row.deleted));
      ORRERY_CO_RETURN_IF_ERROR(co_await AddRow());
      if ((Full() || Late()) && !(last && &row == &partition.rows.back())) {
        feed_.position.after_rows = 1;
        co_return MoveBehind(KeyBehind(partition.key, rows::kRowKey, row.key), range);
      }
    }
    if (partition.rows.empty()) {  // nothing but its static columns
      values_.SetNoRow();
      ORRERY_CO_RETURN_IF_ERROR(co_await AddRow());
      if ((Full() || Late()) && !last) {
        feed_.position.after_rows = 1;
        co_return MoveBehind(KeyBehind(partition.key, rows::kStaticKey, {}), range);
      }
    }
  }
  feed_.position.after_rows = page->last.empty() ? 0 : page->last_rows;
  co_return MoveBehind(std::string(page->last), range);
}

}  // namespace

std::unique_ptr<PageReader> MakeRowReader(Call& call, std::shared_ptr<const Container> container,
                                          Feed feed) {
  return std::make_unique<RowReader>(call, std::move(container), std::move(feed));
}

// --- One row -------------------------------------------------------------------------------------

namespace {

// What a point read asks for.
Result<rows::ReadRows> ReadOf(const Call& call, const TableView& view) {
  std::string_view header = call.Header("x-ms-documentdb-partitionkey");
  if (header.empty()) {
    return Error(Code::kInvalidArgument,
                 "PartitionKey value must be supplied for this operation. Learn more: "
                 "https://aka.ms/CosmosDB/sql/errors/missing-partition-key");
  }
  rows::ReadRows read;
  ORRERY_TRY(read.partition_key, cql::PartitionKeyFromJson(view.table, header));
  ORRERY_TRY(read.level, call.Level());
  auto named = cql::RowOfId(view.table, call.item());
  if (!named) {
    return Error(RowNotFound());
  }
  if (!named->only_static) {
    read.spans.push_back({.begin = std::move(named->clustering), .one = true});
  }
  read.range.min = types::CassandraEpk(*read.partition_key);
  read.range.max = read.range.min + '\0';
  read.with_static = view.table.has_static();
  read.rows_max = 1;
  read.claim = call.claim;
  return read;
}

// The document of the row that was asked for. kNotFound, also if there is another one: a partition
// that has rows is no longer shown by its static columns alone.
Result<RowDocument> DocumentIn(const rows::RowPage& page, const Call& call, const TableView& view,
                               bool only_static) {
  if (page.partitions.empty() || page.partitions[0].rows.empty() != only_static) {
    return Error(RowNotFound());
  }
  const rows::RowPage::Partition& partition = page.partitions[0];
  RowValues values(view.table);
  ORRERY_TRY_STATUS(values.BeginPartition(partition.key));
  if (partition.static_row) {
    ORRERY_TRY_STATUS(values.SetStatic(*partition.static_row, page.now, partition.deleted));
  }
  if (only_static) {
    values.SetNoRow();
  } else {
    const rows::RowPage::Row& row = partition.rows[0];
    ORRERY_TRY_STATUS(values.SetRow(row.key, row.row, page.now, row.deleted));
  }
  if (cql::RowId(view.table, values.values()) != call.item()) {
    return Error(RowNotFound());
  }
  return MakeRowDocument(*call.found, view, values);
}

// Where to look on if a page has nothing to show: behind thousands of deleted rows.
std::string MoreBehind(const Reply& reply) {
  auto page = rows::RowPage::Decode(reply.body);
  return page && page->partitions.empty() ? std::string(page->last) : "";
}

void AnswerRow(Call& call, const TableView& view, const Reply& reply, bool only_static) {
  auto page = rows::RowPage::Decode(reply.body);
  if (!page) {
    call.Fail(page.error());
    return;
  }
  Result<RowDocument> row = DocumentIn(*page, call, view, only_static);
  if (!row) {
    call.Fail(row.error());
    return;
  }
  call.reply.Add("etag", row->etag);
  std::string_view known = call.Header("if-none-match");
  if (known == "*" || known == row->etag) {
    call.Fail(Status(Code::kNotModified));
    return;
  }
  call.reply.body = std::move(row->json);
  call.Succeed(200);
}

}  // namespace

Task<> ReadRow(Call& call) {
  auto view = TableView::Of(call.catalog(), *call.found);
  if (!view) {
    call.Fail(view.error());
    co_return;
  }
  Result<rows::ReadRows> read = ReadOf(call, **view);
  if (!read) {
    call.Fail(read.error());
    co_return;
  }
  Reply reply;
  partition::RequestUnits charge;
  do {
    reply = co_await call.router().Execute(call.found->ring(), read->range.min, *read);
    charge += reply.charge;
    read->after = reply.status.ok() ? MoreBehind(reply) : "";
  } while (!read->after.empty());
  reply.charge = charge;
  call.AddPartitionHeaders(reply);
  call.AddContainerHeaders(*call.found);
  Status status = reply.status.ok() ? CheckSeen(call, reply) : reply.status;
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  AnswerRow(call, **view, reply, read->spans.empty());
}

}  // namespace orrery::api::sql
