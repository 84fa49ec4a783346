// SELECT by an index: its entries say which rows there may be, in the order of the ring; the rows
// themselves say whether they are as WHERE asks.
#include <algorithm>

#include "api/cassandra/selects.h"
#include "runtime/when_all.h"
#include "storage/keys.h"

namespace orrery::cassandra {

using partition::Reply;
using runtime::Task;

namespace {

constexpr uint64_t kEntriesMax = 500;  // in one read
constexpr size_t kRowsOfOneRead = 50;
constexpr size_t kAtOnce = 16;

// The key of the row that an entry stands for. False: malformed.
bool ReadEntry(std::string_view entry, types::Epk* epk, std::string* partition_key,
               std::string_view* clustering) {
  std::string_view row_key;
  if (!storage::ReadItemEpk(entry, epk) || !rows::SplitKey(entry, partition_key, &row_key) ||
      row_key[0] != rows::kRowKey) {
    return false;
  }
  *clustering = row_key.substr(1);
  return true;
}

}  // namespace

Result<std::string> SelectRun::IndexPartition() const {
  const Restrictions::IndexUse& use = *plan_.where_.index();
  ORRERY_TRY(cql::BoundFilter filter, use.filter.Bind(bindings_));
  const std::string value = filter.operands().at(0).value_or("");
  return use.kind == cql::IndexTargetKind::kEntries
             ? rows::IndexPartitionOfEntry(filter.element(), value)
             : rows::IndexPartition(value);
}

Task<Status> SelectRun::ReadIndex() {
  const Instant end = Deadline();
  auto partition = IndexPartition();
  if (!partition) {
    co_return partition.error();
  }
  if (std::string_view entry; !position_.after.empty()) {
    // The partition of the last row counts for PER PARTITION LIMIT.
    std::string of_index;
    types::Epk epk;
    std::string_view clustering;
    if (rows::SplitKey(position_.after, &of_index, &entry) && entry[0] == rows::kRowKey) {
      ReadEntry(entry.substr(1), &epk, &index_partition_, &clustering);
    }
  }
  while (!index_done_ && !Done() && !PageFull()) {
    uint64_t wanted = kEntriesMax;
    if (filters_.size() <= 1 && spans_.empty() && !groups_ && !sorts_) {
      // What is found by its value is shown, so LIMIT counts entries.
      wanted = std::clamp<uint64_t>(position_.left, 1, kEntriesMax);
    }
    if (pageable()) {
      wanted = std::min(wanted, static_cast<uint64_t>(*context_.page_size - writer_.rows()));
    }
    rows::ReadRows read;
    read.level = context_.level;
    read.partition_key = *partition;
    read.range.min = types::CassandraEpk(*partition);
    read.range.max = read.range.min + '\0';
    read.after = position_.after;
    read.rows_max = static_cast<uint32_t>(wanted);
    Reply reply = co_await context_.router.Execute(context_.index->ring(), read.range.min, read);
    charge_ += reply.charge;
    if (!reply.status.ok()) {
      co_return reply.status;
    }
    auto entries = rows::RowPage::Decode(reply.body);
    if (!entries) {
      co_return entries.error();
    }
    auto found = RowsOf(*entries);
    if (!found) {
      co_return found.error();
    }
    ORRERY_CO_RETURN_IF_ERROR(co_await TakeFound(*found));
    position_.after = entries->last;
    index_done_ = entries->last.empty();
    if (context_.clock.Now() >= end) {
      co_return pageable() ? Status::Ok() : ReadsTooLong();
    }
  }
  co_return Status::Ok();
}

// Entries of one partition stand together.
Result<std::vector<SelectRun::Found>> SelectRun::RowsOf(const rows::RowPage& entries) const {
  std::vector<Found> found;
  std::string next;
  for (const rows::RowPage::Partition& partition : entries.partitions) {
    for (const rows::RowPage::Row& entry : partition.rows) {
      types::Epk epk;
      std::string partition_key;
      std::string_view clustering;
      if (!ReadEntry(entry.key, &epk, &partition_key, &clustering)) {
        return Error(Code::kCorruption, "an entry of an index is malformed");
      }
      if (epk < range_.min || epk >= range_.max || !rows::InSpans(spans_, clustering, &next)) {
        continue;
      }
      if (found.empty() || found.back().partition_key != partition_key ||
          found.back().rows.size() >= kRowsOfOneRead) {
        found.push_back({std::move(partition_key), {}});
      }
      found.back().rows.emplace_back(clustering);
    }
  }
  return found;
}

Task<Result<std::vector<std::string>>> SelectRun::ReadFound(const Found& found) {
  std::vector<std::string> pages;
  rows::ReadRows read;
  read.level = context_.level;
  read.partition_key = found.partition_key;
  read.range.min = types::CassandraEpk(found.partition_key);
  read.range.max = read.range.min + '\0';
  read.with_static = plan_.with_static_;
  for (const std::string& row : found.rows) {
    read.spans.push_back({.begin = row, .end = {}, .one = true});
  }
  do {
    Reply reply =
        co_await context_.router.Execute(context_.container->ring(), read.range.min, read);
    charge_ += reply.charge;
    if (!reply.status.ok()) {
      co_return Error(reply.status);
    }
    auto page = rows::RowPage::Decode(reply.body);
    if (!page) {
      co_return Error(page.error());
    }
    read.after = page->last;
    read.after_rows = page->last_rows;
    pages.push_back(std::move(reply.body));
  } while (!read.after.empty());
  co_return pages;
}

Task<Status> SelectRun::TakeFound(const std::vector<Found>& found) {
  for (size_t at = 0; at < found.size() && !Done(); at += kAtOnce) {
    std::vector<Task<Result<std::vector<std::string>>>> tasks;
    for (size_t i = at; i < std::min(at + kAtOnce, found.size()); ++i) {
      tasks.push_back(ReadFound(found[i]));
    }
    for (const auto& pages : co_await runtime::WhenAll(std::move(tasks))) {
      if (!pages) {
        co_return pages.error();
      }
      for (const std::string& bytes : *pages) {
        auto page = rows::RowPage::Decode(bytes);
        if (!page) {
          co_return page.error();
        }
        ORRERY_CO_RETURN_IF_ERROR(TakeFoundRows(*page));
      }
    }
  }
  co_return Status::Ok();
}

Status SelectRun::TakeFoundRows(const rows::RowPage& page) {
  const int64_t now = NowOf(page);
  for (const rows::RowPage::Partition& partition : page.partitions) {
    ORRERY_RETURN_IF_ERROR(row_.BeginPartition(partition.key));
    if (partition.key != index_partition_) {
      index_partition_ = partition.key;
      position_.given_here = 0;
    }
    if (partition.static_row) {
      ORRERY_RETURN_IF_ERROR(row_.SetStatic(*partition.static_row, now, partition.deleted));
    }
    for (const rows::RowPage::Row& row : partition.rows) {
      auto there = IsThere(page, row.row, row.deleted);
      if (!there) {
        return there.error();
      }
      if (!*there) {
        continue;
      }
      clustering_ = row.key;
      ORRERY_RETURN_IF_ERROR(row_.SetRow(row.key, row.row, now, row.deleted));
      ORRERY_RETURN_IF_ERROR(TakeRow());
    }
    ORRERY_RETURN_IF_ERROR(CheckSize());
  }
  return Status::Ok();
}

}  // namespace orrery::cassandra
