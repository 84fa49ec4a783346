#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include "base/check.h"
#include "base/log.h"
#include "storage/engine.h"
#include "storage/rocks_log_files.h"
#include "storage/rocks_options.h"
#include "storage/rocks_table_files.h"

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWriteFilesBytes = 1 << 20;  // of one batch

rocksdb::Slice ToSlice(std::string_view view) { return {view.data(), view.size()}; }
std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Remembers why a store takes no more writes. Called from RocksDB's threads and from writers.
class FailureListener final : public rocksdb::EventListener {
 public:
  explicit FailureListener(bool log_files) : log_files_(log_files) {}

  Status Check() const {
    if (!failed_.load(std::memory_order_acquire)) {
      return Status::Ok();
    }
    std::lock_guard lock(mutex_);
    return Status(Code::kUnavailable, "the store takes no writes after: " + why_);
  }

  void Fail(const std::string& why) {
    std::lock_guard lock(mutex_);
    if (!failed_) {
      log::Error("storage failed", {{"why", why}});
      why_ = why;
      failed_.store(true, std::memory_order_release);
    }
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (error->severity() >= rocksdb::Status::Severity::kHardError) {
      Fail(error->ToString());
    } else {
      log::Warning("storage error", {{"why", error->ToString()}});
    }
  }

  // A store without a log continues once there is space again: nothing that was durable is in
  // doubt.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* recover) override {
    *recover = !log_files_;
  }
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (!log_files_ && info.new_bg_error.ok()) {
      failed_.store(false, std::memory_order_release);
    }
  }

 private:
  const bool log_files_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::string why_;
};

class RocksSnapshot final : public Snapshot {
 public:
  explicit RocksSnapshot(rocksdb::DB& db) : db_(db), snapshot_(db.GetSnapshot()) {}
  ~RocksSnapshot() override { db_.ReleaseSnapshot(snapshot_); }
  const rocksdb::Snapshot* get() const { return snapshot_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Snapshot* snapshot_;
};

const rocksdb::Snapshot* Unwrap(const Snapshot* snapshot) {
  return snapshot == nullptr ? nullptr : static_cast<const RocksSnapshot*>(snapshot)->get();
}

rocksdb::ReadOptions ToReadOptions(ReadMode mode, const Snapshot* snapshot) {
  rocksdb::ReadOptions read;
  read.snapshot = Unwrap(snapshot);
  read.fill_cache = mode != ReadMode::kPassing;
  return read;
}

// Moves a value that was found to where it is wanted.
void Take(rocksdb::PinnableSlice& found, std::string* value) {
  if (found.IsPinned()) {
    value->assign(found.data(), found.size());
  } else if (found.GetSelf() != value) {
    *value = std::move(*found.GetSelf());
  }
}

// Of reads; see Engine::damage_met.
class DamageCount {
 public:
  uint64_t met() const { return met_.load(std::memory_order_acquire); }
  Status Seen(Status status) {
    if (status.code() == Code::kCorruption) {
      met_.fetch_add(1, std::memory_order_acq_rel);
    }
    return status;
  }

 private:
  std::atomic<uint64_t> met_ = 0;
};

class RocksIterator final : public Iterator {
 public:
  RocksIterator(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* space, std::string_view lower,
                std::string_view upper, const Snapshot* snapshot, ReadMode mode,
                DamageCount& damage)
      : damage_(damage),
        quick_(mode == ReadMode::kMemoryOnly),
        lower_(lower),
        upper_(upper),
        lower_slice_(lower_),
        upper_slice_(upper_) {
    const WithoutWaiting quick(quick_);
    rocksdb::ReadOptions read = ToReadOptions(quick_ ? ReadMode::kMayWait : mode, snapshot);
    read.iterate_lower_bound = lower_.empty() ? nullptr : &lower_slice_;
    read.iterate_upper_bound = upper_.empty() ? nullptr : &upper_slice_;
    iterator_.reset(db.NewIterator(read, space));
  }

  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override {
    const WithoutWaiting quick(quick_);
    iterator_->SeekToFirst();
  }
  void SeekToLast() override {
    const WithoutWaiting quick(quick_);
    iterator_->SeekToLast();
  }
  void Seek(std::string_view key) override {
    const WithoutWaiting quick(quick_);
    iterator_->Seek(ToSlice(key));
  }
  void Next() override {
    const WithoutWaiting quick(quick_);
    iterator_->Next();
  }
  void Prev() override {
    const WithoutWaiting quick(quick_);
    iterator_->Prev();
  }
  std::string_view key() const override { return View(iterator_->key()); }
  std::string_view value() const override { return View(iterator_->value()); }
  Status status() const override { return damage_.Seen(ToStatus(iterator_->status())); }

