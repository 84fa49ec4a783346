// Pages of rows. Rows by their keys are read where the operation arrives. Everything else is a walk
// in slices with limits: of one partition at once, if it is short and all of it is in memory; else
// by a blocking thread.
#include <algorithm>
#include <array>

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
// What a walk does on a worker, before it is left to a blocking thread.
constexpr size_t kScannedAtOnce = 256;
constexpr size_t kScannedBytesAtOnce = 256 << 10;
constexpr size_t kPointsMax = 4;
constexpr size_t kPageOverhead = 32;  // of a part, at most
static_assert(kPointsMax + 2 <= storage::kKeyReadsMax);

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
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }

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

// What is read for a few rows by their keys: the deletions of their partition, its static row, the
// rows.
class PointKeys {
 public:
  PointKeys(const ReadRows& read, ContainerId container)
      : read_(read),
        heads_(read.with_static ? 2 : 1),
        count_(heads_ + read.spans.size()),
        keys_(PartitionPrefix(container, read.range.min, *read.partition_key)),
        prefix_(keys_.size()) {
    size_t size = count_ * (prefix_ + 1);
    for (const RowSpan& span : read.spans) {
      size += span.begin.size();
    }
    keys_.reserve(size);  // views of it stay
    Add(kDeletionsKey, {});
    if (read.with_static) {
      Add(kStaticKey, {});
    }
    for (size_t i = 0; i < read.spans.size(); ++i) {
      Add(kRowKey, read.spans[read.reversed ? read.spans.size() - 1 - i : i].begin);
    }
  }

  std::span<storage::KeyRead> reads() { return std::span(reads_).first(count_); }

  // Gives what is alive; how many bytes that are.
  Result<size_t> Write(int64_t now, PageWriter& page) const {
    std::optional<cql::Deletions> deletions;
    if (reads_[0].found) {
      ORRERY_TRY(deletions, ParseDeletions(reads_[0].value));
    }
    size_t size = kPageOverhead + read_.partition_key->size();
    for (size_t i = 1; i < count_; ++i) {
      size += reads_[i].key.size() + reads_[i].value.size() + kPageOverhead;
    }
    page.Reserve(size);
    size_t bytes = 0;
    for (size_t i = 1; i < count_; ++i) {
      const storage::KeyRead& read = reads_[i];
      if (!read.found) {
        continue;
      }
      const bool is_static = i < heads_;
      const std::string_view clustering = read.key.substr(prefix_ + 1);
      const int64_t deleted = !deletions  ? cql::kNeverWritten
                              : is_static ? deletions->partition()
                                          : deletions->At(clustering);
      ORRERY_TRY(const bool exists, cql::RowExists(read.value, now, deleted));
      if (!exists) {
        continue;
      }
      if (bytes == 0) {
        page.Partition(*read_.partition_key);
      }
      bytes += read.value.size();
      if (is_static) {
        page.Static(read.value, deleted);
      } else {
        page.Row(clustering, read.value, deleted);
      }
    }
    return bytes;
  }

 private:
  // REQUIRES: keys_ has room.
  void Add(char kind, std::string_view clustering) {
    const size_t begin = added_ == 0 ? 0 : keys_.size();
    if (begin > 0) {
      keys_.append(keys_, 0, prefix_);
    }
    keys_ += kind;
    keys_ += clustering;
    reads_[added_++].key = std::string_view(keys_).substr(begin);
  }

  const ReadRows& read_;
  const size_t heads_;  // before the rows
  const size_t count_;
  std::string keys_;  // all of them; begins with what all begin with
  const size_t prefix_;
  size_t added_ = 0;
  std::array<storage::KeyRead, kPointsMax + 2> reads_;
};

// Walks over partitions in the order of the ring, and over the rows of each.
class Scan {
 public:
  Scan(const ReadRows& read, storage::Engine& state, ContainerId container,
       const types::EpkRange& range, int64_t now, storage::ReadMode mode)
      : read_(read),
        state_(state),
        container_(container),
        range_(range),
        now_(now),
        mode_(mode),
        page_(now) {}

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
  // Whether it goes on for longer than a worker may.
  bool TooLong() const {
    return mode_ == storage::ReadMode::kMemoryOnly &&
           (scanned_ >= kScannedAtOnce || scanned_bytes_ >= kScannedBytesAtOnce);
  }
  bool PartitionFull() const {
    return (read_.partition_rows_max > 0 && rows_here_ >= read_.partition_rows_max) ||
           (read_.only_partitions && (announced_ || rows_here_ > 0));
  }
  int64_t DeletedAt(std::string_view clustering) const {
    return deletions_ ? deletions_->At(clustering) : cql::kNeverWritten;
  }

