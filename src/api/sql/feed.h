// Pages of what a container holds. Private to api/sql.
//
// A page walks over the partitions in the order of the ring. The continuation says how far it came:
// [{"token":"<key of the last item or row, base64>","range":{"min":"<EPK>","max":"<EPK>"}}], of a
// table with "rows":1 if its partition has given a row already.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/sql/call.h"
#include "api/sql/tables.h"
#include "model/items.h"
#include "partition/router.h"
#include "query/query.h"
#include "types/document.h"
#include "types/epk.h"

namespace orrery::api::sql {

// A page that has read so many partitions ends: each has its session token in the head of the
// reply, and of the requests that come after it.
inline constexpr size_t kPagePartitionsMax = 100;

// What a feed still has to read.
struct Position {
  types::EpkRange range;
  std::string after;        // key of the last item or row that was read
  uint32_t after_rows = 0;  // of a table: rows that the partition of `after` has given
};

struct Feed {
  Position position;
  std::optional<types::PartitionKey> only_key;
  uint32_t items_max = 0;
  std::string filter;  // text of a query, "" = all
  types::Document parameters;
  std::shared_ptr<const query::Query> query;  // the filter
  Consistency level = Consistency::kSession;
  // Of a table:
  std::shared_ptr<const TableView> table;
  std::optional<std::string> only_rows;  // a partition key, serialized
};

// Reads a page; the rest of the position is what comes after it.
class PageReader {
 public:
  PageReader(Call& call, std::shared_ptr<const model::Container> container, Feed feed)
      : call_(call), container_(std::move(container)), feed_(std::move(feed)) {}
  virtual ~PageReader() = default;

  runtime::Task<Status> Read();
  // Charge and session of the page, good or bad.
  void AddHeaders() {
    last_.charge = charge_;
    call_.AddPartitionHeaders(last_, &seen_);
  }
  void Answer();

 protected:
  // Of the rest of the position.
  virtual std::unique_ptr<partition::Operation> NextRead() const = 0;
  // Takes what it gave.
  virtual runtime::Task<Status> Take(const partition::Reply& reply,
                                     const partition::PartitionRange& range) = 0;

  bool Full() const {
    return count_ >= feed_.items_max || documents_.size() >= model::kPageBytesMax;
  }
  bool Late() const { return call_.clock().Now() >= deadline_; }
  // Where the next document is to be appended.
  std::string& NextDocument() {
    documents_ += count_++ == 0 ? "" : ",";
    return documents_;
  }
  // Goes on behind this key; empty: the range has no more.
  Status MoveBehind(std::string key, const partition::PartitionRange& range);

  Call& call_;
  const std::shared_ptr<const model::Container> container_;
  Feed feed_;
  size_t count_ = 0;

 private:
  bool Exhausted() const { return feed_.position.range.min >= feed_.position.range.max; }

  Instant deadline_;
  bool progressed_ = false;  // a slice was read, with or without items
  std::string documents_;
  partition::Reply last_;
  Seen seen_;
  partition::RequestUnits charge_;
};

// Of the rows of a table; in tables.cc.
std::unique_ptr<PageReader> MakeRowReader(Call& call,
                                          std::shared_ptr<const model::Container> container,
                                          Feed feed);

}  // namespace orrery::api::sql
