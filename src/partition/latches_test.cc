#include "partition/latches.h"

#include <future>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "runtime/worker.h"

namespace orrery::partition {
namespace {

using runtime::Task;

constexpr Latch Shared(uint64_t name) { return {.name = name, .exclusive = false}; }
constexpr Latch Exclusive(uint64_t name) { return {.name = name, .exclusive = true}; }

// Operations with names, on one worker: Take starts one, Give ends one, entered() tells who got in.
class LatchesTest : public testing::Test {
 protected:
  LatchesTest() { pool_.Start(); }
  ~LatchesTest() override {
    OnTheWorker([this] { held_.clear(); });
    pool_.Stop();
  }

  void Take(std::string name, std::vector<Latch> wanted) {
    worker().Spawn(TakeTask(std::move(name), std::move(wanted)));
    LetTasksRun();
  }
  void Give(const std::string& name) {
    OnTheWorker([&] { held_.erase(name); });
    LetTasksRun();
  }
  // The operations that got their latches so far, in that order.
  const std::string& entered() const { return entered_; }
  size_t size() const { return latches_.size(); }

  runtime::Worker& worker() { return pool_.at(0); }
  void OnTheWorker(const std::function<void()>& work) {
    std::promise<void> done;
    worker().Post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  // What is ready runs before what is posted after it; each step of a task is posted once.
  void LetTasksRun() {
    for (int i = 0; i < 3; ++i) {
      OnTheWorker([] {});
    }
  }

  runtime::WorkerPool pool_{1};
  Latches latches_;
  std::map<std::string, Latches::Guard> held_;
  std::string entered_;

 private:
  Task<> TakeTask(std::string name, std::vector<Latch> wanted) {
    Latches::Guard guard = co_await latches_.Acquire(std::move(wanted));
    entered_ += name;
    held_[name] = std::move(guard);
  }
};

TEST_F(LatchesTest, DifferentNamesDoNotWait) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(2)});
  EXPECT_EQ(entered(), "ab");
}

TEST_F(LatchesTest, AnExclusiveLatchIsHeldByOne) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(1)});
  Take("c", {Shared(1)});
  EXPECT_EQ(entered(), "a");
}

TEST_F(LatchesTest, WaitersEnterInTheOrderInWhichTheyCame) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(1)});
  Take("c", {Exclusive(1)});
  Take("d", {Exclusive(1)});
  Give("a");
  EXPECT_EQ(entered(), "ab");
  Give("b");
  Give("c");
  EXPECT_EQ(entered(), "abcd");
}

TEST_F(LatchesTest, SharedLatchesAreHeldTogether) {
  Take("a", {Shared(1)});
  Take("b", {Shared(1)});
  Take("c", {Exclusive(1)});
  EXPECT_EQ(entered(), "ab");
  Give("a");
  EXPECT_EQ(entered(), "ab");
  Give("b");
  EXPECT_EQ(entered(), "abc");
}

TEST_F(LatchesTest, SharedLatchesDoNotOvertakeAWaitingExclusiveOne) {
  Take("a", {Shared(1)});
  Take("b", {Exclusive(1)});
  Take("c", {Shared(1)});
  Take("d", {Shared(1)});
  EXPECT_EQ(entered(), "a");
  Give("a");
  EXPECT_EQ(entered(), "ab");
  Give("b");
  EXPECT_EQ(entered(), "abcd");
}

TEST_F(LatchesTest, AnOperationWaitsForAllOfItsLatches) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(2)});
  Take("c", {Exclusive(1), Exclusive(2), Exclusive(3)});
  Give("a");
  EXPECT_EQ(entered(), "ab");
  Give("b");
  EXPECT_EQ(entered(), "abc");
}

TEST_F(LatchesTest, AWaitingOperationKeepsItsPlaceInEveryQueue) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(1), Exclusive(2)});
  Take("c", {Exclusive(2)});
  EXPECT_EQ(entered(), "a");
  Give("a");
  Give("b");
  EXPECT_EQ(entered(), "abc");
}

TEST_F(LatchesTest, DuplicatesAreMergedAndTheExclusiveOneWins) {
  Take("a", {Shared(1), Exclusive(2), Exclusive(1), Shared(1), Exclusive(2)});
  EXPECT_EQ(size(), 2u);
  Take("b", {Shared(1)});
  EXPECT_EQ(entered(), "a");
  Give("a");
  Give("b");
  EXPECT_EQ(entered(), "ab");
  EXPECT_EQ(size(), 0u);
}

