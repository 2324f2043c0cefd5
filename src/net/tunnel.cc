#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cstdint>

#include "async/coro.h"
#include "net/mover.h"
#include "net/stream.h"
#include "net/stream_impl.h"

namespace glovebox::net {
namespace {

// One direction. A failure ends the other one too, which would otherwise wait for a peer that no
// longer hears the answer.
Task<Result<std::uint64_t>> direction(Stream& from, Stream& to, Patience& patience) {
  Moved moved = co_await move_bytes(from.impl(), to.impl(), UINT64_MAX, false, patience);
  if (moved.end == Moved::End::kFromEnded) {
    if (to.fd() >= 0) to.shutdown_write();
    co_return moved.bytes;
  }
  from.close();
  to.close();
  co_return std::move(moved.error);
}

}  // namespace

Task<Result<std::uint64_t>> pump(Stream& from, Stream& to, Clock::duration idle) {
  Patience patience(idle);
  Moved moved = co_await move_bytes(from.impl(), to.impl(), UINT64_MAX, false, patience);
  if (moved.end != Moved::End::kFromEnded) co_return std::move(moved.error);
  if (to.fd() >= 0) to.shutdown_write();
  co_return moved.bytes;
}

Task<Result<void>> tunnel(Stream& a, Stream& b, Clock::duration idle) {
  using boost::asio::experimental::awaitable_operators::operator&&;
  Patience patience(idle);
  auto both = direction(a, b, patience) && direction(b, a, patience);
  auto [there, back] = co_await std::move(both);
  if (!there) co_return std::move(there).error();
  if (!back) co_return std::move(back).error();
  co_return Result<void>();
}

}  // namespace glovebox::net
