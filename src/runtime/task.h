// Task<T>: what every asynchronous function returns. The only door to Asio's coroutines.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace orrery::runtime {

template <typename T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace orrery::runtime
