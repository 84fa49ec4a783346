#include "api/cassandra/selects.h"

#include <algorithm>

#include "base/bytes.h"
#include "cql/partition_token.h"
#include "cql/value.h"
#include "storage/keys.h"
#include "types/murmur3.h"

namespace orrery::cassandra {

using cql::Bound;
using cql::Column;
using cql::ColumnKind;
using partition::Reply;
using runtime::Task;

namespace {

constexpr uint8_t kStateVersion = 1;
constexpr uint8_t kIndexStateVersion = 2;
constexpr uint32_t kRowsAtOnce = 5000;
constexpr size_t kSortedMax = 100'000;
// A result without pages must fit into one answer.
constexpr size_t kResultBytesMax = 128 << 20;

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

}  // namespace

// --- Compiling -----------------------------------------------------------------------------------

Status SelectPlan::CheckDistinct(const cql::Select& select) const {
  if (!select.distinct) {
    return Status::Ok();
  }
  if (!selection_.only_static() && !selection_.only_partition_key()) {
    std::string wrong;
    for (size_t i = 0; i < table_->columns.size() && wrong.empty(); ++i) {
      const Column& column = table_->columns[i];
      if (selection_.needed()[i] && column.kind != ColumnKind::kPartitionKey &&
          column.kind != ColumnKind::kStatic) {
        wrong = column.name;
      }
    }
    return Invalid(
        "SELECT DISTINCT queries must only request partition key columns and/or static "
        "columns (not " +
        wrong + ")");
  }
  if (where_.clustering_columns() > 0) {
    return Invalid("Cannot use SELECT DISTINCT with restrictions on clustering columns");
  }
  return Status::Ok();
}

Status SelectPlan::AddOrder(const cql::Select& select) {
  if (select.order_by.empty()) {
    return Status::Ok();
  }
  if (!where_.names_partitions()) {
    return Invalid(
        "ORDER BY is only supported when the partition key is restricted by an EQ or an "
        "IN.");
  }
  ordered_ = true;
  std::optional<bool> reversed;
  size_t next = 0;
  const auto clustering = table_->clustering();
  for (const cql::Ordering& order : select.order_by) {
    const Column* column = table_->Find(order.column);
    if (order.nearest) {
      return Invalid("ANN ordering by vector requires the column to be indexed");
    }
    if (column == nullptr || column->kind != ColumnKind::kClustering) {
      return Invalid(
          "Order by is currently only supported on the clustered columns of the PRIMARY "
          "KEY, got " +
          order.column);
    }
    const auto place = static_cast<size_t>(column - clustering.data());
    if (place < next) {
      return Invalid(
          "Order by currently only supports the ordering of columns following their "
          "declared order in the PRIMARY KEY");
    }
    if (place > next) {
      return Invalid(
          "Order by currently only supports the ordering of columns following their "
          "declared order in the PRIMARY KEY");
    }
    next = place + 1;
    const bool against = order.descending != column->descending;
    if (reversed && *reversed != against) {
      return Invalid("Unsupported order by relation");
    }
    reversed = against;
  }
  reversed_ = *reversed;
  return Status::Ok();
}

Result<SelectPlan> SelectPlan::Compile(const cql::Select& select, const Preparation& in,
                                       bool filters) {
  SelectPlan plan;
  plan.table_ = &in.table;
  plan.distinct_ = select.distinct;
  ORRERY_TRY(plan.where_, Restrictions::Compile(
                              select.where, in,
                              filters ? Restrictions::Use::kFilter : Restrictions::Use::kSelect));
  auto fixed = [&](const Column& column) {
    for (const cql::Relation& relation : select.where.relations) {
      if (relation.target == cql::RelationTarget::kColumn && relation.columns[0] == column.name &&
          relation.comparison == cql::Comparison::kEqual) {
        return true;
      }
    }
    return false;
  };
  ORRERY_TRY(plan.selection_,
             cql::Selection::Prepare(select, in.table, in.markers, in.types, fixed));
  if (plan.where_.needs_filtering() && !select.allow_filtering && !plan.where_.IsIndexed()) {
    return Error(Code::kInvalidArgument,
                 "Cannot execute this query as it might involve data filtering and thus may have "
                 "unpredictable performance. If you want to execute this query despite the "
                 "performance unpredictability, use ALLOW FILTERING");
  }
  ORRERY_TRY_STATUS(plan.CheckDistinct(select));
  ORRERY_TRY_STATUS(plan.AddOrder(select));
  const cql::Receiver receiver = in.Of(in.table.columns[0]);
  if (select.limit) {
    ORRERY_TRY(plan.limit_, in.Prepare(*select.limit, cql::LimitReceiver(receiver)));
  }
  if (select.per_partition_limit) {
    if (select.distinct) {
      return Error(Code::kInvalidArgument,
                   "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
    }
    ORRERY_TRY(plan.partition_limit_,
               in.Prepare(*select.per_partition_limit, cql::PerPartitionLimitReceiver(receiver)));
  }
  plan.needed_ = plan.selection_.needed();
  for (const cql::Filter& filter : plan.where_.filters()) {
    for (uint16_t place : filter.columns()) {
      plan.needed_[place] = true;
    }
  }
  for (size_t i = 0; i < plan.needed_.size(); ++i) {
    plan.with_static_ =
        plan.with_static_ || (plan.needed_[i] && in.table.columns[i].kind == ColumnKind::kStatic);
  }
  // A partition without rows is one row of static columns, whatever is selected.
  plan.with_static_ = plan.with_static_ || (in.table.has_static() && !plan.where_.names_rows());
  const std::vector<ColumnSpec> columns = plan.Columns();
  for (int version : {3, 4, 5}) {
    plan.encoded_[version - 3] = EncodedColumns(columns, version);
  }
  return plan;
}

std::vector<ColumnSpec> SelectPlan::Columns() const {
  std::vector<ColumnSpec> columns;
  for (const cql::Receiver& column : selection_.columns()) {
    columns.push_back({column.keyspace, column.table, column.name, column.type});
  }
  return columns;
}

std::string SelectPlan::MetadataId() const {
  const types::Hash128 hash = types::Murmur128(encoded_[2].bytes());
  std::string id;
  Encoder(id).U64(hash.first);
  Encoder(id).U64(hash.second);
  return id;
}

// --- Running -------------------------------------------------------------------------------------

namespace {

// The times of the cells of the row that a RowValues stands at.
class TimesOf final : public cql::RowTimes {
 public:
  TimesOf(const cql::RowValues& row, int64_t now) : row_(row), now_(now) {}

  std::optional<cql::CellTimes> Of(size_t column) const override {
    auto cells = row_.CellsAt(column);
    return cells.empty() ? std::nullopt : std::optional(TimesOfCell(cells.front()));
  }
  std::vector<std::optional<cql::CellTimes>> OfParts(size_t column) const override {
    std::vector<std::optional<cql::CellTimes>> times;
    const cql::DataType& type = row_.table().columns[column].type;
    const bool fields = type.id() == cql::TypeId::kUdt;
    if (fields) {
      times.resize(type.parameters().size());
    }
    for (const cql::CellView& cell : row_.CellsAt(column)) {
      if (!fields) {
        times.emplace_back(TimesOfCell(cell));
      } else if (cell.path.size() == 2) {
        auto field = static_cast<size_t>(static_cast<uint8_t>(cell.path[0])) << 8 |
                     static_cast<uint8_t>(cell.path[1]);
        if (field < times.size()) {
          times[field] = TimesOfCell(cell);
        }
      }
    }
    return times;
  }

 private:
  cql::CellTimes TimesOfCell(const cql::CellView& cell) const {
    cql::CellTimes times{.timestamp = cell.stamp.timestamp};
    if (cell.stamp.ttl > 0) {
      times.ttl = static_cast<int32_t>(cell.stamp.expires - now_);
    }
    return times;
  }
  const cql::RowValues& row_;
  const int64_t now_;
};

Result<uint64_t> BindLimit(const std::optional<cql::Term>& term, const Binding& binding,
                           std::string_view name) {
  if (!term) {
    return UINT64_MAX;
  }
  ORRERY_TRY(Bound bound, term->Bind(binding.values, binding.context));
  if (bound.is_unset()) {
    return UINT64_MAX;
  }
  if (bound.is_null()) {
    return Error(Code::kInvalidArgument, "Invalid null value of " + std::string(name));
  }
  if (bound.bytes().size() != 4) {
    return Error(Code::kInvalidArgument, "Invalid value of " + std::string(name));
  }
  const int32_t limit = cql::ReadInt(bound.bytes());
  if (limit <= 0) {
    return Error(Code::kInvalidArgument, std::string(name) + " must be strictly positive");
  }
  return static_cast<uint64_t>(limit);
}

}  // namespace

SelectRun::SelectRun(const SelectPlan& plan, const SelectContext& context, const Binding& binding)
    : plan_(plan),
      context_(context),
      binding_(binding),
      bindings_{binding.values, binding.context},
      row_(plan.table(), &plan.needed_),
      writer_(plan.Encoded(context.version), context.rows) {
  if (plan.selection_.grouped()) {
    groups_.emplace(plan.selection_, bindings_,
                    [this](std::vector<Bound>& row) { return Emit(row); });
  }
}

Status SelectRun::ReadPosition(std::string_view state) {
  Decoder decoder(state);
  const uint8_t version = decoder.U8();
  position_.partition = decoder.U32();
  position_.place = decoder.Bytes();
  position_.after = decoder.Bytes();
  position_.after_rows = decoder.U32();
  position_.given_here = decoder.U32();
  const uint64_t left = decoder.U64();
  position_.left = std::min(position_.left, left);
  by_index_ = version == kIndexStateVersion;
  const bool known = version == kStateVersion || (by_index_ && context_.index != nullptr);
  if (!decoder.done() || !known) {
    return Status(Code::kInvalidArgument, "Invalid value for the paging state");
  }
  return Status::Ok();
}

std::string SelectRun::WritePosition() const {
  std::string state;
  Encoder encoder(state);
  encoder.U8(by_index_ ? kIndexStateVersion : kStateVersion);
  encoder.U32(position_.partition);
  encoder.Bytes(position_.place);
  encoder.Bytes(position_.after);
  encoder.U32(position_.after_rows);
  encoder.U32(position_.given_here);
  encoder.U64(position_.left);
  return state;
}

Status SelectRun::Begin() {
  for (const cql::Filter& filter : plan_.where_.filters()) {
    auto bound = filter.Bind(bindings_);
    if (!bound) {
      return bound.error();
    }
    filters_.push_back(std::move(*bound));
  }
  auto limit = BindLimit(plan_.limit_, binding_, "LIMIT");
  auto partition_limit = BindLimit(plan_.partition_limit_, binding_, "PER PARTITION LIMIT");
  if (!limit || !partition_limit) {
    return limit ? partition_limit.error() : limit.error();
  }
  position_.left = *limit;
  partition_limit_ = *partition_limit == UINT64_MAX ? 0 : static_cast<uint32_t>(*partition_limit);
  by_index_ = context_.index != nullptr && !plan_.distinct_;
  if (context_.paging_state && !context_.paging_state->empty()) {
    ORRERY_RETURN_IF_ERROR(ReadPosition(*context_.paging_state));
  }
  if (context_.container == nullptr) {
    return Status::Ok();
  }
  auto spans = plan_.where_.Spans(binding_);
  if (!spans) {
    return spans.error();
  }
  spans_ = std::move(*spans);
  if (plan_.where_.names_partitions()) {
    auto partitions = plan_.where_.PartitionKeys(binding_);
    if (!partitions) {
      return partitions.error();
    }
    partitions_ = std::move(*partitions);
    sorts_ = plan_.ordered_ && partitions_.size() > 1;
    return Status::Ok();
  }
  auto range = plan_.where_.Range(binding_);
  if (!range) {
    return range.error();
  }
  range_ = std::move(*range);
  if (!by_index_) {
    range_.min = std::max(range_.min, position_.place);
  }
  return Status::Ok();
}

Instant SelectRun::Deadline() const {
  return context_.clock.Now() + (pageable() ? kPageTime : kRunTime);
}

bool SelectRun::PageFull() const { return pageable() && writer_.rows() >= *context_.page_size; }

rows::ReadRows SelectRun::NewRead() const {
  rows::ReadRows read;
  read.level = context_.level;
  read.spans = spans_;
  read.reversed = plan_.reversed_;
  read.with_static = plan_.with_static_;
  read.only_partitions = plan_.distinct_;
  read.after = position_.after;
  read.after_rows = position_.after_rows;
  read.rows_max = kRowsAtOnce;
  if (filters_.empty() && !groups_ && !sorts_) {
    uint64_t wanted = position_.left;
    if (pageable()) {
      wanted =
          std::min<uint64_t>(wanted, static_cast<uint64_t>(*context_.page_size - writer_.rows()));
    }
    read.rows_max = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, kRowsAtOnce));
  }
  if (filters_.empty() && !groups_ && !context_.now) {
    read.partition_rows_max = partition_limit_;
  }
  return read;
}