 private:
  DamageCount& damage_;
  const bool quick_;  // does not wait for the disk
  // RocksDB keeps pointers to the slices.
  const std::string lower_;
  const std::string upper_;
  const rocksdb::Slice lower_slice_;
  const rocksdb::Slice upper_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksEngine final : public Engine {
 public:
  explicit RocksEngine(EngineOptions options) : options_(std::move(options)) {
    ORRERY_CHECK(!options_.spaces.empty());
    listener_ = std::make_shared<FailureListener>(options_.log_files);
    space_options_ = MakeSpaceOptions(options_, rocksdb::NewLRUCache(options_.cache_bytes));
  }

  ~RocksEngine() override {
    if (db_ != nullptr && options_.log_files && !options_.read_only) {
      IgnoreError(Flush(), "only spares the next start the replay of the log");
    }
    Close();
  }

  Status Open(const std::string& folder, bool recycle) {
    rocksdb::DBOptions db_options = MakeStoreOptions(options_, recycle, listener_);
    environment_ = recycle ? MakeLogEnvironment() : MakeTableEnvironment();
    db_options.env = environment_.get();
    // All stores share these threads: a merge of the log does not wait for one of the state.
    environment_->IncBackgroundThreadsIfNeeded(2, rocksdb::Env::Priority::LOW);
    if (!recycle && options_.log_files) {
      guard_ = MakeSequenceGuard();
      db_options.wal_filter = guard_.get();
    }
    std::vector<rocksdb::ColumnFamilyDescriptor> spaces;
    for (const std::string& name : options_.spaces) {
      // RocksDB insists on the name of the first.
      spaces.emplace_back(spaces.empty() ? rocksdb::kDefaultColumnFamilyName : name,
                          space_options_);
    }
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status =
        options_.read_only
            ? rocksdb::DB::OpenForReadOnly(db_options, folder, spaces, &handles_, &db)
            : rocksdb::DB::Open(db_options, folder, spaces, &handles_, &db);
    db_.reset(db);
    return ToStatus(status);
  }

  void Close() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      IgnoreError(ToStatus(db_->DestroyColumnFamilyHandle(handle)), "fails only for a null handle");
    }
    handles_.clear();
    db_.reset();
  }

  Status Get(SpaceIndex space, std::string_view key, std::string* value, ReadMode mode,
             const Snapshot* snapshot) override {
    // Not read_tier: with it MultiGet reads the file all the same, and forgets what it read.
    const WithoutWaiting quick(mode == ReadMode::kMemoryOnly);
    value->clear();
    rocksdb::PinnableSlice found(value);
    const rocksdb::Status status =
        db_->Get(ToReadOptions(mode, snapshot), Space(space), ToSlice(key), &found);
    if (!status.ok()) {
      return damage_.Seen(ToStatus(status));
    }
    Take(found, value);
    return Status::Ok();
  }

  Status GetAll(SpaceIndex space, std::span<KeyRead> reads, ReadMode mode) override {
    ORRERY_CHECK(reads.size() <= kKeyReadsMax);
    std::array<rocksdb::Slice, kKeyReadsMax> keys;
    std::array<rocksdb::PinnableSlice, kKeyReadsMax> found;
    std::array<rocksdb::Status, kKeyReadsMax> statuses;
    for (size_t i = 0; i < reads.size(); ++i) {
      keys[i] = ToSlice(reads[i].key);
    }
    // Of one space, RocksDB reads all of them at one point of the sequence of writes.
    const WithoutWaiting quick(mode == ReadMode::kMemoryOnly);
    db_->MultiGet(ToReadOptions(mode, nullptr), Space(space), reads.size(), keys.data(),
                  found.data(), statuses.data());
    Status first;
    for (size_t i = 0; i < reads.size(); ++i) {
      reads[i].found = statuses[i].ok();
      if (reads[i].found) {
        Take(found[i], &reads[i].value);
      } else if (first.ok() && !statuses[i].IsNotFound()) {
        first = damage_.Seen(ToStatus(statuses[i]));
      }
    }
    return first;
  }

