// SELECT: compiled once, run page by page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cassandra/responses.h"
#include "api/cassandra/restrictions.h"
#include "base/status.h"
#include "base/time.h"
#include "cql/ast.h"
#include "cql/row_values.h"
#include "cql/schema.h"
#include "cql/selection.h"
#include "cql/term.h"
#include "model/catalog_types.h"
#include "partition/router.h"
#include "runtime/task.h"

namespace orrery::cassandra {

class SelectPlan {
 public:
  // The table must outlive it. `filters`: whatever the key does not find is filtered, as in the
  // small tables of the system.
  static Result<SelectPlan> Compile(const cql::Select& select, const Preparation& in, bool filters);

  const cql::Table& table() const { return *table_; }
  const cql::Selection& selection() const { return selection_; }
  const Restrictions& where() const { return where_; }
  // The columns of the result.
  std::vector<ColumnSpec> Columns() const;
  // Names them: another id when they are different.
  std::string MetadataId() const;
  const EncodedColumns& Encoded(int version) const { return encoded_[version - 3]; }

 private:
  friend class SelectRun;
  Status AddOrder(const cql::Select& select);
  Status CheckDistinct(const cql::Select& select) const;

  const cql::Table* table_ = nullptr;
  Restrictions where_;
  cql::Selection selection_;
  bool distinct_ = false;
  bool reversed_ = false;
  bool ordered_ = false;
  bool with_static_ = false;
  std::vector<bool> needed_;  // by selection or filters
  std::optional<cql::Term> limit_;
  std::optional<cql::Term> partition_limit_;
  EncodedColumns encoded_[3];  // of versions 3, 4, 5
};

// What a page is read with.
struct SelectContext {
  partition::Router& router;
  const Clock& clock;
  std::shared_ptr<const model::Container> container;  // null: of the system
  std::shared_ptr<const model::Container> index;  // the entries of that which WHERE uses, or null
  partition::ReadLevel level = partition::ReadLevel::kStrong;
  std::optional<int32_t> page_size;
  std::optional<std::string_view> paging_state;
  // Seconds since 1970: what has expired then is not seen, if that is later than now.
  std::optional<int32_t> now;
  RowsWriter::Options rows;
  int version = 4;
};

// One page of a SELECT.
class SelectRun {
 public:
  SelectRun(const SelectPlan& plan, const SelectContext& context, const Binding& binding);

  // Reads from partitions. kInvalidArgument, or why it could not be read.
  runtime::Task<Result<Response>> Run();
  // Of rows that are at hand, in their order: values by the places of the columns.
  Result<Response> RunOver(const std::vector<std::vector<std::optional<std::string>>>& rows);
  partition::RequestUnits charge() const { return charge_; }

 private:
  // Where to go on.
  struct Position {
    uint32_t partition = 0;  // of those that are named
    types::Epk place;        // else: on the ring
    std::string after;
    uint32_t after_rows = 0;
    uint32_t given_here = 0;     // rows of the partition of `after`
    uint64_t left = UINT64_MAX;  // of LIMIT
  };
  Status Begin();
  Status ReadPosition(std::string_view state);
  std::string WritePosition() const;
  runtime::Task<Status> ReadNamed();
  runtime::Task<Status> ReadRange();
  // By the entries of an index (index_reads.cc).
  struct Found {
    std::string partition_key;
    std::vector<std::string> rows;  // clustering keys
  };
  runtime::Task<Status> ReadIndex();
  Result<std::vector<Found>> RowsOf(const rows::RowPage& entries) const;
  runtime::Task<Status> TakeFound(const std::vector<Found>& found);
  runtime::Task<Result<std::vector<std::string>>> ReadFound(const Found& found);
  Status TakeFoundRows(const rows::RowPage& page);
  Result<std::string> IndexPartition() const;
  rows::ReadRows NewRead() const;
  // As of when rows of a page are seen.
  int64_t NowOf(const rows::RowPage& page) const {
    return context_.now ? std::max<int64_t>(page.now, *context_.now) : page.now;
  }
  // Whether a row of a page, or its static row, is still there then.
  Result<bool> IsThere(const rows::RowPage& page, std::string_view row, int64_t deleted) const;
  // Takes the rows of a page, or those that the client's page has room for.
  Status TakePage(const rows::RowPage& page);
  // Whether it is the rest of the partition where the page before ended.
  bool Resumes(const rows::RowPage::Partition& partition) const;
  // The client's page is full: it goes on behind this row.
  void CutAt(std::string_view partition_key, char kind, std::string_view row_key);
  // A row that fits everything but limits.
  Status TakeRow();
  Status Emit(std::vector<cql::Bound>& row);
  // Whether it may stop and go on with the next page.
  bool pageable() const {
    return context_.page_size && *context_.page_size > 0 && !groups_ && !sorts_;
  }
  bool PageFull() const;
  // When a page ends early; what has no pages fails then.
  static constexpr Duration kPageTime = std::chrono::seconds(2);
  static constexpr Duration kRunTime = std::chrono::seconds(30);
  Instant Deadline() const;
  static Status ReadsTooLong();
  bool Done() const { return position_.left == 0; }
  Response Finish(bool more);
  Status SortRows();
  Status CheckSize() const;

  const SelectPlan& plan_;
  const SelectContext& context_;
  const Binding& binding_;
  const cql::Bindings bindings_;
  cql::RowValues row_;
  RowsWriter writer_;
  std::optional<cql::Aggregator> groups_;
  Position position_;
  uint32_t partition_limit_ = 0;
  uint32_t groups_here_ = 0;  // of the partition whose rows are taken
  std::vector<cql::BoundFilter> filters_;
  std::vector<rows::RowSpan> spans_;
  std::vector<std::string> partitions_;
  types::EpkRange range_;
  bool by_index_ = false;
  bool index_done_ = false;      // there are no more entries
  std::string index_partition_;  // of the row that was taken last
  std::vector<cql::Bound> out_;
  partition::RequestUnits charge_;
  // Rows of several partitions, to be put in order.
  bool sorts_ = false;
  struct Sorted {
    std::string key;
    std::vector<std::optional<std::string>> values;
  };
  std::vector<Sorted> sorted_;
  std::string_view clustering_;  // of the row that is taken
};

}  // namespace orrery::cassandra
