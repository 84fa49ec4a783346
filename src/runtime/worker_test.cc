#include "runtime/worker.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

namespace orrery::runtime {
namespace {

Task<int> AnswerOn(Worker& worker) {
  auto ask = [&worker]() -> Task<int> { co_return worker.IsCurrent() ? 42 : 0; };
  co_return co_await OnWorker(worker, ask);
}

TEST(WorkerTest, OnWorkerRunsThereAndComesBack) {
  WorkerPool pool(2);
  pool.Start();
  std::promise<std::pair<int, bool>> done;
  auto task = [](WorkerPool& pool, std::promise<std::pair<int, bool>>& done) -> Task<> {
    int answer = co_await AnswerOn(pool.at(1));
    done.set_value({answer, pool.at(0).IsCurrent()});
  };
  pool.at(0).Spawn(task(pool, done));
  auto [answer, back] = done.get_future().get();
  EXPECT_EQ(answer, 42);
  EXPECT_TRUE(back);
}

TEST(WorkerTest, BlockingWorkDoesNotHoldTheWorkerUp) {
  WorkerPool pool(1);
  pool.Start();
  std::promise<void> release;
  std::promise<int> done;
  std::promise<void> other_ran;
  auto task = [](WorkerPool& pool, std::shared_future<void> wait,
                 std::promise<int>& done) -> Task<> {
    auto work = [wait] {
      wait.wait();
      return 7;
    };
    done.set_value(co_await OnBlocking(pool, work));
  };
  pool.at(0).Spawn(task(pool, release.get_future().share(), done));
  pool.at(0).Post([&] { other_ran.set_value(); });
  other_ran.get_future().get();
  release.set_value();
  EXPECT_EQ(done.get_future().get(), 7);
}

TEST(WorkerTest, AClosedGateWaitsForWhatIsInside) {
  Gate gate;
  WorkerPool pool(1);
  pool.Start();
  std::atomic<bool> left = false;
  auto pass = std::make_shared<Gate::Pass>(gate.Enter());
  pool.at(0).Post([pass = std::move(pass), &left]() mutable {
    left = true;
    pass.reset();
  });
  gate.Close();
  EXPECT_TRUE(left);
  EXPECT_FALSE(gate.Enter());
}

}  // namespace
}  // namespace orrery::runtime
