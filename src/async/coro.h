// For .cc files that write or await coroutines. Never include this from a header.

#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "async/task.h"

namespace glovebox {

// I/O returns (error_code, value...) instead of throwing: a peer that hangs up is not exceptional.
inline constexpr auto use_result = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});
inline constexpr boost::asio::use_awaitable_t<Executor> use_task{};

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace glovebox
