#include "agent/common/yield.h"

#include <boost/asio/post.hpp>

#include "async/coro.h"

namespace glovebox::agent {

Task<void> yield_to_others() {
  const Executor executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, use_task);
}

}  // namespace glovebox::agent
