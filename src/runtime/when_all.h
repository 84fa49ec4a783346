// WhenAll: runs tasks side by side on the caller's worker and gives their results in order.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/worker.h"

namespace orrery::runtime {

// REQUIRES: on a worker.
template <typename T>
Task<std::vector<T>> WhenAll(std::vector<Task<T>> tasks) {
  struct Shared {
    std::vector<std::optional<T>> results;
    size_t left;
    std::function<void(bool)> resume;
    std::exception_ptr failure;  // of any task; thrown when all have ended
  };
  if (tasks.empty()) {
    co_return std::vector<T>();
  }
  auto shared = std::make_shared<Shared>();
  shared->results.resize(tasks.size());
  shared->left = tasks.size();
  auto start = [&tasks, shared](std::function<void(bool)> resume) {
    shared->resume = std::move(resume);
    auto run = [](Task<T> task, std::shared_ptr<Shared> shared, size_t index) -> Task<> {
      try {
        shared->results[index] = co_await std::move(task);
      } catch (...) {
        shared->failure = std::current_exception();
      }
      if (--shared->left == 0) {
        shared->resume(true);
      }
    };
    for (size_t i = 0; i < tasks.size(); ++i) {
      Worker::Current()->Spawn(run(std::move(tasks[i]), shared, i));
    }
  };
  co_await Suspend<bool>(std::move(start));
  if (shared->failure) {
    std::rethrow_exception(shared->failure);
  }
  std::vector<T> results;
  results.reserve(shared->results.size());
  for (auto& result : shared->results) {
    results.push_back(std::move(*result));
  }
  co_return results;
}

}  // namespace orrery::runtime