Status SelectRun::Emit(std::vector<Bound>& row) {
  if (Done()) {
    return Status::Ok();
  }
  if (groups_ && partition_limit_ > 0 && groups_here_++ >= partition_limit_) {
    return Status::Ok();
  }
  --position_.left;
  if (sorts_) {
    if (sorted_.size() >= kSortedMax) {
      return Status(Code::kTooLarge, "too many rows of several partitions to be put in order");
    }
    Sorted& kept = sorted_.emplace_back();
    kept.key = clustering_;
    for (Bound& value : row) {
      kept.values.push_back(std::move(value).TakeValue());
    }
    ++position_.left;  // counted when they are in order
    return Status::Ok();
  }
  for (const Bound& value : row) {
    writer_.CellOrNull(value.value());
  }
  writer_.EndRow();
  return Status::Ok();
}

Status SelectRun::TakeRow() {
  if (!filters_.empty()) {
    const cql::RowInput seen{.values = row_.values()};
    for (const cql::BoundFilter& filter : filters_) {
      if (!filter.Matches(seen)) {
        return Status::Ok();
      }
    }
  }
  const bool counts = !filters_.empty() || context_.now;  // else they were counted where they are
  if (counts && !groups_ && partition_limit_ > 0 && position_.given_here >= partition_limit_) {
    return Status::Ok();
  }
  ++position_.given_here;
  const std::vector<uint16_t>* plain = plan_.selection_.plain();
  if (plain != nullptr && !sorts_) {
    if (Done()) {
      return Status::Ok();
    }
    --position_.left;
    for (uint16_t place : *plain) {
      writer_.CellOrNull(row_.values()[place]);
    }
    writer_.EndRow();
    return Status::Ok();
  }
  const TimesOf times(row_, context_.now.value_or(binding_.context.now_micros / 1'000'000));
  const cql::RowInput input{.values = row_.values(), .times = &times};
  if (groups_) {
    ORRERY_RETURN_IF_ERROR(groups_->Add(input));
    if (position_.given_here == 1) {
      groups_here_ = 0;  // the group that has just ended was the last of its partition
    }
    return Status::Ok();
  }
  out_.clear();
  if (plain != nullptr) {
    for (uint16_t place : *plain) {
      out_.push_back(Bound::View(row_.values()[place]));
    }
  } else {
    ORRERY_RETURN_IF_ERROR(plan_.selection_.Evaluate(input, bindings_, out_));
  }
  return Emit(out_);
}

