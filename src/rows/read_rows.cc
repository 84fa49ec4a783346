// Pages of rows. Rows by their keys are read where the operation arrives; everything else is a walk
// by a blocking thread, in slices with limits.
#include <algorithm>

#include "cql/row.h"
#include "partition/pricing.h"
#include "rows/rows.h"

namespace orrery::rows {

using partition::Replica;
using partition::Reply;
using runtime::Task;
using storage::Space;

namespace {

constexpr size_t kScannedMax = 10'000;
constexpr size_t kScannedBytesMax = 16 << 20;
constexpr size_t kPointsMax = 4;

// What follows in a page.
enum class Tag : uint8_t { kEnd = 0, kPartition = 1, kStatic = 2, kRow = 3 };

// Builds what RowPage::Decode reads.
class PageWriter {
 public:
  explicit PageWriter(int64_t now) : encoder_(bytes_) { encoder_.U64(static_cast<uint64_t>(now)); }

  void Partition(std::string_view key) {
    Put(Tag::kPartition);
    encoder_.Bytes(key);
  }
  void Static(std::string_view row, int64_t deleted) {
    Put(Tag::kStatic);
    encoder_.Bytes(row);
    encoder_.U64(static_cast<uint64_t>(deleted));
  }
  void Row(std::string_view key, std::string_view row, int64_t deleted) {
    Put(Tag::kRow);
    encoder_.Bytes(key);
    encoder_.Bytes(row);
    encoder_.U64(static_cast<uint64_t>(deleted));
  }
  std::string Finish(std::string_view last, bool partial, uint32_t last_rows) {
    Put(Tag::kEnd);
    encoder_.Bytes(last);
    encoder_.Bool(partial);
    encoder_.U32(last_rows);
    return std::move(bytes_);
  }
  size_t bytes() const { return bytes_.size(); }

 private:
  void Put(Tag tag) { encoder_.U8(static_cast<uint8_t>(tag)); }
  std::string bytes_;
  Encoder encoder_;
};

// The deletions of a partition, or none.
Result<std::optional<cql::Deletions>> ParseDeletions(std::string_view bytes) {
  ORRERY_TRY(cql::Deletions deletions, cql::Deletions::Parse(bytes));
  return std::optional(std::move(deletions));
}

// Walks over partitions in the order of the ring, and over the rows of each.
class Scan {
 public:
  Scan(const ReadRows& read, storage::Engine& state, ContainerId container,
       const types::EpkRange& range, int64_t now)
      : read_(read), state_(state), container_(container), range_(range), now_(now), page_(now) {}

  Status Run();
  std::string Finish() { return page_.Finish(more_ ? last_ : "", more_ && !closed_, rows_here_); }
  size_t scanned() const { return scanned_; }
  size_t scanned_bytes() const { return scanned_bytes_; }

 private:
  Status RunForward(const storage::KeySpan& span);
  Status RunReversed();
  // Begins with the partition of a key; reads what stands before its rows if the walk does not pass
  // there.
  Status Enter(std::string_view key, bool passes_head);
  Status ReadHead();
  Status TakeHead(std::string_view row_key, std::string_view value);
  // Gives a row if it is alive; `full` says that the page ends here.
  Status TakeRow(std::string_view key, std::string_view value);
  void Announce();
  // A partition with nothing but a static row is one row of its own.
  void Leave();
  bool full() const {
    return rows_ >= read_.rows_max || page_.bytes() >= kPageBytesMax || scanned_ >= kScannedMax ||
           scanned_bytes_ >= kScannedBytesMax;
  }
  bool PartitionFull() const {
    return (read_.partition_rows_max > 0 && rows_here_ >= read_.partition_rows_max) ||
           (read_.only_partitions && (announced_ || rows_here_ > 0));
  }
  int64_t DeletedAt(std::string_view clustering) const {
    return deletions_ ? deletions_->At(clustering) : cql::kNeverWritten;
  }
  // The place of a row among the spans: in one of them, or where the next one begins (empty: there
  // is none).
  bool InSpans(std::string_view clustering, std::string* next) const;

  const ReadRows& read_;
  storage::Engine& state_;
  const ContainerId container_;
  const types::EpkRange range_;
  const int64_t now_;
  PageWriter page_;

