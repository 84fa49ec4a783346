#include "storage/engine.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/engine_test_support.h"

namespace orrery::storage {
namespace {

using Pairs = std::map<std::string, std::string, std::less<>>;
using Model = std::vector<Pairs>;

// Runs the same random operations on both engines and on a model, and compares.
class Conformance {
 public:
  Conformance(uint64_t seed, EngineOptions options) : random_(seed), options_(std::move(options)) {
    model_.resize(options_.spaces.size());
    Open();
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Step();
    }
  }

 private:
  struct View {
    std::unique_ptr<Snapshot> rocks;
    std::unique_ptr<Snapshot> memory;
    Model model;
  };

  uint64_t Below(uint64_t limit) { return random_.Next() % limit; }

  std::string Key() {
    static constexpr std::string_view kLetters("\0aAz\xff", 5);
    std::string key;
    for (uint64_t size = 1 + Below(3); key.size() < size;) {
      key.push_back(kLetters[Below(kLetters.size())]);
    }
    return key;
  }

  std::string folder() const { return folder_ / ("store" + std::to_string(crashes_)); }

  void Open() {
    rocks_ = MustOpen(folder(), options_);
    memory_ = OpenMemoryEngine(disk_, options_);
  }

  void Step() {
    const uint64_t choice = Below(100);
    if (choice < 50) {
      Write();
    } else if (choice < 70) {
      CompareReads(nullptr);
      CompareReadsAtOnce();
    } else if (choice < 82) {
      CompareIterators();
      CompareIteratorInMemory();
    } else if (choice < 86) {
      views_.push_back({rocks_->NewSnapshot(), memory_->NewSnapshot(), model_});
    } else if (choice < 90) {
      CompareAndDropView();
    } else if (choice < 94) {
      EXPECT_TRUE(rocks_->Flush().ok());
      EXPECT_TRUE(memory_->Flush().ok());
      durable_ = model_;
    } else if (choice < 96) {
      Ingest();
    } else if (choice < 97) {
      EXPECT_TRUE(rocks_->Compact().ok());
      EXPECT_TRUE(memory_->Compact().ok());
      durable_ = model_;
    } else if (choice < 99) {
      Reopen();
    } else {
      Crash();
    }
  }

  void Write() {
    Batch batch;
    for (uint64_t count = 1 + Below(4); batch.count() < count;) {
      const SpaceIndex space = static_cast<SpaceIndex>(Below(model_.size()));
      Pairs& pairs = model_[space];
      const std::string key = Key();
      const std::string value(Below(20), static_cast<char>('a' + Below(26)));
      const uint64_t kind = Below(10);
      if (kind < 5) {
        batch.Put(space, key, value);
        pairs[key] = value;
      } else if (kind < 7) {
        batch.Merge(space, key, value);
        const auto found = pairs.find(key);
        pairs[key] = (found == pairs.end() ? "new" : found->second) + "+" + value;
      } else if (kind < 9) {
        batch.Delete(space, key);
        pairs.erase(key);
      } else if (const std::string end = Key(); key < end) {
        batch.DeleteRange(space, key, end);
        pairs.erase(pairs.lower_bound(key), pairs.lower_bound(end));
      }
    }
    const WriteMode mode = static_cast<WriteMode>(Below(3));
    EXPECT_TRUE(rocks_->Write(batch, mode).ok());
    EXPECT_TRUE(memory_->Write(batch, mode).ok());
  }

  void CompareReads(const View* view) {
    const Model& model = view == nullptr ? model_ : view->model;
    for (SpaceIndex space = 0; space < model.size(); ++space) {
      const std::string key = Key();
      const auto found = model[space].find(key);
      const bool there = found != model[space].end();
      const Status expected = there ? Status::Ok() : Status(Code::kNotFound);
      std::string value;
      EXPECT_EQ(
          memory_->Get(space, key, &value, ReadMode::kMayWait, view ? view->memory.get() : nullptr)
              .code(),
          expected.code());
      EXPECT_EQ(value, there ? found->second : "");
      for (ReadMode mode : {ReadMode::kMemoryOnly, ReadMode::kMayWait}) {
        const Status status =
            rocks_->Get(space, key, &value, mode, view ? view->rocks.get() : nullptr);
        if (mode == ReadMode::kMayWait || status.code() != Code::kWouldBlock) {
          EXPECT_EQ(status.code(), expected.code()) << status.ToString();
          EXPECT_EQ(value, there ? found->second : "");
        }
      }
    }
  }

