#include "replication/local_replica_set.h"

#include <future>

#include <gtest/gtest.h>

#include "storage/item.h"

namespace orrery::replication {
namespace {

using storage::Space;

storage::EngineOptions LogOptions() { return {.spaces = storage::LogSpaces()}; }
storage::EngineOptions StateOptions() { return storage::StateEngineOptions(); }

// A node on memory disks, which a power cut can befall.
struct Node {
  explicit Node(std::shared_ptr<storage::MemoryDisk> log,
                std::shared_ptr<storage::MemoryDisk> state, storage::StoreOptions options = {})
      : store(storage::OpenMemoryEngine(log, LogOptions()),
              storage::OpenMemoryEngine(state, StateOptions()), options) {
    recovered = store.Recover([this](GroupId, Lsn, const storage::WriteSetView&) { ++seen; });
    pool.Start();
    store.Start();
  }
  ~Node() {
    store.Stop();
    pool.Stop();
  }
  Result<Lsn> Commit(LocalReplicaSet& set, storage::WriteSet write) {
    std::promise<Result<Lsn>> done;
    auto task = [](LocalReplicaSet& set, storage::WriteSet write,
                   std::promise<Result<Lsn>>& done) -> runtime::Task<> {
      done.set_value(co_await set.Commit(std::move(write), set.term()));
    };
    pool.at(0).Spawn(task(set, std::move(write), done));
    return done.get_future().get();
  }
  Status recovered;
  int seen = 0;
  runtime::WorkerPool pool{1};
  storage::Store store;
};

storage::WriteSet PutOne(const std::string& key, const std::string& value) {
  storage::WriteSet set;
  set.PutItem(key, storage::EncodeItem({}, value));
  set.change = {.bytes = static_cast<int64_t>(value.size()), .items = 1};
  return set;
}

TEST(LocalReplicaSetTest, ACommittedSetIsAppliedWithItsLsnAndCounted) {
  Node node(storage::MakeMemoryDisk(), storage::MakeMemoryDisk());
  LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
  EXPECT_EQ(node.Commit(set, PutOne("a", "xyz"))->value(), 1u);
  EXPECT_EQ(node.Commit(set, PutOne("b", "xyz"))->value(), 2u);
  std::string value;
  ASSERT_TRUE(node.store.state().Get(storage::Index(Space::kItems), "b", &value).ok());
  EXPECT_EQ(storage::DecodeItem(value)->header.lsn, Lsn(2));
  EXPECT_EQ(set.applied(), Lsn(2));
  EXPECT_EQ(set.totals(), (storage::Totals{6, 2}));
}

TEST(LocalReplicaSetTest, TheListenerIsToldInOrderBeforeCommitReturns) {
  struct Listener final : ApplyListener {
    void OnApplied(Lsn lsn, const storage::WriteSetView& set) override {
      told.push_back(lsn.value());
      results.emplace_back(set.result);
    }
    std::vector<uint64_t> told;
    std::vector<std::string> results;
  };
  Node node(storage::MakeMemoryDisk(), storage::MakeMemoryDisk());
  LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
  Listener listener;
  set.SetListener(&listener);
  std::promise<size_t> done;
  constexpr size_t kWrites = 50;
  auto left = std::make_shared<size_t>(kWrites);
  auto task = [](LocalReplicaSet& set, Listener& listener, size_t number,
                 std::shared_ptr<size_t> left, std::promise<size_t>& done) -> runtime::Task<> {
    storage::WriteSet write = PutOne("k", "v");
    write.result = std::to_string(number);
    Result<Lsn> lsn = co_await set.Commit(std::move(write), set.term());
    EXPECT_TRUE(lsn && listener.told.size() >= lsn->value());
    EXPECT_EQ(listener.results[lsn->value() - 1], std::to_string(number));
    EXPECT_GE(set.applied(), *lsn);
    if (--*left == 0) {
      done.set_value(listener.told.size());
    }
  };
  for (size_t i = 0; i < kWrites; ++i) {
    node.pool.at(0).Spawn(task(set, listener, i, left, done));
  }
  EXPECT_EQ(done.get_future().get(), kWrites);
  EXPECT_TRUE(std::is_sorted(listener.told.begin(), listener.told.end()));
}

TEST(LocalReplicaSetTest, AfterAPowerCutTheLogBringsTheStateBack) {
  auto log = storage::MakeMemoryDisk();
  auto state = storage::MakeMemoryDisk();
  {
    Node node(log, state);
    LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(node.Commit(set, PutOne("k" + std::to_string(i), "v")));
      if (i == 40) {
        ASSERT_TRUE(node.store.CutLog().ok());
      }
    }
    // Stop() would flush: take the disks as they are now.
    log = storage::CopyOfMemoryDisk(*log);
    state = storage::CopyOfMemoryDisk(*state);
  }
  storage::CrashMemoryDisk(*log);
  storage::CrashMemoryDisk(*state);
  Node node(log, state);
  ASSERT_TRUE(node.recovered.ok()) << node.recovered.ToString();
  LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
  EXPECT_EQ(set.applied(), Lsn(100));
  EXPECT_EQ(set.totals(), (storage::Totals{100, 100}));
  std::string value;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(
        node.store.state().Get(storage::Index(Space::kItems), "k" + std::to_string(i), &value).ok())
        << i;
  }
}

TEST(LocalReplicaSetTest, TheLogIsCutButKeepsATrail) {
  auto log = storage::MakeMemoryDisk();
  auto state = storage::MakeMemoryDisk();
  storage::StoreOptions options;
  options.trail_entries = 10;
  {
    Node node(log, state, options);
    LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(node.Commit(set, PutOne("k", "v")));
    }
    ASSERT_TRUE(node.store.CutLog().ok());
  }
  Node node(log, state, options);
  EXPECT_EQ(node.seen, 10);
}

TEST(LocalReplicaSetTest, WritesAreRefusedWhileTheDiskIsNearlyFullAndResume) {
  std::atomic<uint64_t> free = 0;
  storage::StoreOptions options;
  options.free_bytes = [&free] { return free.load(); };
  Node node(storage::MakeMemoryDisk(), storage::MakeMemoryDisk(), options);
  LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
  auto refused = node.Commit(set, PutOne("a", "v"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  free = uint64_t{1} << 40;
  Result<Lsn> done = Error(Code::kUnavailable);
  for (int tries = 0; tries < 1000 && !done; ++tries) {
    done = node.Commit(set, PutOne("a", "v"));
    std::this_thread::yield();
    if (!done) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(5));  // the disk is looked at every 200 ms
    }
  }
  ASSERT_TRUE(done);
  EXPECT_EQ(*done, Lsn(1)) << "the refused write must not use an index";
}

TEST(LocalReplicaSetTest, WhatFreesSpaceGoesOnUntilAQuarterOfTheReserveIsLeft) {
  storage::StoreOptions options;
  options.free_bytes_reserve = 1000;
  std::atomic<uint64_t> free = 500;
  options.free_bytes = [&free] { return free.load(); };
  Node node(storage::MakeMemoryDisk(), storage::MakeMemoryDisk(), options);
  LocalReplicaSet set(GroupId(7), node.store, node.pool.at(0));
  EXPECT_FALSE(node.Commit(set, PutOne("a", "v")));
  storage::WriteSet remove;
  remove.Delete(Space::kItems, "a");
  remove.frees_space = true;
  EXPECT_TRUE(node.Commit(set, remove));
}

}  // namespace
}  // namespace orrery::replication
