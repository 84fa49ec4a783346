#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/when_all.h"
#include "runtime/worker.h"

namespace orrery::runtime {
namespace {

using std::chrono::milliseconds;

// A pool without threads, and what its tasks have done.
struct Manual {
  ManualClock clock;
  ManualTime time{clock};
  WorkerPool pool{2, 0, &time};
  std::vector<std::string> done;

  // Moves the clock and wakes and runs all that is due.
  void Advance(Duration by) {
    clock.Advance(by);
    do {
      pool.RunReady();
    } while (time.WakeOne());
  }
};

Task<> SleepAndNote(Manual& manual, Duration how_long, std::string name) {
  co_await Sleep(how_long);
  manual.done.push_back(name + (Worker::Current() == nullptr ? "?" : ""));
}

TEST(ManualTest, SleepersWakeByTheClockInTheOrderInWhichTheyBegan) {
  Manual manual;
  manual.pool.at(0).Spawn(SleepAndNote(manual, milliseconds(20), "late"));
  manual.pool.at(0).Spawn(SleepAndNote(manual, milliseconds(10), "first"));
  manual.pool.at(0).Spawn(SleepAndNote(manual, milliseconds(10), "second"));
  manual.Advance(milliseconds(0));
  EXPECT_TRUE(manual.done.empty());
  EXPECT_EQ(manual.time.next(), manual.clock.Now() + milliseconds(10));
  manual.Advance(milliseconds(10));
  EXPECT_EQ(manual.done, (std::vector<std::string>{"first", "second"}));
  manual.Advance(milliseconds(10));
  EXPECT_EQ(manual.done.back(), "late");
  EXPECT_FALSE(manual.time.next());
}

TEST(ManualTest, AWorkerIsCurrentOnlyWhileItsWorkRuns) {
  Manual manual;
  auto task = [](Manual& manual) -> Task<> {
    auto ask = [&manual]() -> Task<bool> { co_return manual.pool.at(1).IsCurrent(); };
    bool there = co_await OnWorker(manual.pool.at(1), ask);
    manual.done.push_back(there && manual.pool.at(0).IsCurrent() ? "yes" : "no");
  };
  manual.pool.at(0).Spawn(task(manual));
  EXPECT_TRUE(manual.done.empty());
  manual.pool.RunReady();
  EXPECT_EQ(manual.done, (std::vector<std::string>{"yes"}));
  EXPECT_EQ(Worker::Current(), nullptr);
}

TEST(ManualTest, BlockingWorkRunsWhenTheOwnerSaysSo) {
  Manual manual;
  auto task = [](Manual& manual) -> Task<> {
    auto work = [] { return Worker::Current() == nullptr ? 7 : 0; };
    manual.done.push_back(std::to_string(co_await OnBlocking(manual.pool, work)));
  };
  manual.pool.at(0).Spawn(task(manual));
  manual.pool.RunReady();
  EXPECT_EQ(manual.pool.blocking_waiting(), 1u);
  EXPECT_TRUE(manual.done.empty());
  manual.pool.RunBlocking();
  EXPECT_EQ(manual.pool.blocking_waiting(), 0u);
  manual.pool.RunReady();
  EXPECT_EQ(manual.done, (std::vector<std::string>{"7"}));
}

TEST(ManualTest, WorkersTakeTurnsAsTheOwnerSays) {
  Manual manual;
  for (int i = 0; i < 2; ++i) {
    manual.pool.at(0).Post([&] { manual.done.push_back("a"); });
    manual.pool.at(1).Post([&] { manual.done.push_back("b"); });
  }
  EXPECT_TRUE(manual.pool.RunOne(1));
  EXPECT_TRUE(manual.pool.RunOne(1));
  EXPECT_FALSE(manual.pool.RunOne(1));
  EXPECT_TRUE(manual.pool.RunOne(0));
  EXPECT_EQ(manual.done, (std::vector<std::string>{"b", "b", "a"}));
}

// Says when it is destroyed, and resumes another task then, as a latch does.
struct Noisy {
  Manual& manual;
  std::string name;
  std::function<void(bool)>* resume = nullptr;
  ~Noisy() {
    manual.done.push_back(name);
    if (resume != nullptr && *resume) {
      (*resume)(true);
    }
  }
};

Task<> HoldAndWait(Manual& manual, std::string name, std::function<void(bool)>& mine,
                   std::function<void(bool)>* others, Gate::Pass pass) {
  Noisy noisy{manual, std::move(name), others};
  co_await SuspendHere<bool>(
      [&mine](std::function<void(bool)> resume) { mine = std::move(resume); });
  manual.done.push_back("went on");
}

TEST(ManualTest, AbandonUnwindsWhatIsSuspendedAndNothingGoesOn) {
  Gate gate;
  std::function<void(bool)> first;
  std::function<void(bool)> second;
  Manual manual;
  manual.pool.at(0).Spawn(HoldAndWait(manual, "one", first, &second, gate.Enter()));
  manual.pool.at(1).Spawn(HoldAndWait(manual, "two", second, &first, gate.Enter()));
  manual.pool.RunReady();
  manual.pool.Abandon();
  EXPECT_EQ(manual.done, (std::vector<std::string>{"one", "two"}));
  gate.Close();  // nobody is inside any more
  first(true);
  second(true);
  manual.pool.RunReady();
  EXPECT_EQ(manual.done.size(), 2u);
}

// Waits in all the ways there are, across both workers.
Task<int> WaitDeep(Manual& manual, int depth) {
  Noisy noisy{manual, "frame"};
  if (depth == 0) {
    co_await Sleep(milliseconds(1));
    co_return 1;
  }
  auto next = [&manual, depth] { return WaitDeep(manual, depth - 1); };
  co_return co_await OnWorker(manual.pool.at(depth % 2), next);
}

Task<> WaitEverywhere(Manual& manual) {
  std::vector<Task<int>> tasks;
  tasks.push_back(WaitDeep(manual, 6));
  tasks.push_back(WaitDeep(manual, 3));
  tasks.push_back(OnBlocking(manual.pool, [] { return 1; }));
  co_await WhenAll(std::move(tasks));
}

TEST(ManualTest, AbandonReachesTasksThatWaitForTasksOfOtherWorkers) {
  Manual manual;
  manual.pool.at(0).Spawn(WaitEverywhere(manual));
  manual.pool.RunReady();
  manual.pool.at(1).Spawn(WaitEverywhere(manual));  // has not begun
  manual.pool.Abandon();
  EXPECT_EQ(manual.done.size(), 11u);
  EXPECT_FALSE(manual.time.next());
  EXPECT_EQ(manual.pool.blocking_waiting(), 0u);
}

TEST(ManualTest, APoolThatIsDestroyedAbandonsItsTasks) {
  std::vector<std::string> done;
  {
    Manual manual;
    auto task = [](std::vector<std::string>& done) -> Task<> {
      std::shared_ptr<void> at_end(nullptr, [&done](void*) { done.push_back("unwound"); });
      co_await Sleep(milliseconds(5));
    };
    manual.pool.at(0).Spawn(task(done));
    manual.pool.RunReady();
  }
  EXPECT_EQ(done, (std::vector<std::string>{"unwound"}));
}

}  // namespace
}  // namespace orrery::runtime
