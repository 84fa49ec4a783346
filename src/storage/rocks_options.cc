#include "storage/rocks_options.h"

#include <algorithm>
#include <thread>

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/time.h"
#include "storage/compaction_pace.h"

namespace orrery::storage {
namespace {

std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

class MergeAdapter final : public rocksdb::MergeOperator {
 public:
  explicit MergeAdapter(const Merger& merger) : merger_(merger) {}

  const char* Name() const override { return merger_.name(); }

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    if (in.existing_value == nullptr && in.operand_list.size() == 1 && merger_.keeps_first()) {
      out->existing_operand = in.operand_list.front();  // not copied
      return true;
    }
    std::vector<std::string_view> operands;
    operands.reserve(in.operand_list.size());
    for (const rocksdb::Slice& operand : in.operand_list) {
      operands.push_back(View(operand));
    }
    std::string_view existing;
    if (in.existing_value != nullptr) {
      existing = View(*in.existing_value);
    }
    out->new_value =
        merger_.Merge(View(in.key), in.existing_value == nullptr ? nullptr : &existing, operands);
    return true;
  }

 private:
  const Merger& merger_;
};

// Three turns of others to one of its own, where cores are wanted by both.
constexpr int kCompactionNice = 5;

// Merging files takes a core for seconds: whoever answers clients goes first. Not much more than
// that, or files would pile up until writes must wait for them.
class Courtesy final : public rocksdb::EventListener {
 public:
  explicit Courtesy(std::shared_ptr<CompactionPace> pace) : pace_(std::move(pace)) {}

  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) override {
    thread_local bool lowered = false;
    if (!lowered) {
      lowered = true;
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kCompactionNice);
    }
    pace_->Begin(info.cf_id, SystemClock().Now());
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) override {
    pace_->Flushed(info.cf_id);
  }

 private:
  const std::shared_ptr<CompactionPace> pace_;
};

// RocksDB asks it before each write to a table file. It limits no rate: a merge rests in it.
class RestingPlace final : public rocksdb::RateLimiter {
 public:
  explicit RestingPlace(std::shared_ptr<CompactionPace> pace) : pace_(std::move(pace)) {}

  void Request(int64_t, rocksdb::Env::IOPriority priority, rocksdb::Statistics*, OpType) override {
    if (priority != rocksdb::Env::IO_LOW) {
      return;  // a flush, or a merge that writes wait for
    }
    std::this_thread::sleep_for(pace_->Rest(SystemClock().Now()));
    pace_->Resume(SystemClock().Now());
  }
  int64_t GetSingleBurstBytes() const override { return 1 << 20; }
  void SetBytesPerSecond(int64_t) override {}
  int64_t GetBytesPerSecond() const override { return 0; }
  int64_t GetTotalBytesThrough(rocksdb::Env::IOPriority) const override { return 0; }
  int64_t GetTotalRequests(rocksdb::Env::IOPriority) const override { return 0; }

 private:
  const std::shared_ptr<CompactionPace> pace_;
};

}  // namespace

Status ToStatus(const rocksdb::Status& status) {
  using Kind = rocksdb::Status::Code;
  if (status.IsPathNotFound()) {
    // A file of the store is gone: damage, neither a missing key nor a passing trouble.
    return Status(Code::kCorruption, status.ToString());
  }
  switch (status.code()) {
    case Kind::kOk: return Status::Ok();
    case Kind::kNotFound: return Status(Code::kNotFound);  // the common one: no text to build
    case Kind::kIncomplete: return Status(Code::kWouldBlock);
    case Kind::kCorruption: return Status(Code::kCorruption, status.ToString());
    case Kind::kNotSupported: return Status(Code::kNotSupported, status.ToString());
    case Kind::kInvalidArgument: return Status(Code::kInvalidArgument, status.ToString());
    case Kind::kIOError:
    case Kind::kShutdownInProgress:
    case Kind::kTimedOut:
    case Kind::kAborted:
    case Kind::kBusy:
    case Kind::kTryAgain: return Status(Code::kUnavailable, status.ToString());
    case Kind::kMergeInProgress:
    case Kind::kExpired:
    case Kind::kCompactionTooLarge:
    case Kind::kColumnFamilyDropped:
    case Kind::kMaxCode: break;
  }
  return Status(Code::kInternal, status.ToString());
}