  Status Write(const Batch& batch, WriteMode mode) override {
    if (batch.empty()) {
      return Status::Ok();
    }
    ORRERY_RETURN_IF_ERROR(listener_->Check());
    rocksdb::WriteBatch out(batch.bytes() + 16 * batch.count());
    ORRERY_RETURN_IF_ERROR(Convert(batch, &out));
    rocksdb::WriteOptions write;
    write.disableWAL = !options_.log_files;
    write.sync = options_.log_files && mode == WriteMode::kSynced;
    const rocksdb::Status status = db_->Write(write, &out);
    if (status.IsIOError() && options_.log_files) {
      listener_->Fail(status.ToString());
      return Status(Code::kUnknownOutcome, status.ToString());
    }
    return ToStatus(status);
  }

  Status SyncLog() override {
    if (!options_.log_files) {
      return Status::Ok();
    }
    ORRERY_RETURN_IF_ERROR(listener_->Check());
    const rocksdb::Status status = db_->SyncWAL();
    if (!status.ok()) {
      listener_->Fail(status.ToString());
    }
    return ToStatus(status);
  }

  Status Flush() override { return ToStatus(db_->Flush(rocksdb::FlushOptions(), handles_)); }

  std::unique_ptr<Snapshot> NewSnapshot() override { return std::make_unique<RocksSnapshot>(*db_); }

  std::unique_ptr<Iterator> NewIterator(SpaceIndex space, std::string_view lower,
                                        std::string_view upper, const Snapshot* snapshot,
                                        ReadMode mode) override {
    return std::make_unique<RocksIterator>(*db_, Space(space), lower, upper, snapshot, mode,
                                           damage_);
  }

  Status Ingest(const std::vector<IngestFile>& files) override;
  Status WriteIngestFile(SpaceIndex space, const std::string& path,
                         const std::function<bool(std::string*, std::string*)>& pairs) override;
  Status ReadIngestBounds(const std::string& path, std::string* first, std::string* last) override;
  Status Checkpoint(const std::string& folder) override;
  uint64_t ApproximateBytes(SpaceIndex space, std::string_view begin,
                            std::string_view end) override;
  Status Compact() override;
  uint64_t damage_met() const override { return damage_.met(); }

 private:
  rocksdb::ColumnFamilyHandle* Space(SpaceIndex space) const {
    ORRERY_CHECK(space < options_.spaces.size());
    return handles_[space];
  }

  Status Convert(const Batch& batch, rocksdb::WriteBatch* out) const;
  Status WriteFiles(std::vector<IngestFile> files);

  const EngineOptions options_;
  DamageCount damage_;
  std::shared_ptr<FailureListener> listener_;
  rocksdb::ColumnFamilyOptions space_options_;
  // db_ keeps pointers to these two.
  std::unique_ptr<rocksdb::Env> environment_;
  std::unique_ptr<rocksdb::WalFilter> guard_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // as options_.spaces
};

Status RocksEngine::Convert(const Batch& batch, rocksdb::WriteBatch* out) const {
  rocksdb::Status status;
  batch.ForEach([&](const Batch::Change& change) {
    if (!status.ok()) {
      return;
    }
    rocksdb::ColumnFamilyHandle* space = Space(change.space);
    const rocksdb::Slice key = ToSlice(change.key);
    switch (change.kind) {
      case Batch::Change::Kind::kPut: status = out->Put(space, key, ToSlice(change.value)); break;
      case Batch::Change::Kind::kMerge:
        ORRERY_CHECK(options_.merger != nullptr);
        status = out->Merge(space, key, ToSlice(change.value));
        break;
      case Batch::Change::Kind::kDelete: status = out->Delete(space, key); break;
      case Batch::Change::Kind::kDeleteRange:
        status = out->DeleteRange(space, key, ToSlice(change.value));
        break;
    }
  });
  return ToStatus(status);
}

