#include "agent/common/async_fd.h"

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "async/coro.h"

namespace glovebox::agent {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

// Shared with waits in flight, which may still be on their way when the owner is gone.
struct AsyncFd::Impl {
  Impl(const Executor& executor, int fd) : descriptor(executor, fd) {}
  Descriptor descriptor;
};

AsyncFd::AsyncFd(const Executor& executor, UniqueFd fd)
    : impl_(std::make_shared<Impl>(executor, fd.release())) {}

AsyncFd::~AsyncFd() { close(); }

int AsyncFd::get() const noexcept {
  return impl_->descriptor.is_open() ? impl_->descriptor.native_handle() : -1;
}

Task<void> AsyncFd::wait_readable() {
  const std::shared_ptr<Impl> impl = impl_;
  co_await impl->descriptor.async_wait(Descriptor::wait_read, use_result);
}

Task<void> AsyncFd::wait_writable(Deadline deadline) {
  const std::shared_ptr<Impl> impl = impl_;
  Timer timer(impl->descriptor.get_executor());
  timer.expires_at(deadline);
  timer.async_wait([weak = std::weak_ptr<Impl>(impl)](boost::system::error_code ec) {
    const std::shared_ptr<Impl> alive = weak.lock();
    if (!ec && alive && alive->descriptor.is_open()) alive->descriptor.cancel(ec);
  });
  co_await impl->descriptor.async_wait(Descriptor::wait_write, use_result);
}

void AsyncFd::close() noexcept {
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

}  // namespace glovebox::agent
