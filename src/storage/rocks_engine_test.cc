#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "storage/engine.h"
#include "storage/engine_test_support.h"
#include "storage/rocks_log_files.h"

namespace orrery::storage {
namespace {

std::string KeyOf(int number) { return "key" + std::to_string(1000 + number); }

// Flips the bits of one byte.
void Damage(const fs::path& file, std::streamoff place) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(place);
  const char byte = static_cast<char>(~stream.get());
  stream.seekp(place);
  stream.put(byte);
}

// More files than RocksDB opens at the start: for the rest it knows nothing without reading.
void FillWithFiles(Engine& engine, const TempFolder& folder, int count) {
  for (int i = 0; i < count; ++i) {
    bool more = true;
    const auto one = [&](std::string* key, std::string* value) {
      *key = KeyOf(i);
      *value = i % 2 == 0 ? "" : "value";
      return std::exchange(more, false);
    };
    ASSERT_TRUE(engine.WriteIngestFile(0, folder / "file", one).ok());
    ASSERT_TRUE(engine.Ingest({{0, folder / "file"}}).ok());
  }
}

TEST(RocksEngineTest, MemoryOnlyReadGivesTheValueOrWouldBlock) {
  TempFolder folder;
  constexpr int kFiles = 24;
  FillWithFiles(*MustOpen(folder / "store", StateOptions()), folder, kFiles);
  const auto engine = MustOpen(folder / "store", StateOptions());
  int blocked = 0;
  for (int i = 0; i < kFiles; ++i) {
    const std::string value = i % 2 == 0 ? "" : "value";
    const std::string first = Read(*engine, KeyOf(i), ReadMode::kMemoryOnly);
    blocked += first == NameOf(Code::kWouldBlock) ? 1 : 0;
    EXPECT_TRUE(first == value || first == NameOf(Code::kWouldBlock)) << first;
    EXPECT_EQ(Read(*engine, KeyOf(i)), value);
    EXPECT_EQ(Read(*engine, KeyOf(i), ReadMode::kMemoryOnly), value);
  }
  EXPECT_GT(blocked, 0);
}

TEST(RocksEngineTest, KeysThatAreReadTogetherWaitTogether) {
  TempFolder folder;
  constexpr int kFiles = 24;
  FillWithFiles(*MustOpen(folder / "store", StateOptions()), folder, kFiles);
  const auto engine = MustOpen(folder / "store", StateOptions());
  int blocked = 0;
  for (int i = 0; i + 1 < kFiles; i += 2) {
    const std::string keys[] = {KeyOf(i), KeyOf(i + 1), "none"};
    std::vector<KeyRead> reads(std::begin(keys), std::end(keys));
    blocked += engine->GetAll(0, reads, ReadMode::kMemoryOnly).code() == Code::kWouldBlock ? 1 : 0;
    for (ReadMode mode : {ReadMode::kMayWait, ReadMode::kMemoryOnly}) {
      ASSERT_TRUE(engine->GetAll(0, reads, mode).ok());
      EXPECT_TRUE(reads[0].found && reads[0].value.empty());
      EXPECT_TRUE(reads[1].found && reads[1].value == "value");
      EXPECT_FALSE(reads[2].found);
    }
  }
  EXPECT_GT(blocked, 0);
}

TEST(RocksEngineTest, KeysThatAreReadTogetherAreOfOneMoment) {
  TempFolder folder;
  const auto engine = MustOpen(folder / "store", StateOptions());
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      Batch batch;
      batch.Put(0, "a", std::to_string(i));
      batch.Put(0, "b", std::to_string(i));
      ASSERT_TRUE(engine->Write(batch, WriteMode::kNoLog).ok());
    }
  });
  std::vector<KeyRead> reads = {{"a"}, {"b"}};
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(engine->GetAll(0, reads, ReadMode::kMemoryOnly).ok());
    ASSERT_EQ(reads[0].found, reads[1].found);
    ASSERT_EQ(reads[0].value, reads[1].value);
  }
}