TEST_F(LatchesTest, NoLatchesAreAlwaysFree) {
  Take("a", {});
  EXPECT_EQ(entered(), "a");
  EXPECT_EQ(size(), 0u);
}

TEST_F(LatchesTest, FreeLatchesAreTakenWithoutASuspension) {
  std::promise<bool> others_ran;
  auto task = [](runtime::Worker& worker, Latches& latches, std::promise<bool>& done) -> Task<> {
    auto other_ran = std::make_shared<bool>(false);
    worker.Post([other_ran] { *other_ran = true; });
    Latches::Guard guard = co_await latches.Acquire({Exclusive(1), Shared(2)});
    done.set_value(*other_ran);
  };
  worker().Spawn(task(worker(), latches_, others_ran));
  EXPECT_FALSE(others_ran.get_future().get());
}

TEST_F(LatchesTest, AMovedGuardGivesItsLatchesBackOnce) {
  Take("a", {Exclusive(1)});
  OnTheWorker([this] {
    Latches::Guard moved = std::move(held_["a"]);
    held_["a"] = Latches::Guard();
    EXPECT_EQ(latches_.size(), 1u);
    held_["a"] = std::move(moved);
    EXPECT_EQ(latches_.size(), 1u);
  });
  Give("a");
  EXPECT_EQ(size(), 0u);
}

TEST_F(LatchesTest, AssigningToAGuardGivesBackWhatItHeld) {
  Take("a", {Exclusive(1)});
  Take("b", {Exclusive(2)});
  OnTheWorker([this] { held_["a"] = std::move(held_["b"]); });
  EXPECT_EQ(size(), 1u);
}

// Many operations over few names, in sets that cross.
struct Crowd {
  static constexpr size_t kTasks = 1000;
  static constexpr uint64_t kNames = 12;
  int shared[kNames] = {};
  int exclusive[kNames] = {};
  size_t violations = 0;
  size_t ended = 0;
  std::promise<void> done;

  void Enter(const std::vector<Latch>& latches) {
    for (Latch latch : latches) {
      const bool free = exclusive[latch.name] == 0 && (!latch.exclusive || shared[latch.name] == 0);
      violations += free ? 0 : 1;
      ++(latch.exclusive ? exclusive : shared)[latch.name];
    }
  }
  void Leave(const std::vector<Latch>& latches) {
    for (Latch latch : latches) {
      --(latch.exclusive ? exclusive : shared)[latch.name];
    }
  }
};

std::vector<Latch> RandomLatches(Random& random) {
  std::map<uint64_t, Latch> chosen;
  for (size_t count = 1 + random.Next() % 6; count > 0; --count) {
    const uint64_t name = random.Next() % Crowd::kNames;
    chosen[name] = {.name = name, .exclusive = random.Next() % 3 == 0};
  }
  std::vector<Latch> latches;
  for (const auto& [name, latch] : chosen) {
    latches.insert(random.Next() % 2 == 0 ? latches.begin() : latches.end(), latch);
  }
  return latches;
}

Task<> OneOfTheCrowd(Latches& latches, Crowd& crowd, std::vector<Latch> wanted, size_t yields) {
  {
    Latches::Guard guard = co_await latches.Acquire(wanted);
    crowd.Enter(wanted);
    for (size_t i = 0; i < yields; ++i) {
      co_await runtime::Yield();
    }
    crowd.Leave(wanted);
  }
  if (++crowd.ended == Crowd::kTasks) {
    crowd.done.set_value();
  }
}

TEST_F(LatchesTest, ACrowdWithCrossingSetsGetsThroughAndLeavesNothingBehind) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SeededRandom random(seed);
    Crowd crowd;
    for (size_t i = 0; i < Crowd::kTasks; ++i) {
      std::vector<Latch> wanted = RandomLatches(random);
      worker().Spawn(OneOfTheCrowd(latches_, crowd, std::move(wanted), random.Next() % 4));
    }
    ASSERT_EQ(crowd.done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << "seed " << seed;
    LetTasksRun();
    EXPECT_EQ(crowd.violations, 0u) << "seed " << seed;
    EXPECT_EQ(latches_.size(), 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery::partition
