#include "runtime/poller.h"

#include <future>
#include <memory>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/worker.h"

namespace orrery::runtime {
namespace {

class PollerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
    pool_->Start();
  }
  void TearDown() override {
    pool_.reset();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Worker& worker() { return pool_->at(0); }

  // On the worker, and waits for it.
  template <typename F>
  auto Do(F work) {
    std::promise<decltype(work())> done;
    worker().Post([&] { done.set_value(work()); });
    return done.get_future().get();
  }
  Poller::Place Add(int socket) {
    return Do([&] { return worker().poller().Add(socket); });
  }
  std::future<void> Wait(Poller::Place place, Readiness what) {
    std::promise<void> done;
    auto future = done.get_future();
    auto task = [](Worker& worker, Poller::Place place, Readiness what,
                   std::promise<void> done) -> Task<> {
      co_await worker.poller().Wait(place, what);
      done.set_value();
    };
    worker().Spawn(task(worker(), place, what, std::move(done)));
    return future;
  }
  // When it returns, the worker has done all that it had to do before.
  void Settle() {
    for (int i = 0; i < 10; ++i) {
      Do([] { return true; });
    }
  }
  static bool Waits(const std::future<void>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  }
  void Write(int end) { ASSERT_EQ(::write(ends_[end], "x", 1), 1); }
  void Read(int end) {
    char byte = 0;
    ASSERT_EQ(::read(ends_[end], &byte, 1), 1);
  }

  std::unique_ptr<WorkerPool> pool_ = std::make_unique<WorkerPool>(1);
  int ends_[2] = {-1, -1};
};

TEST_F(PollerTest, WhoWaitsGoesOnWhenSomethingComes) {
  Poller::Place place = Add(ends_[0]);
  for (int i = 0; i < 3; ++i) {
    std::future<void> done = Wait(place, Readiness::kReadable);
    Settle();
    EXPECT_TRUE(Waits(done));
    Write(1);
    done.get();
    Read(0);
  }
}

TEST_F(PollerTest, WhatCameWhileNobodyWaitedEndsTheNextWait) {
  Poller::Place place = Add(ends_[0]);
  Write(1);
  Settle();
  Wait(place, Readiness::kReadable).get();
}

TEST_F(PollerTest, WhatWasThereBeforeTheSocketWasAddedIsSeen) {
  Write(1);
  Wait(Add(ends_[0]), Readiness::kReadable).get();
}

TEST_F(PollerTest, OneMayWaitToReadAndAnotherToWrite) {
  Poller::Place place = Add(ends_[0]);
  Wait(place, Readiness::kWritable).get();  // a new socket takes something
  std::string much(1 << 20, 'x');
  while (::write(ends_[0], much.data(), much.size()) > 0) {
  }
  std::future<void> reads = Wait(place, Readiness::kReadable);
  std::future<void> writes = Wait(place, Readiness::kWritable);
  Settle();
  EXPECT_TRUE(Waits(writes));
  while (::read(ends_[1], much.data(), much.size()) > 0) {
  }
  writes.get();
  EXPECT_TRUE(Waits(reads));
  Write(1);
  reads.get();
}

TEST_F(PollerTest, TwoMayWaitForTheSame) {
  Poller::Place place = Add(ends_[0]);
  std::future<void> one = Wait(place, Readiness::kReadable);
  std::future<void> other = Wait(place, Readiness::kReadable);
  Settle();
  Write(1);
  one.get();
  other.get();
}

TEST_F(PollerTest, TheEndOfAConnectionEndsAllWaits) {
  Poller::Place place = Add(ends_[0]);
  std::future<void> reads = Wait(place, Readiness::kReadable);
  Settle();
  ::shutdown(ends_[0], SHUT_RDWR);
  reads.get();
  Wait(place, Readiness::kWritable).get();
}

TEST_F(PollerTest, NothingIsToldOfASocketThatIsGone) {
  Poller::Place gone = Add(ends_[0]);
  Do([&] {
    Write(1);  // told in a later turn of the loop
    worker().poller().Remove(gone);
    ::close(ends_[0]);
    return true;
  });
  int others[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, others), 0);
  Poller::Place next = Add(others[0]);
  EXPECT_NE(next, gone);
  std::future<void> done = Wait(next, Readiness::kReadable);
  Settle();
  EXPECT_TRUE(Waits(done));
  EXPECT_EQ(::write(others[1], "x", 1), 1);
  done.get();
  ends_[0] = others[0];
  ::close(others[1]);
}

TEST_F(PollerTest, WhoStillWaitsAtTheEndIsUnwound) {
  std::future<void> never = Wait(Add(ends_[0]), Readiness::kReadable);
  Settle();
  pool_.reset();
  EXPECT_THROW(never.get(), std::future_error);  // its promise is gone
}

}  // namespace
}  // namespace orrery::runtime