bool SelectRun::Resumes(const rows::RowPage::Partition& partition) const {
  std::string key;
  std::string_view row_key;
  return position_.after_rows > 0 && rows::SplitKey(position_.after, &key, &row_key) &&
         key == partition.key;
}

void SelectRun::CutAt(std::string_view partition_key, char kind, std::string_view row_key) {
  position_.after = rows::PartitionPrefix(context_.container->id,
                                          types::CassandraEpk(partition_key), partition_key);
  position_.after += kind;
  position_.after += row_key;
  position_.after_rows = std::max<uint32_t>(position_.given_here, 1);
}

Result<bool> SelectRun::IsThere(const rows::RowPage& page, std::string_view row,
                                int64_t deleted) const {
  return NowOf(page) == page.now ? Result<bool>(true) : cql::RowExists(row, NowOf(page), deleted);
}

Status SelectRun::TakePage(const rows::RowPage& page) {
  const int64_t now = NowOf(page);
  for (size_t i = 0; i < page.partitions.size(); ++i) {
    const rows::RowPage::Partition& partition = page.partitions[i];
    const bool last = i + 1 == page.partitions.size();
    ORRERY_RETURN_IF_ERROR(row_.BeginPartition(partition.key));
    const bool resumed = i == 0 && Resumes(partition);
    if (!resumed) {
      position_.given_here = 0;
    }
    bool has_static = partition.static_row.has_value();
    if (has_static) {
      auto there = IsThere(page, *partition.static_row, partition.deleted);
      if (!there) {
        return there.error();
      }
      has_static = *there;
      ORRERY_RETURN_IF_ERROR(row_.SetStatic(*partition.static_row, now, partition.deleted));
    }
    bool has_rows = false;
    for (const rows::RowPage::Row& row : partition.rows) {
      auto there = IsThere(page, row.row, row.deleted);
      if (!there) {
        return there.error();
      }
      if (!*there) {
        continue;
      }
      has_rows = true;
      clustering_ = row.key;
      ORRERY_RETURN_IF_ERROR(row_.SetRow(row.key, row.row, now, row.deleted));
      ORRERY_RETURN_IF_ERROR(TakeRow());
      if (PageFull() && !(last && &row == &partition.rows.back())) {
        CutAt(partition.key, rows::kRowKey, row.key);
        return Status::Ok();
      }
    }
    const bool finished = !last || !page.partial;
    const bool alone = !has_rows && has_static && finished && !resumed && spans_.empty();
    if (plan_.distinct_ || alone) {
      clustering_ = {};
      row_.SetNoRow();
      ORRERY_RETURN_IF_ERROR(TakeRow());
      if (PageFull() && !last) {
        CutAt(partition.key, rows::kStaticKey, {});
        return Status::Ok();
      }
    }
    ORRERY_RETURN_IF_ERROR(CheckSize());
  }
  position_.after = page.last;
  position_.after_rows = page.last_rows;
  return Status::Ok();
}

