#include "runtime/worker.h"

#include <exception>
#include <string>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <pthread.h>

#include "base/check.h"
#include "base/log.h"

namespace orrery::runtime {

namespace {

thread_local Worker* current_worker = nullptr;

// Makes the calling thread that of a worker for a while.
struct AsWorker {
  explicit AsWorker(Worker* worker) : before(std::exchange(current_worker, worker)) {}
  ~AsWorker() { current_worker = before; }
  Worker* const before;
};

// Unwinding a task can give work to another worker, whose task waited for it: so often at most.
constexpr int kUnwindRounds = 32;

}  // namespace

struct Worker::Thread {
  explicit Thread(boost::asio::io_context& context) : work(context.get_executor()) {}
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::thread thread;
};

Worker::Worker(size_t index, ManualTime* manual)
    : index_(index), manual_(manual), thread_(std::make_unique<Thread>(context_)) {}
Worker::~Worker() {
  Stop();
  poller_.Drop();
}

bool Worker::IsCurrent() const { return current_worker == this; }
Worker* Worker::Current() { return current_worker; }

void Worker::Post(std::function<void()> work) { boost::asio::post(context_, std::move(work)); }

void Worker::Spawn(Task<> task) {
  boost::asio::co_spawn(context_, std::move(task), [](std::exception_ptr failure) {
    if (!failure) {
      return;
    }
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      log::Error("background task failed", {{"what", e.what()}});
    }
  });
}

void Worker::Start() {
  Spawn(poller_.Run(context_));
  thread_->thread = std::thread([this] {
    current_worker = this;
    pthread_setname_np(pthread_self(), ("worker-" + std::to_string(index_)).c_str());
    context_.run();
    current_worker = nullptr;
  });
}

void Worker::Stop() {
  if (thread_->thread.joinable()) {
    context_.stop();
    thread_->thread.join();
  }
}

bool Worker::RunOne() {
  AsWorker as(this);
  return context_.poll_one() > 0;
}

void Worker::Remember(std::weak_ptr<Suspended> task) {
  if (suspended_.size() >= suspended_max_) {
    std::erase_if(suspended_, [](const auto& one) { return one.expired(); });
    suspended_max_ = 64 + 2 * suspended_.size();
  }
  suspended_.push_back(std::move(task));
}

void Worker::DropSuspended() {
  for (auto& one : std::exchange(suspended_, {})) {
    if (auto task = one.lock()) {
      task->Drop();
    }
  }
}

void Worker::DropQueued() {
  AsWorker as(this);
  context_.shutdown();
}

struct WorkerPool::Blocking {
  explicit Blocking(size_t threads) : pool(threads) {}
  boost::asio::thread_pool pool;
};

WorkerPool::WorkerPool(size_t workers, size_t blocking_threads, ManualTime* manual)
    : manual_(manual),
      blocking_(manual == nullptr ? std::make_unique<Blocking>(blocking_threads) : nullptr) {
  for (size_t i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i, manual));
  }
}

WorkerPool::~WorkerPool() {
  Stop();
  if (manual_ != nullptr) {
    Abandon();
  }
}

void WorkerPool::Start() {
  for (auto& worker : workers_) {
    if (manual_ == nullptr) {
      worker->Start();
    }
  }
}

void WorkerPool::Stop() {
  if (blocking_ != nullptr) {
    blocking_->pool.join();
  }
  for (auto& worker : workers_) {
    worker->Stop();
  }
}

void WorkerPool::PostBlocking(std::function<void()> work) {
  if (manual_ != nullptr) {
    waiting_.push_back(std::move(work));
    return;
  }
  boost::asio::post(blocking_->pool, std::move(work));
}

void WorkerPool::PauseBlocking(Duration how_long) const {
  if (manual_ == nullptr) {
    std::this_thread::sleep_for(how_long);
  }
}

void WorkerPool::RunReady() {
  for (bool ran = true; ran;) {
    ran = false;
    for (auto& worker : workers_) {
      ran |= worker->RunOne();
    }
  }
}

void WorkerPool::RunBlocking(size_t which) {
  ORRERY_CHECK(which < waiting_.size());
  auto work = std::move(waiting_[which]);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
  work();
}

void WorkerPool::Abandon() {
  ORRERY_CHECK(manual_ != nullptr && current_worker == nullptr);
  // First all suspended tasks, so that none goes on when the end of another would resume it.
  for (auto& worker : workers_) {
    worker->DropSuspended();
  }
  manual_->Clear();
  waiting_.clear();
  for (int round = 0; round < kUnwindRounds; ++round) {
    for (auto& worker : workers_) {
      worker->DropQueued();
    }
  }
  manual_->Clear();
  waiting_.clear();
}

Task<> Sleep(Duration duration) {
  if (Worker* worker = Worker::Current(); worker != nullptr && worker->manual() != nullptr) {
    co_await Suspend<bool>([worker, duration](std::function<void(bool)> resume) {
      worker->manual()->Add(duration, [resume = std::move(resume)] { resume(true); });
    });
    co_return;
  }
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, duration);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

Task<> Yield() { co_await boost::asio::post(boost::asio::use_awaitable); }

}  // namespace orrery::runtime