  void CompareReadsAtOnce() {
    const SpaceIndex space = static_cast<SpaceIndex>(Below(model_.size()));
    std::vector<std::string> keys(1 + Below(kKeyReadsMax));
    std::ranges::generate(keys, [this] { return Key(); });
    std::vector<KeyRead> reads(keys.begin(), keys.end());
    auto compare = [&](Engine& engine, ReadMode mode) {
      const Status status = engine.GetAll(space, reads, mode);
      if (mode == ReadMode::kMemoryOnly && status.code() == Code::kWouldBlock) {
        return;
      }
      EXPECT_TRUE(status.ok()) << status.ToString();
      for (const KeyRead& read : reads) {
        const auto found = model_[space].find(std::string(read.key));
        EXPECT_EQ(read.found, found != model_[space].end());
        EXPECT_EQ(read.found ? read.value : "", read.found ? found->second : "");
      }
    };
    compare(*memory_, ReadMode::kMayWait);
    compare(*rocks_, ReadMode::kMemoryOnly);
    compare(*rocks_, ReadMode::kMayWait);
  }

  // It gives what is there, up to where it would have to wait.
  void CompareIteratorInMemory() {
    const SpaceIndex space = static_cast<SpaceIndex>(Below(model_.size()));
    const auto at = rocks_->NewIterator(space, "", "", nullptr, ReadMode::kMemoryOnly);
    auto expected = model_[space].begin();
    for (at->SeekToFirst(); at->Valid(); at->Next(), ++expected) {
      ASSERT_NE(expected, model_[space].end());
      ASSERT_EQ(at->key(), expected->first);
      ASSERT_EQ(at->value(), expected->second);
    }
    if (at->status().code() != Code::kWouldBlock) {
      EXPECT_TRUE(at->status().ok()) << at->status().ToString();
      EXPECT_EQ(expected, model_[space].end());
    }
  }

  // Moves at random over [lower, upper), then through all of it both ways.
  void Walk(Iterator& iterator, const Pairs& all, const std::string& lower,
            const std::string& upper, SeededRandom random) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (auto at = all.lower_bound(lower); at != all.end() && (upper.empty() || at->first < upper);
         ++at) {
      pairs.push_back(*at);
    }
    const int size = static_cast<int>(pairs.size());
    int place = size;
    for (int move = 0; move < 12 + 2 * size; ++move) {
      uint64_t kind = random.Next() % 5;
      if (move >= 12) {
        kind = move == 12 ? 0 : move == 12 + size ? 1 : move < 12 + size ? 3 : 4;
      }
      if (kind == 0) {
        iterator.SeekToFirst();
        place = 0;
      } else if (kind == 1) {
        iterator.SeekToLast();
        place = size - 1;
      } else if (kind == 2) {
        const std::string key =
            size == 0 ? "a" : pairs[random.Next() % size].first + (random.Next() % 2 ? "\x01" : "");
        iterator.Seek(key);
        place = static_cast<int>(
            std::ranges::lower_bound(pairs, key, {}, [](auto& pair) { return pair.first; }) -
            pairs.begin());
      } else if (place >= 0 && place < size) {
        kind == 3 ? iterator.Next() : iterator.Prev();
        place += kind == 3 ? 1 : -1;
      } else {
        continue;
      }
      ASSERT_EQ(iterator.Valid(), place >= 0 && place < size) << iterator.status().ToString();
      if (iterator.Valid()) {
        ASSERT_EQ(iterator.key(), pairs[place].first);
        ASSERT_EQ(iterator.value(), pairs[place].second);
      }
    }
    EXPECT_TRUE(iterator.status().ok());
  }