Status SelectRun::CheckSize() const {
  return writer_.bytes() > kResultBytesMax
             ? Status(Code::kTooLarge, "The result is too large for one answer: read it in pages.")
             : Status::Ok();
}

Task<Status> SelectRun::ReadNamed() {
  const Instant end = Deadline();
  while (position_.partition < partitions_.size() && !Done() && !PageFull()) {
    const std::string& key = partitions_[position_.partition];
    rows::ReadRows read = NewRead();
    read.partition_key = key;
    read.range.min = types::CassandraEpk(key);
    Reply reply =
        co_await context_.router.Execute(context_.container->ring(), read.range.min, read);
    charge_ += reply.charge;
    if (!reply.status.ok()) {
      co_return reply.status;
    }
    auto page = rows::RowPage::Decode(reply.body);
    if (!page) {
      co_return page.error();
    }
    ORRERY_CO_RETURN_IF_ERROR(TakePage(*page));
    if (position_.after.empty()) {
      ++position_.partition;
      position_.after_rows = 0;
      position_.given_here = 0;
    }
    if (context_.clock.Now() >= end) {
      co_return pageable() ? Status::Ok() : ReadsTooLong();
    }
  }
  co_return Status::Ok();
}

Task<Status> SelectRun::ReadRange() {
  const Instant end = Deadline();
  partition::Ring ring = context_.container->ring();
  for (int moved = 0; range_.min < range_.max && !Done() && !PageFull();) {
    const partition::PartitionRange range = ring.map->Find(range_.min);
    rows::ReadRows read = NewRead();
    read.range = range_;
    Reply reply = co_await context_.router.ExecuteAt(ring, range, read);
    const Code code = reply.status.code();
    if (code == Code::kMoved || code == Code::kSchemaChanged) {
      auto next = co_await context_.router.LookAgain(ring, ++moved);
      if (!next) {
        co_return Status(Code::kUnavailable, "The partitions of the table are being changed.");
      }
      ring = std::move(*next);
      if (ring.map == nullptr) {
        co_return Status(Code::kNotFound, "unconfigured table " + plan_.table().name);
      }
      continue;
    }
    charge_ += reply.charge;
    if (!reply.status.ok()) {
      co_return reply.status;
    }
    auto page = rows::RowPage::Decode(reply.body);
    if (!page) {
      co_return page.error();
    }
    ORRERY_CO_RETURN_IF_ERROR(TakePage(*page));
    if (position_.after.empty()) {
      range_.min = range.range.max;
      position_.after_rows = 0;
      position_.given_here = 0;
    } else if (!storage::ReadItemEpk(position_.after, &range_.min)) {
      co_return Status(Code::kInternal, "the key of a row is malformed");
    }
    position_.place = range_.min;
    if (context_.clock.Now() >= end) {
      co_return pageable() ? Status::Ok() : ReadsTooLong();
    }
  }
  co_return Status::Ok();
}