  std::string prefix_;  // of the partition where the walk is
  std::string partition_key_;
  std::optional<cql::Deletions> deletions_;
  std::optional<std::string> static_;  // alive, not yet given
  bool announced_ = false;             // the partition stands in the page
  uint32_t rows_here_ = 0;             // given of this partition, with the pages before

  uint32_t rows_ = 0;
  size_t scanned_ = 0;
  size_t scanned_bytes_ = 0;
  std::string last_;
  bool more_ = false;
  bool closed_ = false;  // the last partition has no more rows to give
};

bool Scan::InSpans(std::string_view clustering, std::string* next) const {
  next->clear();
  if (read_.spans.empty()) {
    return true;
  }
  for (const RowSpan& span : read_.spans) {
    if (clustering < span.begin) {
      *next = span.begin;
      return false;
    }
    if (span.one ? clustering == span.begin : span.end.empty() || clustering < span.end) {
      return true;
    }
  }
  return false;
}

Status Scan::Enter(std::string_view key, bool passes_head) {
  std::string_view row_key;
  if (!SplitKey(key, &partition_key_, &row_key)) {
    return Status(Code::kCorruption, "the key of a row is malformed");
  }
  prefix_ = key.substr(0, key.size() - row_key.size());
  deletions_.reset();
  static_.reset();
  announced_ = false;
  rows_here_ = 0;
  return passes_head ? Status::Ok() : ReadHead();
}

Status Scan::ReadHead() {
  for (char head : {kDeletionsKey, kStaticKey}) {
    if (head == kStaticKey && !read_.with_static) {
      continue;
    }
    std::string value;
    Status found = state_.Get(storage::Index(Space::kItems), prefix_ + head, &value);
    if (found.ok()) {
      ORRERY_RETURN_IF_ERROR(TakeHead({&head, 1}, value));
    } else if (found.code() != Code::kNotFound) {
      return found;
    }
  }
  return Status::Ok();
}

Status Scan::TakeHead(std::string_view row_key, std::string_view value) {
  scanned_bytes_ += value.size();
  if (row_key[0] == kDeletionsKey) {
    auto parsed = ParseDeletions(value);
    if (!parsed) {
      return parsed.error();
    }
    deletions_ = std::move(*parsed);
    return Status::Ok();
  }
  if (!read_.with_static) {
    return Status::Ok();
  }
  const int64_t deleted = deletions_ ? deletions_->partition() : cql::kNeverWritten;
  auto row = cql::ReadRow(value, now_, deleted);
  if (!row) {
    return row.error();
  }
  if (row->exists()) {
    static_ = value;
  }
  return Status::Ok();
}

// The partition has something to show.
void Scan::Announce() {
  if (announced_) {
    return;
  }
  announced_ = true;
  page_.Partition(partition_key_);
  if (static_) {
    page_.Static(*static_, deletions_ ? deletions_->partition() : cql::kNeverWritten);
  }
}

void Scan::Leave() {
  if (static_ && rows_here_ == 0 && !announced_ && read_.spans.empty()) {
    Announce();
    ++rows_here_;
    ++rows_;
  }
}

Status Scan::TakeRow(std::string_view key, std::string_view value) {
  std::string_view clustering = key.substr(prefix_.size() + 1);
  const int64_t deleted = DeletedAt(clustering);
  auto row = cql::ReadRow(value, now_, deleted);
  if (!row) {
    return row.error();
  }
  if (!row->exists()) {
    return Status::Ok();
  }
  Announce();
  ++rows_here_;
  ++rows_;
  if (!read_.only_partitions) {
    page_.Row(clustering, value, deleted);
  }
  return Status::Ok();
}

Status Scan::RunForward(const storage::KeySpan& span) {
  const bool resumes = !read_.after.empty() && read_.after >= span.begin;
  std::string start = resumes ? read_.after + '\0' : span.begin;
  if (resumes) {
    ORRERY_RETURN_IF_ERROR(Enter(read_.after, false));
    rows_here_ = read_.after_rows;
    if (PartitionFull()) {
      start = storage::PrefixEnd(prefix_);
    }
  }
  auto at = state_.NewIterator(storage::Index(Space::kItems), start, span.end);
  at->SeekToFirst();
  std::string next;
  while (at->Valid()) {
    if (full()) {
      more_ = true;
      closed_ = !at->key().starts_with(prefix_);
      return Status::Ok();
    }
    if (prefix_.empty() || !at->key().starts_with(prefix_)) {
      Leave();
      if (full()) {
        more_ = true;
        closed_ = true;
        return Status::Ok();
      }
      ORRERY_RETURN_IF_ERROR(Enter(at->key(), true));
    }
    last_ = at->key();
    ++scanned_;
    std::string_view row_key = at->key().substr(prefix_.size());
    if (row_key.front() != kRowKey) {
      ORRERY_RETURN_IF_ERROR(TakeHead(row_key, at->value()));
      at->Next();
      continue;
    }
    if (!InSpans(row_key.substr(1), &next)) {
      at->Seek(next.empty() ? storage::PrefixEnd(prefix_) : prefix_ + kRowKey + next);
      continue;
    }
    scanned_bytes_ += at->value().size();
    ORRERY_RETURN_IF_ERROR(TakeRow(at->key(), at->value()));
    if (PartitionFull()) {
      at->Seek(storage::PrefixEnd(prefix_));
    } else {
      at->Next();
    }
  }
  Leave();
  return at->status();
}

Status Scan::RunReversed() {
  std::vector<RowSpan> spans = read_.spans;
  if (spans.empty()) {
    spans.emplace_back();
  }
  std::ranges::reverse(spans);
  prefix_ = PartitionPrefix(container_, read_.range.min, *read_.partition_key);
  partition_key_ = *read_.partition_key;
  rows_here_ = read_.after_rows;
  ORRERY_RETURN_IF_ERROR(ReadHead());
  const std::string rows = prefix_ + kRowKey;
  for (const RowSpan& span : spans) {
    std::string lower = rows + span.begin;
    std::string upper = span.one           ? lower + '\0'
                        : span.end.empty() ? storage::PrefixEnd(rows)
                                           : rows + span.end;
    if (!read_.after.empty()) {
      upper = std::min(upper, read_.after);
    }
    if (lower >= upper) {
      continue;
    }
    auto at = state_.NewIterator(storage::Index(Space::kItems), lower, upper);
    for (at->SeekToLast(); at->Valid(); at->Prev()) {
      if (full() || PartitionFull()) {
        more_ = !PartitionFull();
        return Status::Ok();
      }
      last_ = at->key();
      ++scanned_;
      scanned_bytes_ += at->value().size();
      ORRERY_RETURN_IF_ERROR(TakeRow(at->key(), at->value()));
    }
    ORRERY_RETURN_IF_ERROR(at->status());
  }
  Leave();
  return Status::Ok();
}

Status Scan::Run() {
  if (read_.partition_key && read_.reversed) {
    return RunReversed();
  }
  if (!read_.partition_key) {
    return RunForward(storage::ItemSpan(container_, range_));
  }
  std::string prefix = PartitionPrefix(container_, read_.range.min, *read_.partition_key);
  return RunForward({prefix, storage::PrefixEnd(prefix)});
}

types::EpkRange Intersect(const types::EpkRange& a, const types::EpkRange& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

}  // namespace

std::string ReadRows::logical_partition() const {
  return partition_key ? "\"0x" + ToHex(*partition_key) + "\"" : "";
}

bool ReadRows::IsPoint() const {
  return partition_key && !spans.empty() && spans.size() <= kPointsMax && after.empty() &&
         !only_partitions && partition_rows_max == 0 && rows_max >= spans.size() &&
         std::ranges::all_of(spans, &RowSpan::one);
}

Task<Reply> ReadRows::RunPoint(Replica& replica, const model::Container& container) {
  const partition::ReadPrice price = partition::PriceOfLevel(level);
  const int64_t now = replica.wall().seconds();
  const std::string prefix = PartitionPrefix(container.id, range.min, *partition_key);
  Lsn lsn = replica.applied();
  Reply reply = replica.MakeReply(Status(), partition::PriceOfMiss(price));
  reply.lsn = lsn;
  PageWriter page(now);
  bool announced = false;
  size_t bytes = 0;
  auto announce = [&] {
    if (!announced) {
      page.Partition(*partition_key);
    }
    announced = true;
  };
  std::optional<cql::Deletions> deletions;
  Result<std::string> head = co_await replica.Read(Space::kItems, prefix + kDeletionsKey);
  if (head) {
    auto parsed = ParseDeletions(*head);
    if (!parsed) {
      co_return replica.MakeReply(parsed.error(), partition::PriceOfMiss(price));
    }
    deletions = std::move(*parsed);
  } else if (head.error().code() != Code::kNotFound) {
    co_return replica.MakeReply(head.error(), partition::PriceOfMiss(price));
  }
  std::vector<std::string> keys;
  if (with_static) {
    keys.push_back(prefix + kStaticKey);
  }
  for (const RowSpan& span : spans) {
    keys.push_back(prefix + kRowKey + span.begin);
  }
  if (reversed) {
    std::reverse(keys.begin() + (with_static ? 1 : 0), keys.end());
  }
  for (const std::string& key : keys) {
    Result<std::string> stored = co_await replica.Read(Space::kItems, key);
    if (!stored && stored.error().code() == Code::kNotFound) {
      continue;
    }
    if (!stored) {
      co_return replica.MakeReply(stored.error(), partition::PriceOfMiss(price));
    }
    const bool is_static = key[prefix.size()] == kStaticKey;
    std::string_view clustering = std::string_view(key).substr(prefix.size() + 1);
    const int64_t deleted = !deletions  ? cql::kNeverWritten
                            : is_static ? deletions->partition()
                                        : deletions->At(clustering);
    auto row = cql::ReadRow(*stored, now, deleted);
    if (!row) {
      co_return replica.MakeReply(row.error(), partition::PriceOfMiss(price));
    }
    if (!row->exists()) {
      continue;
    }
    announce();
    bytes += stored->size();
    if (is_static) {
      page.Static(*stored, deleted);
    } else {
      page.Row(clustering, *stored, deleted);
    }
  }
  if (announced) {
    reply.charge = partition::PriceOfRead(bytes, price);
  }
  reply.body = page.Finish({}, false, 0);
  co_return reply;
}

Task<Reply> ReadRows::RunScan(Replica& replica, const model::Container& container) {
  const partition::ReadPrice price = partition::PriceOfLevel(level);
  const Lsn lsn = replica.applied();
  Scan scan(*this, replica.state(), container.id, Intersect(range, replica.range().range),
            replica.wall().seconds());
  auto run = [&scan] { return scan.Run(); };
  Status status = co_await runtime::OnBlocking(replica.workers(), run);
  Reply reply = replica.MakeReply(
      status, partition::PriceOfFeed(scan.scanned(), scan.scanned_bytes(), price));
  reply.lsn = lsn;
  reply.body = scan.Finish();
  co_return reply;
}

Task<Reply> ReadRows::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const model::Container&>(*schema);
  if (!container.is_table()) {
    co_return replica.MakeReply(
        Status(Code::kInvalidArgument, "The container is not a table of Cassandra."),
        partition::PriceOfMiss());
  }
  co_return co_await (IsPoint() ? RunPoint(replica, container) : RunScan(replica, container));
}

Result<RowPage> RowPage::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  RowPage page;
  page.now = static_cast<int64_t>(decoder.U64());
  for (;;) {
    const Tag tag = static_cast<Tag>(decoder.U8());
    if (tag == Tag::kEnd || !decoder.ok()) {
      break;
    }
    if (tag == Tag::kPartition) {
      page.partitions.emplace_back().key = decoder.Bytes();
      continue;
    }
    if (page.partitions.empty()) {
      decoder.Fail();
      break;
    }
    Partition& partition = page.partitions.back();
    if (tag == Tag::kStatic) {
      partition.static_row = decoder.Bytes();
      partition.deleted = static_cast<int64_t>(decoder.U64());
    } else if (tag == Tag::kRow) {
      Row& row = partition.rows.emplace_back();
      row.key = decoder.Bytes();
      row.row = decoder.Bytes();
      row.deleted = static_cast<int64_t>(decoder.U64());
    } else {
      decoder.Fail();
    }
  }
  page.last = decoder.Bytes();
  page.partial = decoder.Bool();
  page.last_rows = decoder.U32();
  if (!decoder.done()) {
    return Error(Code::kUnavailable, "a page of rows is malformed");
  }
  return page;
}

}  // namespace orrery::rows