Status RocksEngine::Ingest(const std::vector<IngestFile>& files) {
  if (options_.log_files) {
    return Status(Code::kNotSupported, "files cannot be added to a store with log files");
  }
  ORRERY_RETURN_IF_ERROR(listener_->Check());
  // The files are durable at once; what was written before them must not be lost behind them.
  ORRERY_RETURN_IF_ERROR(Flush());
  std::map<SpaceIndex, rocksdb::IngestExternalFileArg> by_space;
  for (const IngestFile& file : files) {
    rocksdb::IngestExternalFileArg& arg = by_space[file.space];
    arg.column_family = Space(file.space);
    arg.external_files.push_back(file.path);
    arg.options.move_files = true;
    arg.options.write_global_seqno = false;             // the number stands in the manifest
    arg.options.verify_checksums_before_ingest = true;  // the file may have come over a network
  }
  std::vector<rocksdb::IngestExternalFileArg> args;
  for (auto& [space, arg] : by_space) {
    args.push_back(std::move(arg));
  }
  const Status status = args.empty() ? Status::Ok() : ToStatus(db_->IngestExternalFiles(args));
  return status.code() == Code::kCorruption ? WriteFiles(files) : status;
}

// RocksDB looks into the files of the store for keys of those that come. Where they are damaged it
// cannot, although all that they had there was deleted: then the pairs are written as any others.
Status RocksEngine::WriteFiles(std::vector<IngestFile> files) {
  std::ranges::sort(files, std::greater(), &IngestFile::space);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  for (const IngestFile& file : files) {
    rocksdb::SstFileReader reader(rocksdb::Options(db_->GetDBOptions(), space_options_));
    ORRERY_RETURN_IF_ERROR(ToStatus(reader.Open(file.path)));
    const std::unique_ptr<rocksdb::Iterator> at(reader.NewIterator(rocksdb::ReadOptions()));
    rocksdb::WriteBatch batch;
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      ORRERY_RETURN_IF_ERROR(ToStatus(batch.Put(Space(file.space), at->key(), at->value())));
      if (batch.GetDataSize() >= kWriteFilesBytes) {
        ORRERY_RETURN_IF_ERROR(ToStatus(db_->Write(unlogged, &batch)));
        batch.Clear();
      }
    }
    ORRERY_RETURN_IF_ERROR(ToStatus(at->status()));
    ORRERY_RETURN_IF_ERROR(ToStatus(db_->Write(unlogged, &batch)));
  }
  return Flush();
}

Status RocksEngine::WriteIngestFile(SpaceIndex space, const std::string& path,
                                    const std::function<bool(std::string*, std::string*)>& pairs) {
  std::string key;
  std::string value;
  if (!pairs(&key, &value)) {
    return Status(Code::kNotFound, "no pairs for " + path);
  }
  rocksdb::SstFileWriter writer(
      rocksdb::EnvOptions(), rocksdb::Options(db_->GetDBOptions(), space_options_), Space(space));
  rocksdb::Status status = writer.Open(path);
  bool more = true;
  while (status.ok() && more) {
    status = writer.Put(ToSlice(key), ToSlice(value));
    more = status.ok() && pairs(&key, &value);
  }
  if (status.ok()) {
    status = writer.Finish();  // syncs
  }
  if (!status.ok()) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  return ToStatus(status);
}

Status RocksEngine::ReadIngestBounds(const std::string& path, std::string* first,
                                     std::string* last) {
  rocksdb::SstFileReader reader(rocksdb::Options(db_->GetDBOptions(), space_options_));
  rocksdb::Status status = reader.Open(path);
  if (!status.ok()) {
    return Status(Code::kCorruption, status.ToString());
  }
  const std::unique_ptr<rocksdb::Iterator> at(reader.NewIterator(rocksdb::ReadOptions()));
  at->SeekToFirst();
  if (at->Valid()) {
    *first = View(at->key());
    at->SeekToLast();
  }
  if (!at->Valid()) {
    return Status(Code::kCorruption, path + " cannot be read: " + at->status().ToString());
  }
  *last = View(at->key());
  return Status::Ok();
}