Status SelectRun::ReadsTooLong() {
  return Status(Code::kTimeout, "The statement reads more than can be read in the time it has.");
}

Status SelectRun::SortRows() {
  std::ranges::sort(sorted_, {}, &Sorted::key);
  if (plan_.reversed_) {
    std::ranges::reverse(sorted_);
  }
  for (const Sorted& row : sorted_) {
    if (Done()) {
      break;
    }
    --position_.left;
    for (const auto& value : row.values) {
      writer_.CellOrNull(value);
    }
    writer_.EndRow();
  }
  return Status::Ok();
}

Response SelectRun::Finish(bool more) {
  return more ? writer_.Finish(WritePosition()) : writer_.Finish();
}

Task<Result<Response>> SelectRun::Run() {
  ORRERY_CO_TRY_STATUS(Begin());
  const bool named = plan_.where_.names_partitions();
  if (named) {
    ORRERY_CO_TRY_STATUS(co_await ReadNamed());
  } else {
    ORRERY_CO_TRY_STATUS(co_await (by_index_ ? ReadIndex() : ReadRange()));
  }
  if (groups_) {
    ORRERY_CO_TRY_STATUS(groups_->Finish());
    co_return Finish(false);
  }
  if (sorts_) {
    ORRERY_CO_TRY_STATUS(SortRows());
    co_return Finish(false);
  }
  const bool left = named       ? position_.partition < partitions_.size()
                    : by_index_ ? !index_done_
                                : range_.min < range_.max;
  co_return Finish(left && !Done());
}

Result<Response> SelectRun::RunOver(
    const std::vector<std::vector<std::optional<std::string>>>& rows) {
  ORRERY_TRY_STATUS(Begin());
  ORRERY_TRY(range_, plan_.where_.Range(binding_));
  const size_t keys = plan_.table().partition_columns;
  for (const auto& row : rows) {
    std::vector<std::string> key;
    for (size_t i = 0; i < keys && plan_.where_.has_token(); ++i) {
      key.push_back(row[i].value_or(""));
    }
    if (plan_.where_.has_token() && !range_.Contains(types::CassandraEpk(cql::JoinedKey(key)))) {
      continue;
    }
    row_.SetValues(row);
    ORRERY_TRY_STATUS(TakeRow());
    if (Done()) {
      break;
    }
  }
  if (groups_) {
    ORRERY_TRY_STATUS(groups_->Finish());
  }
  return Finish(false);
}

}  // namespace orrery::cassandra
