#include "storage/store.h"

#include <future>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "storage/store_test_support.h"

namespace orrery::storage {
namespace {

using Call = WatchedEngine::Call;

TEST(StoreTest, EachGroupCountsItsOwnEntriesFromOne) {
  RunningStore store{Disks()};
  EXPECT_EQ(*store.Put(GroupId(1), "a", "1"), Lsn(1));
  EXPECT_EQ(*store.Put(GroupId(2), "b", "2"), Lsn(1));
  EXPECT_EQ(*store.Put(GroupId(1), "c", "3"), Lsn(2));
  EXPECT_EQ(store->Record(GroupId(1)).applied, Lsn(2));
  EXPECT_EQ(store->Record(GroupId(1)).totals, (Totals{2, 2}));
  EXPECT_EQ(store->Record(GroupId(3)).applied, Lsn(0));
}

void CheckOrder(StoreOptions options) {
  RunningStore store(Disks(), std::move(options));
  std::mutex mutex;
  std::map<uint64_t, std::vector<uint64_t>> answered;
  std::vector<std::thread> threads;
  for (uint64_t group = 1; group <= 3; ++group) {
    threads.emplace_back([&, group] {
      for (int i = 1; i <= 200; ++i) {
        WriteSet set = RunningStore::PutOf("g" + std::to_string(group), std::to_string(i));
        store->Commit(GroupId(group), CommandOf(set), nullptr,
                      [&, group](const Status& status, Lsn lsn) {
                        ASSERT_TRUE(status.ok());
                        std::lock_guard lock(mutex);
                        answered[group].push_back(lsn.value());
                      });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  store->Stop();
  for (uint64_t group = 1; group <= 3; ++group) {
    ASSERT_EQ(answered[group].size(), 200u);
    EXPECT_TRUE(std::is_sorted(answered[group].begin(), answered[group].end()));
    EXPECT_EQ(store.Get("g" + std::to_string(group)), "200");
  }
}

TEST(StoreTest, EntriesOfAGroupAreAppliedAndAnsweredInTheOrderOfTheirCalls) { CheckOrder({}); }

TEST(StoreTest, WithPeriodicDurabilityTheOrderIsTheSame) {
  CheckOrder({.durability = Durability::kPeriodic});
}

TEST(StoreTest, WhatIsReportedIsAppliedWithPeriodicDurabilityToo) {
  RunningStore store(Disks(), {.durability = Durability::kPeriodic});
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(store.Put(GroupId(1), "a", std::to_string(i)));
    ASSERT_EQ(store.Get("a"), std::to_string(i));
  }
}

// What was cut never reaches a table file.
TEST(StoreTest, TheLogIsFlushedAfterItWasCut) {
  std::promise<void> flushed;
  std::atomic<int> state_flushes = 0;
  auto log = [&, first = std::make_shared<std::atomic<bool>>(true)](Call call) {
    if (call == Call::kFlush && first->exchange(false)) {
      EXPECT_GT(state_flushes.load(), 0);
      flushed.set_value();
    }
    return Status::Ok();
  };
  auto state = [&](Call call) {
    state_flushes += call == Call::kFlush ? 1 : 0;
    return Status::Ok();
  };
  RunningStore store(Disks(), {.cut_after_bytes = 1}, log, state);
  ASSERT_TRUE(store.Put(GroupId(1), "a", "1"));
  EXPECT_EQ(flushed.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(StoreTest, WhatWaitsIsWrittenTogether) {
  std::atomic<int> writes = 0;
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  auto before = [&, first = std::make_shared<std::atomic<bool>>(true)](Call call) {
    if (call == Call::kWrite) {
      ++writes;
      if (first->exchange(false)) {
        gone.wait();
      }
    }
    return Status::Ok();
  };
  RunningStore store(Disks(), {}, before);
  std::vector<std::future<Result<Lsn>>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(store.Commit(GroupId(1), RunningStore::PutOf("k", "v")));
  }
  go.set_value();
  for (auto& one : all) {
    EXPECT_TRUE(one.get());
  }
  EXPECT_LE(writes, 3) << "the first, and those that came while it was written";
}

TEST(StoreTest, AfterAFailedLogWriteNothingIsWrittenAndReadsGoOn) {
  std::atomic<bool> broken = false;
  Disks disks;
  {
    RunningStore store(disks, {}, [&](Call) {
      return broken ? Status(Code::kUnknownOutcome, "no more") : Status::Ok();
    });
    ASSERT_TRUE(store.Put(GroupId(1), "a", "1"));
    broken = true;
    EXPECT_EQ(store.Put(GroupId(1), "b", "2").error().code(), Code::kUnknownOutcome);
    broken = false;
    EXPECT_EQ(store.Put(GroupId(1), "c", "3").error().code(), Code::kUnavailable);
    EXPECT_EQ(store.Put(GroupId(2), "d", "4").error().code(), Code::kUnavailable);
    EXPECT_FALSE(store->healthy());
    EXPECT_EQ(store.Get("a"), "1");
    EXPECT_EQ(store.Get("b") + store.Get("c") + store.Get("d"), "");
  }
  RunningStore again(disks);
  EXPECT_TRUE(again.recovered.ok());
  EXPECT_EQ(*again.Put(GroupId(1), "c", "3"), Lsn(2)) << "the failed entry left nothing";
}

TEST(StoreTest, AfterAFailedApplyTheWriteIsUnknownAndARestartBringsIt) {
  std::atomic<bool> broken = false;
  Disks disks;
  {
    RunningStore store(disks, {}, {}, [&](Call call) {
      return broken && call == Call::kWrite ? Status(Code::kUnavailable, "no more") : Status::Ok();
    });
    ASSERT_TRUE(store.Put(GroupId(1), "a", "1"));
    broken = true;
    EXPECT_EQ(store.Put(GroupId(1), "b", "2").error().code(), Code::kUnknownOutcome);
    broken = false;
    EXPECT_EQ(store.Put(GroupId(1), "c", "3").error().code(), Code::kUnavailable);
    EXPECT_EQ(store.Get("b"), "");
    EXPECT_EQ(store->Record(GroupId(1)).applied, Lsn(1));
  }
  RunningStore again(disks);
  ASSERT_TRUE(again.recovered.ok()) << again.recovered.ToString();
  EXPECT_EQ(again.Get("b"), "2");
  EXPECT_EQ(again->Record(GroupId(1)).applied, Lsn(2));
}

TEST(StoreTest, AnEntryThatCannotBeReadStopsTheNodeFromApplyingMore) {
  RunningStore store{Disks()};
  auto done = std::make_shared<std::promise<Status>>();
  store->Commit(GroupId(1), CommandOf("not a write set"), nullptr,
                [done](const Status& status, Lsn) { done->set_value(status); });
  EXPECT_EQ(done->get_future().get().code(), Code::kUnknownOutcome);
  EXPECT_FALSE(store->healthy());
}

TEST(StoreTest, AQueueThatIsFullRefusesAndUsesNoIndex) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  StoreOptions options;
  options.queue_bytes_max = 2000;
  RunningStore store(Disks(), options, [&](Call) {
    gone.wait();
    return Status::Ok();
  });
  std::vector<std::future<Result<Lsn>>> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(store.Commit(GroupId(1), RunningStore::PutOf("k", std::string(400, 'x'))));
  }
  go.set_value();
  uint64_t last = 0;
  int refused = 0;
  for (auto& one : all) {
    Result<Lsn> lsn = one.get();
    if (lsn) {
      EXPECT_EQ(lsn->value(), ++last);
    } else {
      EXPECT_EQ(lsn.error().code(), Code::kUnavailable);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(last, 0u);
  EXPECT_TRUE(Eventually([&] { return store.Put(GroupId(1), "k", "v").has_value(); }));
}

TEST(StoreTest, AWriteAfterStopIsRefused) {
  RunningStore store{Disks()};
  store->Stop();
  EXPECT_EQ(store.Put(GroupId(1), "a", "1").error().code(), Code::kUnavailable);
}

// --- cutting and forgetting ----------------------------------------------------------------------

TEST(StoreTest, ACutLogKeepsItsTrailAndWhatComesAfterIsReplayed) {
  StoreOptions options;
  options.trail_entries = 10;
  Disks disks;
  Disks cut;
  {
    RunningStore store(disks, options);
    for (int i = 1; i <= 100; ++i) {
      ASSERT_TRUE(store.Put(GroupId(1), "k" + std::to_string(i), "v"));
      if (i % 30 == 0) {
        ASSERT_TRUE(store->CutLog().ok());
        EXPECT_EQ(CountLog(*store), 10u);
      }
    }
    cut = disks.AfterPowerCut();
  }
  RunningStore store(cut, options);
  ASSERT_TRUE(store.recovered.ok()) << store.recovered.ToString();
  EXPECT_EQ(store->Record(GroupId(1)).totals, (Totals{100, 100}));
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(store.Get("k" + std::to_string(i)), "v") << i;
  }
  EXPECT_EQ(*store.Put(GroupId(1), "next", "v"), Lsn(101));
}

TEST(StoreTest, TheLogIsCutByItselfWhenItHasGrown) {
  StoreOptions options;
  options.trail_entries = 5;
  options.cut_after_bytes = 20'000;
  RunningStore store(Disks(), options);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store.Put(GroupId(1), "k", std::string(1000, 'x')));
  }
  EXPECT_TRUE(Eventually([&] { return CountLog(*store) < 100; }));
}

TEST(StoreTest, AForgottenGroupLeavesNothing) {
  RunningStore store{Disks()};
  store.Put(GroupId(1), "a", "1");
  store.Put(GroupId(2), "b", "1");
  ASSERT_TRUE(store->Forget({GroupId(1)}).ok());
  EXPECT_EQ(store->Record(GroupId(1)).applied, Lsn(0));
  EXPECT_EQ(CountLog(*store), 1u);
}

// The records of a group must not go before its log: a log without its beginning cannot be
// replayed.
TEST(StoreTest, APowerCutAroundForgettingAGroupWhoseLogWasCutDoesNotKeepTheNodeDown) {
  for (int at = 0; at < 6; ++at) {
    StoreOptions options;
    options.trail_entries = 2;
    Disks disks;
    std::mutex mutex;
    int calls = -1;
    std::optional<Disks> cut;
    auto before = [&](Call) {
      std::lock_guard lock(mutex);
      if (calls >= 0 && calls++ == at) {
        cut = disks.AfterPowerCut();
      }
      return Status::Ok();
    };
    {
      RunningStore store(disks, options, before, before);
      for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(store.Put(GroupId(1), "a", "1"));
        ASSERT_TRUE(store.Put(GroupId(2), "b", "1"));
      }
      ASSERT_TRUE(store->CutLog().ok());
      {
        std::lock_guard lock(mutex);
        calls = 0;
      }
      ASSERT_TRUE(store->Forget({GroupId(1)}).ok());
      ASSERT_TRUE(store->CutLog().ok());
      std::lock_guard lock(mutex);
      cut = cut ? *cut : disks.AfterPowerCut();
      calls = -1;
    }
    RunningStore again(*cut, options);
    EXPECT_TRUE(again.recovered.ok()) << at << ": " << again.recovered.ToString();
    EXPECT_EQ(again->Record(GroupId(2)).applied, Lsn(20));
  }
}

}  // namespace
}  // namespace orrery::storage