TEST(RocksEngineTest, AnIteratorThatMayNotWaitSaysWhereItWould) {
  TempFolder folder;
  FillWithFiles(*MustOpen(folder / "store", StateOptions()), folder, 24);
  const auto engine = MustOpen(folder / "store", StateOptions());
  auto at = engine->NewIterator(0, "", "", nullptr, ReadMode::kMemoryOnly);
  at->SeekToFirst();
  EXPECT_FALSE(at->Valid());
  EXPECT_EQ(at->status().code(), Code::kWouldBlock);
  at = engine->NewIterator(0, "", "");
  int seen = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    ++seen;
  }
  EXPECT_EQ(seen, 24);
  at = engine->NewIterator(0, "", "", nullptr, ReadMode::kMemoryOnly);
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    --seen;
  }
  EXPECT_TRUE(at->status().ok()) << at->status().ToString();
  EXPECT_EQ(seen, 0);
}

// A store whose table files are open, and whose blocks the cache has no room for.
class SmallCacheTest : public testing::Test {
 protected:
  static constexpr int kKeys = 200;

  void SetUp() override {
    EngineOptions options = StateOptions();
    options.cache_bytes = 64 << 10;
    options.compress = false;
    engine_ = MustOpen(folder_ / "store", options);
    Batch batch;
    for (int i = 0; i < kKeys; ++i) {
      batch.Put(0, KeyOf(i), std::string(4096, static_cast<char>('a' + i % 26)));
    }
    ASSERT_TRUE(engine_->Write(batch, WriteMode::kNoLog).ok());
    ASSERT_TRUE(engine_->Flush().ok());
    ASSERT_EQ(Read(*engine_, KeyOf(0)).size(), 4096u);  // opens the file
  }
  // How many reads would wait for the disk; the others give what they should.
  int Blocked() {
    int blocked = 0;
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = KeyOf(i);
      const std::string value = Read(*engine_, key, ReadMode::kMemoryOnly);
      KeyRead one[] = {{key}};
      const Status together = engine_->GetAll(0, one, ReadMode::kMemoryOnly);
      if (value == NameOf(Code::kWouldBlock) || together.code() == Code::kWouldBlock) {
        ++blocked;
      } else {
        EXPECT_EQ(value, std::string(4096, static_cast<char>('a' + i % 26)));
        EXPECT_EQ(one[0].value, value);
      }
    }
    int seen = 0;
    const auto at = engine_->NewIterator(0, "", "", nullptr, ReadMode::kMemoryOnly);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      ++seen;
    }
    EXPECT_EQ(at->status().code(), seen == kKeys ? Code::kOk : Code::kWouldBlock);
    EXPECT_EQ(seen == kKeys, blocked == 0);
    return blocked;
  }
  void ForEachTable(const std::function<void(int file)>& act) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "store")) {
      if (entry.path().extension() == ".sst") {
        const int file = ::open(entry.path().c_str(), O_RDONLY);
        act(file);
        ::close(file);
      }
    }
  }
  void DropFromKernel() {
    ForEachTable([](int file) {
      ASSERT_EQ(::fsync(file), 0);
      ASSERT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    });
  }
  // Whether the kernel has the middle of the files, and tells it for this file system.
  bool KernelHas() {
    bool has = true;
    ForEachTable([&](int file) {
      char byte = 0;
      iovec room{&byte, 1};
      has = has && ::preadv2(file, &room, 1, kKeys * 2048, RWF_NOWAIT) == 1;
    });
    return has;
  }

  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(SmallCacheTest, WhatTheKernelHasIsReadWithoutWaiting) {
  const bool has = KernelHas();
  EXPECT_EQ(Blocked() == 0, has);
}

TEST_F(SmallCacheTest, WhatIsOnTheDiskOnlyWouldWait) {
  DropFromKernel();
  const bool has = KernelHas();  // in a file system without a disk still all of it
  EXPECT_EQ(Blocked() == 0, has);
  for (int i = 0; i < kKeys; ++i) {
    EXPECT_EQ(Read(*engine_, KeyOf(i)).size(), 4096u);
  }
}

TEST_F(SmallCacheTest, WhatIsReadTogetherStaysInTheCache) {
  const bool has = KernelHas();
  const std::string key = KeyOf(kKeys / 2);
  KeyRead first[] = {{key}};
  EXPECT_EQ(engine_->GetAll(0, first, ReadMode::kMemoryOnly).ok(), has);
  for (const fs::path& path : FilesOf(folder_ / "store", ".sst")) {
    fs::resize_file(path, 0);
  }
  KeyRead again[] = {{key}};
  EXPECT_EQ(engine_->GetAll(0, again, ReadMode::kMemoryOnly).ok(), has);
  EXPECT_EQ(again[0].value, first[0].value);
}