  void CompareIterators() {
    const View* view = views_.empty() || Below(2) == 0 ? nullptr : &views_[Below(views_.size())];
    const SpaceIndex space = static_cast<SpaceIndex>(Below(model_.size()));
    const std::string lower = Below(2) == 0 ? "" : Key();
    const std::string upper = Below(2) == 0 ? "" : Key();
    const auto rocks = rocks_->NewIterator(space, lower, upper, view ? view->rocks.get() : nullptr);
    const auto memory =
        memory_->NewIterator(space, lower, upper, view ? view->memory.get() : nullptr);
    const Pairs expected = view ? view->model[space] : model_[space];
    Write();  // which they must not see
    const SeededRandom moves(random_.Next());
    Walk(*rocks, expected, lower, upper, moves);
    Walk(*memory, expected, lower, upper, moves);
  }

  void CompareAll() {
    for (SpaceIndex space = 0; space < model_.size(); ++space) {
      const SeededRandom moves(random_.Next());
      Walk(*rocks_->NewIterator(space, "", ""), model_[space], "", "", moves);
      Walk(*memory_->NewIterator(space, "", ""), model_[space], "", "", moves);
    }
  }

  void CompareAndDropView() {
    if (views_.empty()) {
      return;
    }
    const size_t place = Below(views_.size());
    for (int i = 0; i < 5; ++i) {
      CompareReads(&views_[place]);
    }
    views_.erase(views_.begin() + static_cast<ptrdiff_t>(place));
  }

  void Ingest() {
    const SpaceIndex space = static_cast<SpaceIndex>(Below(model_.size()));
    Pairs pairs;
    for (int i = 0; i < 4; ++i) {
      pairs[Key()] = "ingested";
    }
    bool accepted = true;
    for (Engine* engine : {rocks_.get(), memory_.get()}) {
      const std::string path = folder_ / "ingest";
      auto at = pairs.begin();
      EXPECT_TRUE(engine
                      ->WriteIngestFile(space, path,
                                        [&](std::string* key, std::string* value) {
                                          if (at == pairs.end()) {
                                            return false;
                                          }
                                          std::tie(*key, *value) = *at++;
                                          return true;
                                        })
                      .ok());
      const Status status = engine->Ingest({{space, path}});
      accepted = status.ok();
      EXPECT_EQ(status.code(), options_.log_files ? Code::kNotSupported : Code::kOk)
          << status.ToString();
    }
    if (accepted) {
      for (const auto& [key, value] : pairs) {
        model_[space][key] = value;
      }
      durable_ = model_;
    }
  }

  void Reopen() {
    views_.clear();
    rocks_.reset();
    memory_.reset();
    Open();
    // A RocksDB that is closed in order has written everything; the other promises only that it is
    // there.
    EXPECT_TRUE(memory_->Flush().ok());
    durable_ = model_;
    CompareAll();
  }

  // A kill keeps what is in a log file, synced or not, and a power cut does not: sync first, to
  // compare.
  void Crash() {
    if (options_.log_files) {
      EXPECT_TRUE(rocks_->SyncLog().ok());
      EXPECT_TRUE(memory_->SyncLog().ok());
      durable_ = model_;
    }
    views_.clear();
    const std::string old = folder();
    ++crashes_;
    CopyAsKilled(old, folder());
    rocks_.reset();
    fs::remove_all(old);
    memory_.reset();
    CrashMemoryDisk(*disk_);
    model_ = durable_;
    model_.resize(options_.spaces.size());
    Open();
    CompareAll();
  }

  SeededRandom random_;
  const EngineOptions options_;
  TempFolder folder_;
  std::shared_ptr<MemoryDisk> disk_ = MakeMemoryDisk();
  int crashes_ = 0;
  std::unique_ptr<Engine> rocks_;
  std::unique_ptr<Engine> memory_;
  Model model_;
  Model durable_;
  std::vector<View> views_;  // destroyed before the engines
};

