// The body of OnWorker. Included by worker.h.
#pragma once

#include <boost/asio/co_spawn.hpp>

namespace orrery::runtime {

template <typename F>
auto OnWorker(Worker& worker, F make) -> std::invoke_result_t<F> {
  if (worker.IsCurrent()) {
    co_return co_await make();
  }
  co_return co_await boost::asio::co_spawn(worker.executor(), std::move(make), boost::asio::use_awaitable);
}

}  // namespace orrery::runtime