TEST_F(SmallCacheTest, AWalkThatPassesByTakesNobodysPlace) {
  const auto at = engine_->NewIterator(0, "", "", nullptr, ReadMode::kPassing);
  int seen = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    ++seen;
  }
  EXPECT_EQ(seen, kKeys);
  DropFromKernel();
  if (KernelHas()) {
    GTEST_SKIP()
        << "in a file system without a disk what the cache has cannot be told from the rest";
  }
  EXPECT_EQ(Read(*engine_, KeyOf(0), ReadMode::kMemoryOnly).size(), 4096u) << "read before";
  EXPECT_EQ(Read(*engine_, KeyOf(kKeys - 1), ReadMode::kMemoryOnly), NameOf(Code::kWouldBlock));
}

// How many operands its last call had.
class CountingMerger final : public Merger {
 public:
  const char* name() const override { return "counting"; }
  std::string Merge(std::string_view, const std::string_view* existing,
                    const std::vector<std::string_view>& operands) const override {
    last = operands.size();
    return std::to_string((existing == nullptr ? 0 : std::stoul(std::string(*existing))) +
                          operands.size());
  }
  mutable size_t last = 0;
};

TEST(RocksEngineTest, WhatIsMergedOftenIsFoldedMeanwhile) {
  TempFolder folder;
  const CountingMerger merger;
  EngineOptions options = StateOptions();
  options.merger = &merger;
  const auto engine = MustOpen(folder / "store", options);
  constexpr size_t kTimes = 1000;
  for (size_t i = 0; i < kTimes; ++i) {
    Batch batch;
    batch.Merge(0, "a", "x");
    ASSERT_TRUE(engine->Write(batch, WriteMode::kNoLog).ok());
  }
  EXPECT_EQ(Read(*engine, "a"), std::to_string(kTimes));
  EXPECT_LE(merger.last, 16u);
}

TEST(RocksEngineTest, DamagedFileIsNamedAndNotServed) {
  TempFolder folder;
  auto engine = MustOpen(folder / "store", StateOptions());
  ASSERT_TRUE(PutOne(*engine, "a", std::string(1000, 'x')).ok());
  ASSERT_TRUE(engine->Flush().ok());
  engine.reset();
  const std::vector<fs::path> files = FilesOf(folder / "store", ".sst");
  ASSERT_EQ(files.size(), 1u);
  Damage(files[0], 10);

  engine = MustOpen(folder / "store", StateOptions());
  std::string value;
  const Status status = engine->Get(0, "a", &value);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find(files[0].filename().string()), std::string::npos)
      << status.message();
  const auto iterator = engine->NewIterator(0, "", "");
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_EQ(iterator->status().code(), Code::kCorruption);
  EXPECT_GE(engine->damage_met(), 2u);
}

// What a replica that is made anew lives by: nobody can mend the file.
TEST(RocksEngineTest, NothingIsReadOfADamagedFileWhereItsKeysWereDeleted) {
  TempFolder folder;
  constexpr int kKeys = 1000;
  EngineOptions options = StateOptions();
  options.compress = false;
  auto engine = MustOpen(folder / "store", options);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(PutOne(*engine, KeyOf(i), std::string(100, 'x')).ok());
  }
  ASSERT_TRUE(engine->Flush().ok());
  engine.reset();
  for (const fs::path& file : FilesOf(folder / "store", ".sst")) {
    for (int place : {10, 3000, 20'000}) {
      Damage(file, place);
    }
  }
  engine = MustOpen(folder / "store", options);
  auto count = [&] {
    int keys = 0;
    const auto at = engine->NewIterator(0, "key", "kez");
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      ++keys;
    }
    return at->status().ok() ? keys : -1;
  };
  ASSERT_EQ(count(), -1);
  Batch batch;
  batch.DeleteRange(0, "key", "kez");
  ASSERT_TRUE(engine->Write(batch, WriteMode::kNoLog).ok());
  ASSERT_TRUE(engine->Flush().ok());
  const uint64_t met = engine->damage_met();
  EXPECT_EQ(count(), 0);

  int next = 0;
  const auto pairs = [&](std::string* key, std::string* value) {
    *key = KeyOf(next);
    *value = "new";
    return next++ < kKeys;
  };
  ASSERT_TRUE(engine->WriteIngestFile(0, folder / "file", pairs).ok());
  const Status status = engine->Ingest({{0, folder / "file"}});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(count(), kKeys);
  EXPECT_EQ(Read(*engine, KeyOf(0)), "new");
  EXPECT_EQ(engine->damage_met(), met);
}

