// Worker: one thread with its own event loop. WorkerPool: one worker per core.
//
// What lives on a worker is touched only by its thread, so it holds no mutex. Cross over with
// OnWorker (and come back with the result), or with Post. Where waiting for a disk is unavoidable,
// OnBlocking runs a function on the pool's few blocking threads and resumes the caller on its own
// worker.
//
// Manual mode, for the simulator: a pool with a ManualTime has no threads. Its owner says when
// which worker goes on (RunOne), when blocking work is done (RunBlocking) and when sleepers wake.
// What happens then depends only on the order of these calls. Abandon is the end of a process that
// was killed: suspended tasks are unwound where they stand.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/time.h"
#include "runtime/gate.h"
#include "runtime/manual_time.h"
#include "runtime/poller.h"
#include "runtime/task.h"

namespace orrery::runtime {

// A suspended task that waits for its resume function to be called.
struct Suspended {
  virtual ~Suspended() = default;
  virtual void Drop() = 0;  // unwinds it; to resume it does nothing any more
};

class Worker {
 public:
  explicit Worker(size_t index, ManualTime* manual = nullptr);
  ~Worker();  // REQUIRES: stopped
  Worker(const Worker&) = delete;

  size_t index() const { return index_; }
  boost::asio::io_context& context() { return context_; }
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  // The sockets of this worker. REQUIRES: not in manual mode
  Poller& poller() { return poller_; }
  bool IsCurrent() const;
  // The worker whose thread this is; null on other threads.
  static Worker* Current();

  // Runs `work` on the worker's thread, later. Thread-safe.
  void Post(std::function<void()> work);
  // Starts a task on the worker that nobody waits for; `gate` (if any) stays open for it. An
  // exception that escapes it is logged. Thread-safe.
  void Spawn(Task<> task);

  void Start();
  void Stop();  // ends the loop after what runs now; joins the thread

  // Manual mode; null otherwise.
  ManualTime* manual() const { return manual_; }
  void Remember(std::weak_ptr<Suspended> task);

 private:
  friend class WorkerPool;
  struct Thread;
  struct Context : boost::asio::io_context {
    using io_context::io_context;
    using io_context::shutdown;
  };
  bool RunOne();
  void DropSuspended();
  void DropQueued();

  const size_t index_;
  ManualTime* const manual_;
  std::vector<std::weak_ptr<Suspended>> suspended_;  // manual mode; some may have gone on
  size_t suspended_max_ = 64;                        // when to look which have
  Poller poller_;  // tasks that the end of the context unwinds leave it
  Context context_{1};
  std::unique_ptr<Thread> thread_;
};

// The order of workers by their place in the pool, so that nothing depends on addresses; none
// first.
struct WorkerOrder {
  static size_t Place(const Worker* worker) { return worker == nullptr ? 0 : worker->index() + 1; }
  bool operator()(const Worker* a, const Worker* b) const { return Place(a) < Place(b); }
};

class WorkerPool {
 public:
  // With `manual` no threads are started.
  explicit WorkerPool(size_t workers, size_t blocking_threads = 4, ManualTime* manual = nullptr);
  ~WorkerPool();
  size_t size() const { return workers_.size(); }
  Worker& at(size_t index) { return *workers_[index % workers_.size()]; }
  void Start();
  void Stop();

  // Runs `work` on a blocking thread. Thread-safe; unbounded only by what its callers have in
  // flight.
  void PostBlocking(std::function<void()> work);
  // Lets the thread of blocking work rest, so that others get the core. In manual mode no time
  // passes.
  void PauseBlocking(Duration how_long) const;

  // Manual mode, all on the owner's thread
  // --------------------------------------------------------- Runs one piece of ready work of a
  // worker; false if it has none.
  bool RunOne(size_t worker) { return workers_[worker]->RunOne(); }
  // Goes round the workers until none has ready work.
  void RunReady();
  // Runs a piece of blocking work, the one that has waited longest unless `which` says another.
  // REQUIRES: which < blocking_waiting()
  void RunBlocking(size_t which = 0);
  size_t blocking_waiting() const { return waiting_.size(); }
  // Unwinds all tasks and forgets all work, sleepers included. What the tasks refer to must still
  // be there; afterwards it can be destroyed, and nothing of it may be run again.
  void Abandon();

 private:
  struct Blocking;
  ManualTime* const manual_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Blocking> blocking_;         // null in manual mode
  std::deque<std::function<void()>> waiting_;  // blocking work, in manual mode
};

// The handler of a suspended task, until it goes on.
template <typename Handler>
struct SuspendedHandler final : Suspended {
  explicit SuspendedHandler(Handler handler) : handler(std::move(handler)) {}
  void Drop() override { handler.reset(); }
  std::optional<Handler> handler;
};

template <typename Handler>
auto Remembered(Handler handler) {
  auto task = std::make_shared<SuspendedHandler<Handler>>(std::move(handler));
  if (Worker* worker = Worker::Current(); worker != nullptr && worker->manual() != nullptr) {
    worker->Remember(task);
  }
  return task;
}

// Suspends the calling task; `start` gets a function that must be called exactly once, from any
// thread, with the value to resume with. The task goes on on its own executor.
template <typename T>
Task<T> Suspend(std::function<void(std::function<void(T)>)> start) {
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      [start = std::move(start)](auto handler) mutable {
        auto executor = boost::asio::get_associated_executor(handler);
        auto task = Remembered(std::move(handler));
        start([task, executor](T value) mutable {
          boost::asio::post(executor, [task, value = std::move(value)]() mutable {
            if (task->handler) {
              (*task->handler)(std::move(value));
            }
          });
        });
      },
      boost::asio::use_awaitable);
}

// The same for a resume function that is called on the task's own worker, after `start` has
// returned: the task goes on inside the call, without another turn of the loop.
template <typename T>
Task<T> SuspendHere(std::function<void(std::function<void(T)>)> start) {
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      [start = std::move(start)](auto handler) mutable {
        auto task = Remembered(std::move(handler));
        start([task](T value) mutable {
          if (task->handler) {
            (*task->handler)(std::move(value));
          }
        });
      },
      boost::asio::use_awaitable);
}

// Runs a task-making function on another worker and resumes here with its result.
template <typename F>
auto OnWorker(Worker& worker, F make) -> std::invoke_result_t<F> {
  if (worker.IsCurrent()) {
    co_return co_await make();
  }
  co_return co_await boost::asio::co_spawn(worker.executor(), std::move(make),
                                           boost::asio::use_awaitable);
}

// Runs `work` where it may wait for a disk, and resumes here with its result, or with what it
// threw.
template <typename F>
Task<std::invoke_result_t<F>> OnBlocking(WorkerPool& pool, F work) {
  using T = std::invoke_result_t<F>;
  struct Outcome {
    std::optional<T> value;
    std::exception_ptr failure;
  };
  auto start = [&pool, &work](std::function<void(Outcome)> resume) {
    pool.PostBlocking([&work, resume = std::move(resume)] {
      Outcome outcome;
      try {
        outcome.value = work();
      } catch (...) {
        outcome.failure = std::current_exception();
      }
      resume(std::move(outcome));
    });
  };
  Outcome outcome = co_await Suspend<Outcome>(std::move(start));
  if (outcome.failure) {
    std::rethrow_exception(outcome.failure);
  }
  co_return std::move(*outcome.value);
}

// Suspends the task for at least `duration`, on its own worker's timer.
Task<> Sleep(Duration duration);
// Lets other tasks of this worker run.
Task<> Yield();

}  // namespace orrery::runtime