Status RocksEngine::Checkpoint(const std::string& folder) {
  rocksdb::Checkpoint* made = nullptr;
  ORRERY_RETURN_IF_ERROR(ToStatus(rocksdb::Checkpoint::Create(db_.get(), &made)));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  ORRERY_RETURN_IF_ERROR(ToStatus(db_->DisableFileDeletions()));
  Status status = ToStatus(checkpoint->CreateCheckpoint(folder));
  if (status.ok()) {
    status = UnlinkLogs(folder);
  }
  IgnoreError(ToStatus(db_->EnableFileDeletions(/*force=*/false)),
              "the copy is made; files go at the next flush");
  return status;
}

uint64_t RocksEngine::ApproximateBytes(SpaceIndex space, std::string_view begin,
                                       std::string_view end) {
  const std::string last(32, '\xff');  // beyond any key of ours
  const rocksdb::Range range(ToSlice(begin), end.empty() ? rocksdb::Slice(last) : ToSlice(end));
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  options.include_files = true;
  uint64_t bytes = 0;
  const Status status =
      ToStatus(db_->GetApproximateSizes(options, Space(space), &range, 1, &bytes));
  return status.ok() ? bytes : 0;
}

Status RocksEngine::Compact() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    ORRERY_RETURN_IF_ERROR(ToStatus(db_->CompactRange(options, handle, nullptr, nullptr)));
  }
  return Status::Ok();
}

Status Prepare(const std::string& folder, const EngineOptions& options) {
  std::error_code error;
  if (options.read_only) {
    if (!fs::exists(folder + "/CURRENT", error)) {
      return Status(Code::kUnavailable, "there is no store to read");
    }
  } else {
    fs::create_directories(folder, error);
  }
  return error ? Status(Code::kUnavailable, error.message()) : Status::Ok();
}

// See rocks_log_files.h for why in two steps.
Status OpenInSteps(RocksEngine& engine, const std::string& folder, const EngineOptions& options) {
  ORRERY_RETURN_IF_ERROR(Prepare(folder, options));
  const bool can_recycle = options.log_files && !options.read_only && options.spaces.size() == 1;
  if (can_recycle && HasLogRecords(folder)) {
    if (options.always_synced) {
      ORRERY_RETURN_IF_ERROR(CheckLogFiles(folder));
    }
    ORRERY_RETURN_IF_ERROR(engine.Open(folder, /*recycle=*/false));
    engine.Close();
  }
  return engine.Open(folder, /*recycle=*/can_recycle && !HasLogRecords(folder));
}

// Which table files are damaged: RocksDB does not always say it. Reads all of them; only after a
// failure.
std::string DamagedFiles(const std::string& folder, const std::string& message) {
  std::string names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".sst") {
      continue;
    }
    rocksdb::SstFileReader reader{rocksdb::Options()};
    rocksdb::Status status = reader.Open(entry.path().string());
    if (status.ok()) {
      status = reader.VerifyChecksum();
    }
    if (!status.ok()) {
      names += " " + entry.path().filename().string();
    }
  }
  // A file that is missing is looked for under its name of old, and reported under that.
  if (size_t at = message.find(".ldb: No such file"); at != std::string::npos && names.empty()) {
    size_t from = message.find_last_not_of("0123456789", at - 1) + 1;
    names = " " + message.substr(from, at - from) + ".sst (missing)";
  }
  return names.empty() ? names : "; damaged:" + names;
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenRocksEngine(const std::string& folder, EngineOptions options) {
  auto engine = std::make_unique<RocksEngine>(options);
  const Status status = OpenInSteps(*engine, folder, options);
  if (!status.ok()) {
    const bool corrupt = status.code() == Code::kCorruption;
    return Error(corrupt ? Code::kCorruption : Code::kUnavailable,
                 folder + ": " + status.message() +
                     (corrupt ? DamagedFiles(folder, status.message()) : std::string()));
  }
  return engine;
}

}  // namespace orrery::storage
