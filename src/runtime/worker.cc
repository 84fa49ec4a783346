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

#include "base/log.h"

namespace orrery::runtime {

namespace {
thread_local Worker* current_worker = nullptr;
}

struct Worker::Thread {
  explicit Thread(boost::asio::io_context& context) : work(context.get_executor()) {}
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::thread thread;
};

Worker::Worker(size_t index) : index_(index), thread_(std::make_unique<Thread>(context_)) {}
Worker::~Worker() { Stop(); }

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

struct WorkerPool::Blocking {
  explicit Blocking(size_t threads) : pool(threads) {}
  boost::asio::thread_pool pool;
};

WorkerPool::WorkerPool(size_t workers, size_t blocking_threads)
    : blocking_(std::make_unique<Blocking>(blocking_threads)) {
  for (size_t i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(i));
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Start() {
  for (auto& worker : workers_) {
    worker->Start();
  }
}

void WorkerPool::Stop() {
  blocking_->pool.join();
  for (auto& worker : workers_) {
    worker->Stop();
  }
}

void WorkerPool::PostBlocking(std::function<void()> work) {
  boost::asio::post(blocking_->pool, std::move(work));
}

Task<> Sleep(Duration duration) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, duration);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

Task<> Yield() { co_await boost::asio::post(boost::asio::use_awaitable); }

}  // namespace orrery::runtime