TEST(RocksEngineTest, LostFileIsCorruptionAndNotAMissingKey) {
  TempFolder folder;
  FillWithFiles(*MustOpen(folder / "store", StateOptions()), folder, 24);
  const fs::path file = FilesOf(folder / "store", ".sst").back();
  fs::remove(file);
  const auto engine = OpenRocksEngine(folder / "store", StateOptions());
  Status status = engine ? Status::Ok() : engine.error();
  for (int i = 0; engine && i < 24 && status.ok(); ++i) {
    std::string value;
    status = (*engine)->Get(0, KeyOf(i), &value);
  }
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find(file.stem().string()), std::string::npos) << status.message();
}

TEST(RocksEngineTest, CheckpointOpensAsAnEngineAndStaysAsItWas) {
  for (EngineOptions options : {LogOptions(), StateOptions()}) {
    options.write_buffer_bytes = 256 << 10;
    TempFolder folder;
    auto engine = MustOpen(folder / "store", options);
    ASSERT_TRUE(PutOne(*engine, "a", "1").ok());
    ASSERT_TRUE(engine->Checkpoint(folder / "copy").ok());
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(PutOne(*engine, "a", std::string(10'000, 'x'), WriteMode::kWritten).ok());
    }
    EXPECT_EQ(Read(*MustOpen(folder / "copy", options), "a"), "1");
    EXPECT_FALSE(engine->Checkpoint(folder / "copy").ok());
  }
}

// Fills log files until one is used again; what is written last stays in the log.
void WriteUntilLogsAreReused(Engine& engine, const std::string& folder) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(PutOne(engine, KeyOf(i), std::string(10'000, 'x'), WriteMode::kWritten).ok());
  }
  ASSERT_TRUE(engine.Flush().ok());
  const std::vector<fs::path> logs = FilesOf(folder, ".log");
  ASSERT_TRUE(
      std::ranges::any_of(logs, [](const fs::path& log) { return fs::file_size(log) > 10'000; }));
  ASSERT_TRUE(PutOne(engine, KeyOf(0), "late").ok());
}

TEST(RocksEngineTest, KillWithReusedLogFilesKeepsEveryWrite) {
  TempFolder folder;
  EngineOptions options = LogOptions();
  options.write_buffer_bytes = 256 << 10;
  std::string store = folder / "store0";
  auto engine = MustOpen(store, options);
  for (int kill = 1; kill < 4; ++kill) {
    WriteUntilLogsAreReused(*engine, store);
    const std::string killed = folder / ("store" + std::to_string(kill));
    CopyAsKilled(store, killed);
    store = killed;
    engine = MustOpen(store, options);
    EXPECT_EQ(Read(*engine, KeyOf(0)), "late");
    EXPECT_EQ(Read(*engine, KeyOf(99)), std::string(10'000, 'x'));
  }
}

ino_t NodeOf(const fs::path& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return about.st_ino;
}

TEST(RocksEngineTest, AReusedLogFileWhoseNewNameWasLostIsNotTakenForDamage) {
  TempFolder folder;
  EngineOptions options = LogOptions();
  options.write_buffer_bytes = 256 << 10;
  options.always_synced = true;
  const auto engine = MustOpen(folder / "store", options);
  WriteUntilLogsAreReused(*engine, folder / "store");
  std::map<ino_t, fs::path> names;
  for (const fs::path& log : FilesOf(folder / "store", ".log")) {
    names[NodeOf(log)] = log.filename();
  }
  ASSERT_TRUE(engine->Flush().ok());
  ASSERT_TRUE(PutOne(*engine, KeyOf(0), "in nobody's log").ok());
  CopyAsKilled(folder / "store", folder / "killed");

  const fs::path newest = std::ranges::max(FilesOf(folder / "store", ".log"));
  ASSERT_TRUE(names.contains(NodeOf(newest)));
  const fs::path before = names[NodeOf(newest)];
  ASSERT_NE(before, newest.filename());
  const fs::path killed = folder / "killed";
  fs::rename(killed / newest.filename(), killed / before);
  EXPECT_EQ(Read(*MustOpen(folder / "killed", options), KeyOf(0)), "late");
}

// Tells what is done with names.
class NameFiles final : public rocksdb::FileSystemWrapper {
 public:
  NameFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "names"; }
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override {
    done.push_back("reuse");
    return FileSystemWrapper::ReuseWritableFile(name, old, options, file, debug);
  }
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override {
    done.push_back("sync " + name);
    return FileSystemWrapper::NewDirectory(name, options, directory, debug);
  }
  std::vector<std::string> done;
};

TEST(RocksEngineTest, TheNewNameOfALogFileIsDurableBeforeAnythingIsWritten) {
  TempFolder folder;
  std::ofstream(folder / "000001.log") << "old";
  const auto names = std::make_shared<NameFiles>();
  const auto environment = MakeLogEnvironment(names);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const rocksdb::IOStatus status = environment->GetFileSystem()->ReuseWritableFile(
      folder / "000002.log", folder / "000001.log", rocksdb::FileOptions(), &file, nullptr);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string parent = fs::path(folder / "000002.log").parent_path().string();
  EXPECT_EQ(names->done, (std::vector<std::string>{"reuse", "sync " + parent}));
}

TEST(RocksEngineTest, TornReusedLogFileLeavesAPrefix) {
  TempFolder folder;
  EngineOptions options = LogOptions();
  options.write_buffer_bytes = 256 << 10;
  auto engine = MustOpen(folder / "store", options);
  WriteUntilLogsAreReused(*engine, folder / "store");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(PutOne(*engine, "torn" + KeyOf(i), std::string(2'000, 'y')).ok());
  }
  CopyAsKilled(folder / "store", folder / "killed");
  for (const fs::path& log : FilesOf(folder / "killed", ".log")) {
    Damage(log, 25'000);
  }
  engine = MustOpen(folder / "killed", options);
  EXPECT_EQ(Read(*engine, KeyOf(0)), "late");
  int found = 0;
  while (Read(*engine, "torn" + KeyOf(found)).size() == 2'000) {
    ++found;
  }
  EXPECT_GT(found, 5);
  for (int i = found; i < 20; ++i) {
    EXPECT_EQ(Read(*engine, "torn" + KeyOf(i)), NameOf(Code::kNotFound));
  }
  EXPECT_LT(found, 20);
}

// Stands in for a full disk: a file may not grow over a limit.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(RocksEngineTest, FailedLogWriteStopsWritesUntilTheStoreIsOpenedAgain) {
  TempFolder folder;
  EngineOptions options = LogOptions();
  options.write_buffer_bytes = 16 << 20;  // so that the log is the first to meet the limit
  auto engine = MustOpen(folder / "store", options);
  int written = 0;
  {
    FileSizeLimit limit(512 << 10);
    Status status;
    while (status.ok()) {
      status = PutOne(*engine, KeyOf(written++), std::string(50'000, 'x'));
    }
    EXPECT_EQ(status.code(), Code::kUnknownOutcome) << status.ToString();
  }
  EXPECT_EQ(PutOne(*engine, "later", "1").code(), Code::kUnavailable);
  EXPECT_EQ(engine->SyncLog().code(), Code::kUnavailable);
  EXPECT_EQ(Read(*engine, KeyOf(0)).size(), 50'000u);

  engine.reset();
  engine = MustOpen(folder / "store", options);
  EXPECT_EQ(Read(*engine, KeyOf(written - 2)).size(), 50'000u);
  EXPECT_TRUE(PutOne(*engine, "later", "1").ok());
}

TEST(RocksEngineTest, ReadOnlyStoreSeesTheLogAndTakesNoWrites) {
  TempFolder folder;
  EngineOptions options = LogOptions();
  const auto writer = MustOpen(folder / "store", options);
  ASSERT_TRUE(PutOne(*writer, "a", "1").ok());
  options.read_only = true;
  const auto reader = MustOpen(folder / "store", options);
  EXPECT_EQ(Read(*reader, "a"), "1");
  EXPECT_EQ(PutOne(*reader, "a", "2").code(), Code::kNotSupported);
  EXPECT_EQ(OpenRocksEngine(folder / "nothing", options).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace orrery::storage
