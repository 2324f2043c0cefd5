// Task<T> is the return type of every coroutine here. One io_context runs on one thread, so the
// executor is the concrete type: a type-erased one costs a tenth of a request.

#pragma once

#include <boost/asio/io_context.hpp>

namespace boost::asio {
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace glovebox {

using Executor = boost::asio::io_context::executor_type;

template <class T>
using Task = boost::asio::awaitable<T, Executor>;

}  // namespace glovebox
