// Power cuts at any point of a load: nothing that was acknowledged is lost, nothing is half
// applied.
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/engine_test_support.h"
#include "storage/item.h"
#include "storage/store.h"

namespace orrery::storage {
namespace {

constexpr int kGroups = 3;
constexpr int kWriters = 3;

EngineOptions NodeLog() { return {.spaces = LogSpaces(), .compress = false}; }
EngineOptions NodeState() { return StateEngineOptions(); }

// Each set writes its number under two keys of its writer and one key of its own; all or none of
// them may be there.
WriteSet PairOf(int group, int writer, int number) {
  std::string name = std::to_string(group) + "/" + std::to_string(writer) + "/";
  WriteSet set;
  set.PutItem(name + "left", EncodeItem({}, std::to_string(number)));
  set.Put(Space::kIndex, name + "right", std::to_string(number));
  set.PutItem(name + std::to_string(number), EncodeItem({}, ""));
  set.change = {.bytes = number, .items = 1};
  return set;
}

struct Load {
  std::atomic<bool> stop = false;
  std::atomic<int> acknowledged[kGroups][kWriters] = {};
  std::vector<std::thread> threads;

  void Start(Store& store) {
    for (int group = 0; group < kGroups; ++group) {
      for (int writer = 0; writer < kWriters; ++writer) {
        threads.emplace_back([this, &store, group, writer] { Write(store, group, writer); });
      }
    }
  }
  void Write(Store& store, int group, int writer) {
    for (int number = 1; !stop; ++number) {
      std::atomic<int> answer = 0;
      LogEntry entry{
          .payload = std::make_shared<const std::string>(PairOf(group, writer, number).Encode())};
      store.Commit(GroupId(group + 1), std::move(entry), nullptr,
                   [&answer](const Status& status, Lsn) {
                     answer = status.ok() ? 1 : 2;
                     answer.notify_one();
                   });
      answer.wait(0);
      ASSERT_EQ(answer, 1);
      acknowledged[group][writer] = number;
    }
  }
  void End() {
    stop = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
};

std::string Get(Engine& state, Space space, const std::string& key) {
  std::string value;
  if (!state.Get(Index(space), key, &value).ok()) {
    return "0";
  }
  return space == Space::kItems ? std::string(DecodeItem(value)->payload) : value;
}

// What every state after a cut must say, given what was acknowledged before it.
void CheckState(Store& store, const int (&acknowledged)[kGroups][kWriters]) {
  for (int group = 0; group < kGroups; ++group) {
    int64_t bytes = 0;
    int64_t items = 0;
    for (int writer = 0; writer < kWriters; ++writer) {
      std::string name = std::to_string(group) + "/" + std::to_string(writer) + "/";
      std::string left = Get(store.state(), Space::kItems, name + "left");
      EXPECT_EQ(left, Get(store.state(), Space::kIndex, name + "right")) << "half a set";
      int number = std::stoi(left);
      EXPECT_GE(number, acknowledged[group][writer]) << "an acknowledged write is gone";
      std::string value;
      for (int i = 1; i <= number; ++i) {
        EXPECT_TRUE(store.state().Get(Index(Space::kItems), name + std::to_string(i), &value).ok());
        bytes += i;
        items += 1;
      }
      std::string beyond = name + std::to_string(number + 1);
      EXPECT_FALSE(store.state().Get(Index(Space::kItems), beyond, &value).ok());
    }
    EXPECT_EQ(store.Record(GroupId(group + 1)).totals, (Totals{bytes, items}));
    EXPECT_EQ(store.Record(GroupId(group + 1)).applied, Lsn(static_cast<uint64_t>(items)));
  }
}

class PowerCutTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Seeds, PowerCutTest, testing::Range(1, 4));

TEST_P(PowerCutTest, ACutUnderLoadLosesNothingAcknowledgedAndHalvesNothing) {
  SeededRandom random(static_cast<uint64_t>(GetParam()));
  StoreOptions options;
  options.trail_entries = 8;
  options.cut_after_bytes = 10'000;  // so that cuts of the log fall among the writes
  auto log = MakeMemoryDisk();
  auto state = MakeMemoryDisk();
  Store store(OpenMemoryEngine(log, NodeLog()), OpenMemoryEngine(state, NodeState()), options);
  ASSERT_TRUE(store.Recover([](GroupId, Lsn, const WriteSetView&) {}).ok());
  store.Start();
  Load load;
  load.Start(store);
  for (int cut = 0; cut < 10; ++cut) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.Next() % 8000));
    int before[kGroups][kWriters];
    for (int group = 0; group < kGroups; ++group) {
      for (int writer = 0; writer < kWriters; ++writer) {
        before[group][writer] = load.acknowledged[group][writer];
      }
    }
    // The log first: what is cut from it later must not be missed.
    auto log_after = CopyOfMemoryDisk(*log);
    auto state_after = CopyOfMemoryDisk(*state);
    CrashMemoryDisk(*log_after);
    CrashMemoryDisk(*state_after);
    Store after(OpenMemoryEngine(log_after, NodeLog()), OpenMemoryEngine(state_after, NodeState()),
                options);
    Status recovered = after.Recover([](GroupId, Lsn, const WriteSetView&) {});
    ASSERT_TRUE(recovered.ok()) << recovered.ToString();
    CheckState(after, before);
    if (HasFailure()) {
      break;
    }
  }
  load.End();
  store.Stop();
}

TEST(CheckpointTest, ACopyTakenUnderLoadIsConsistentAndHasWhatWasAcknowledged) {
  TempFolder folder;
  StoreOptions options;
  options.trail_entries = 8;
  options.cut_after_bytes = 50'000;
  Store store(MustOpen(folder / "log", NodeLog()), MustOpen(folder / "state", NodeState()),
              options);
  ASSERT_TRUE(store.Recover([](GroupId, Lsn, const WriteSetView&) {}).ok());
  store.Start();
  Load load;
  load.Start(store);
  for (int copy = 0; copy < 3; ++copy) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    int before[kGroups][kWriters];
    for (int group = 0; group < kGroups; ++group) {
      for (int writer = 0; writer < kWriters; ++writer) {
        before[group][writer] = load.acknowledged[group][writer];
      }
    }
    std::string to = folder / ("copy" + std::to_string(copy));
    fs::create_directory(to);
    Status copied = store.Checkpoint(to);
    ASSERT_TRUE(copied.ok()) << copied.ToString();
    Store after(MustOpen(to + "/log", NodeLog()), MustOpen(to + "/state", NodeState()), options);
    Status recovered = after.Recover([](GroupId, Lsn, const WriteSetView&) {});
    ASSERT_TRUE(recovered.ok()) << recovered.ToString();
    CheckState(after, before);
  }
  load.End();
  store.Stop();
}

}  // namespace
}  // namespace orrery::storage