rocksdb::DBOptions MakeStoreOptions(const EngineOptions& options, bool recycle,
                                    std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::DBOptions db;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.listeners.push_back(std::move(listener));
  const auto pace = std::make_shared<CompactionPace>();
  db.listeners.push_back(std::make_shared<Courtesy>(pace));
  if (!options.log_files) {  // what a log merges is little, and gives room back
    db.rate_limiter = std::make_shared<RestingPlace>(pace);
  }

  // Spaces written without a log reach the disk together or not at all. With a log: point-in-time
  // recovery refuses a store in which one space was flushed beyond a torn log file, so they are
  // flushed together too.
  db.atomic_flush = options.spaces.size() > 1 && (options.atomic_flush || options.log_files);

  // Reuse needs the first mode and recovery the second: see rocks_log_files.h.
  db.recycle_log_file_num = recycle ? 4 : 0;
  db.wal_recovery_mode = recycle ? rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords
                                 : rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.use_fsync = false;  // fdatasync
  // Bounds the logs that an idle space could hold back, and so the replay at the next start.
  db.max_total_wal_size = 4 * options.write_buffer_bytes;
  // A failed log file is never tried again: the outcome of its last writes is unknown until a
  // restart.
  if (options.log_files) {
    db.max_bgerror_resume_count = 0;
  }

  db.db_write_buffer_size = options.write_buffer_bytes;  // of all spaces together
  db.max_background_jobs = 2;
  // Table files go to the disk evenly, so that no fsync of a log waits behind 64 MB of them.
  db.bytes_per_sync = 1 << 20;
  // Handed to the kernel while it is still in the processor's cache.
  db.writable_file_max_buffer_size = 128 << 10;
  // A file takes the room of what is in it. With this a compaction claims room for all of its input
  // at once, and writes are refused for room that compressed data never takes.
  db.allow_fallocate = false;
  db.paranoid_checks = true;

  // Opening is quick however many files there are: they are looked at when they are first read.
  db.max_open_files = 512;
  db.skip_stats_update_on_db_open = true;
  db.skip_checking_sst_file_sizes_on_db_open = true;
  // Whoever drops an iterator does not delete files for it.
  db.avoid_unnecessary_blocking_io = true;

  // LOG is for a human after an accident: warnings, one megabyte, the one before kept.
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.max_log_file_size = 1 << 20;
  db.keep_log_file_num = 2;
  // No timer threads that wake an idle process.
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

rocksdb::ColumnFamilyOptions MakeSpaceOptions(const EngineOptions& options,
                                              std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  table.block_size = 8 << 10;
  table.block_cache = std::move(cache);
  // Index and filter count against cache_bytes, but stay in while their file is open: a point read
  // finds them without a look-up in the cache.
  table.cache_index_and_filter_blocks = true;
  table.metadata_cache_options.unpartitioned_pinning = rocksdb::PinningTier::kAll;
  // Finds the place of a key in a block by hash, not by binary search; then at most this many keys
  // are looked at, each of which may be a miss of the processor's cache.
  table.block_restart_interval = 4;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  // 10 bits: 1 % false hits. Bloom and not ribbon: a third more memory, far less CPU in a point
  // read.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;

  rocksdb::ColumnFamilyOptions space;
  space.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (options.merger != nullptr) {
    space.merge_operator = std::make_shared<MergeAdapter>(*options.merger);
    // Else a counter that is added to all the time would be summed up from its first addition at
    // every read, until the next flush.
    space.max_successive_merges = 16;
  }
  // One memtable fills while another is written out. Arenas grow block by block (an eighth of this,
  // at most 1 MB), so an idle store takes next to nothing.
  space.write_buffer_size = options.write_buffer_bytes / 2;
  space.max_write_buffer_number = 3;
  // Most keys that are asked for are not in the memtable (or nowhere, for a create): a small filter
  // saves the search of the skip list, a tenth of a point read. It is allocated whole with each
  // memtable.
  space.memtable_whole_key_filtering = true;
  space.memtable_prefix_bloom_size_ratio = options.log_files ? 0 : 0.02;
  // Keys come in random order, so a merge of new files rewrites all that they fall on: fewer,
  // larger merges.
  space.level0_file_num_compaction_trigger = 8;
  space.level0_slowdown_writes_trigger = 24;
  space.level0_stop_writes_trigger = 40;
  // Not less than those files hold together, or it would be rewritten for little.
  space.max_bytes_for_level_base = std::max<uint64_t>(256 << 20, 4 * options.write_buffer_bytes);
  // Sizes the levels from the last one up: about 10 % of stale data instead of up to 100 %.
  space.level_compaction_dynamic_level_bytes = true;
  if (options.compress) {
    space.compression = rocksdb::kLZ4Compression;
    space.bottommost_compression = rocksdb::kLZ4Compression;
  } else {
    space.compression = rocksdb::kNoCompression;
    space.bottommost_compression = rocksdb::kNoCompression;
  }
  return space;
}

}  // namespace orrery::storage