  const ReadRows& read_;
  storage::Engine& state_;
  const ContainerId container_;
  const types::EpkRange range_;
  const int64_t now_;
  const storage::ReadMode mode_;
  // Of all that is read; none if that is one iterator alone.
  std::unique_ptr<storage::Snapshot> moment_;
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
    Status found =
        state_.Get(storage::Index(Space::kItems), prefix_ + head, &value, mode_, moment_.get());
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
  auto exists = cql::RowExists(value, now_, deleted);
  if (!exists) {
    return exists.error();
  }
  if (*exists) {
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
  auto exists = cql::RowExists(value, now_, deleted);
  if (!exists) {
    return exists.error();
  }
  if (!*exists) {
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
  // `after` comes from a client in the end: it never leads out of the span.
  if (!span.end.empty() && read_.after >= span.end) {
    return Status::Ok();
  }
  const bool resumes = !read_.after.empty() && read_.after >= span.begin;
  std::string start = resumes ? read_.after + '\0' : span.begin;
  if (resumes) {
    moment_ = state_.NewSnapshot();
    ORRERY_RETURN_IF_ERROR(Enter(read_.after, false));
    rows_here_ = read_.after_rows;
    if (PartitionFull()) {
      start = storage::PrefixEnd(prefix_);
    }
  }
  auto at =
      state_.NewIterator(storage::Index(Space::kItems), start, span.end, moment_.get(), mode_);
  at->SeekToFirst();
  std::string next;
  while (at->Valid()) {
    if (full()) {
      more_ = true;
      closed_ = !at->key().starts_with(prefix_);
      return Status::Ok();
    }
    if (TooLong()) {
      return Status(Code::kWouldBlock);
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
    if (!InSpans(read_.spans, row_key.substr(1), &next)) {
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
  moment_ = state_.NewSnapshot();
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
    auto at = state_.NewIterator(storage::Index(Space::kItems), lower, upper, moment_.get(), mode_);
    for (at->SeekToLast(); at->Valid(); at->Prev()) {
      if (full() || PartitionFull()) {
        more_ = !PartitionFull();
        return Status::Ok();
      }
      if (TooLong()) {
        return Status(Code::kWouldBlock);
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

}  // namespace

bool InSpans(const std::vector<RowSpan>& spans, std::string_view clustering, std::string* next) {
  next->clear();
  if (spans.empty()) {
    return true;
  }
  for (const RowSpan& span : spans) {
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
  const Lsn lsn = replica.applied();
  PointKeys keys(*this, container.id);
  // At once: a write may change the deletions, the static row and rows together.
  Status status = replica.state().GetAll(storage::Index(Space::kItems), keys.reads(),
                                         storage::ReadMode::kMemoryOnly);
  if (status.code() == Code::kWouldBlock) {
    auto read = [&replica, &keys] {
      return replica.state().GetAll(storage::Index(Space::kItems), keys.reads());
    };
    status = co_await runtime::OnBlocking(replica.workers(), std::move(read));
  }
  PageWriter page(now);
  Result<size_t> bytes = status.ok() ? keys.Write(now, page) : Error(status);
  Reply reply = replica.MakeReply(bytes ? Status() : bytes.error(), partition::PriceOfMiss(price));
  reply.lsn = lsn;
  if (bytes) {
    if (*bytes > 0) {
      reply.charge = partition::PriceOfRead(*bytes, price);
    }
    reply.body = page.Finish({}, false, 0);
  }
  co_return reply;
}

Task<Reply> ReadRows::RunScan(Replica& replica, const model::Container& container) {
  const partition::ReadPrice price = partition::PriceOfLevel(level);
  const Lsn lsn = replica.applied();
  const int64_t now = replica.wall().seconds();
  const types::EpkRange here = range.Intersect(replica.range().range);
  std::optional<Scan> scan;
  Status status(Code::kWouldBlock);
  // Most walks over one partition are short, and what they find is in memory.
  if (partition_key) {
    scan.emplace(*this, replica.state(), container.id, here, now, storage::ReadMode::kMemoryOnly);
    status = scan->Run();
  }
  if (status.code() == Code::kWouldBlock) {
    auto run = [&] {
      scan.emplace(*this, replica.state(), container.id, here, now, storage::ReadMode::kMayWait);
      return scan->Run();
    };
    status = co_await runtime::OnBlocking(replica.workers(), run);
  }
  Reply reply = replica.MakeReply(
      status, partition::PriceOfFeed(scan->scanned(), scan->scanned_bytes(), price));
  reply.lsn = lsn;
  reply.body = scan->Finish();
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