TEST(EngineTest, EnginesAndModelAgreeOnRandomOperations) {
  const std::pair<const char*, EngineOptions> stores[] = {
      {"log", LogOptions()}, {"two-space log", TwoSpaceLogOptions()}, {"state", StateOptions()}};
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const auto& [name, options] : stores) {
      SCOPED_TRACE(name + (", seed " + std::to_string(seed)));
      Conformance(seed, options).Run(250);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(EngineTest, MissingKeyIsNotFoundInEveryMode) {
  TempFolder folder;
  const auto rocks = MustOpen(folder / "store", LogOptions());
  const auto memory = OpenMemoryEngine(MakeMemoryDisk(), LogOptions());
  for (Engine* engine : {rocks.get(), memory.get()}) {
    EXPECT_EQ(Read(*engine, "nobody"), NameOf(Code::kNotFound));
    EXPECT_EQ(Read(*engine, "nobody", ReadMode::kMemoryOnly), NameOf(Code::kNotFound));
  }
}

// In memory only: TSan cannot see into RocksDB.
TEST(EngineTest, ThreadsSeeWholeBatches) {
  const auto engine = OpenMemoryEngine(MakeMemoryDisk(), LogOptions());
  std::atomic<bool> done = false;
  const auto read = [&] {
    while (!done) {
      const auto snapshot = engine->NewSnapshot();
      std::string left;
      std::string right;
      const Code code = engine->Get(0, "left", &left, ReadMode::kMayWait, snapshot.get()).code();
      EXPECT_EQ(engine->Get(0, "right", &right, ReadMode::kMayWait, snapshot.get()).code(), code);
      EXPECT_EQ(left, right);
      const auto iterator = engine->NewIterator(0, "", "");
      iterator->SeekToFirst();
      left = iterator->Valid() ? iterator->value() : "";
      iterator->SeekToLast();
      EXPECT_EQ(iterator->Valid() ? iterator->value() : "", left);
    }
  };
  std::thread first(read);
  std::thread second(read);
  for (int i = 0; i < 1000; ++i) {
    Batch batch;
    batch.DeleteRange(0, "a", "z");
    batch.Put(0, "left", std::to_string(i));
    batch.Put(0, "right", std::to_string(i));
    EXPECT_TRUE(engine->Write(batch, WriteMode::kWritten).ok());
  }
  done = true;
  first.join();
  second.join();
}

TEST(EngineTest, IngestFileTakesOnlyAscendingKeys) {
  TempFolder folder;
  const auto rocks = MustOpen(folder / "store", StateOptions());
  const auto memory = OpenMemoryEngine(MakeMemoryDisk(), StateOptions());
  for (Engine* engine : {rocks.get(), memory.get()}) {
    const auto same_key = [](std::string* key, std::string*) { return *key = "k", true; };
    EXPECT_EQ(engine->WriteIngestFile(0, folder / "file", same_key).code(), Code::kInvalidArgument);
    const auto nothing = [](std::string*, std::string*) { return false; };
    EXPECT_EQ(engine->WriteIngestFile(0, folder / "file", nothing).code(), Code::kNotFound);
    EXPECT_FALSE(fs::exists(folder / "file"));
  }
}

TEST(EngineTest, PowerCutLeavesThePrefixUpToTheLastSync) {
  auto disk = MakeMemoryDisk();
  auto engine = OpenMemoryEngine(disk, LogOptions());
  ASSERT_TRUE(PutOne(*engine, "a", "1", WriteMode::kWritten).ok());
  ASSERT_TRUE(PutOne(*engine, "a", "2", WriteMode::kSynced).ok());
  ASSERT_TRUE(PutOne(*engine, "a", "3", WriteMode::kWritten).ok());
  ASSERT_TRUE(PutOne(*engine, "b", "4", WriteMode::kNoLog).ok());
  engine.reset();
  CrashMemoryDisk(*disk);
  engine = OpenMemoryEngine(disk, LogOptions());
  EXPECT_EQ(Read(*engine, "a"), "2");
  EXPECT_EQ(Read(*engine, "b"), NameOf(Code::kNotFound));
}

TEST(EngineTest, WithoutLogFilesOnlyAFlushIsDurable) {
  auto disk = MakeMemoryDisk();
  auto engine = OpenMemoryEngine(disk, StateOptions());
  ASSERT_TRUE(PutOne(*engine, "a", "1").ok());
  ASSERT_TRUE(engine->Flush().ok());
  ASSERT_TRUE(PutOne(*engine, "a", "2").ok());
  ASSERT_TRUE(engine->SyncLog().ok());
  engine.reset();
  CrashMemoryDisk(*disk);
  EXPECT_EQ(Read(*OpenMemoryEngine(disk, StateOptions()), "a"), "1");
}

}  // namespace
}  // namespace orrery::storage
