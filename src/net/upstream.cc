#include "net/upstream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace glovebox::net {

UpstreamPool::UpstreamPool(std::size_t idle_max, std::chrono::seconds age_max)
    : impl_(std::make_shared<Impl>()) {
  impl_->idle_max = idle_max;
  impl_->age_max = age_max;
}
UpstreamPool::~UpstreamPool() = default;

namespace {

constexpr std::size_t kOutBytesKept = 2 << 10;

// Neither closed nor with bytes to read: those without a request are no reply to the next one.
bool is_quiet(Stream::Impl& stream) {
  char byte = 0;
  const ssize_t n = ::recv(stream.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n >= 0 || errno != EAGAIN) return false;
  stream.watch.readable = false;
  return true;
}

}  // namespace

std::unique_ptr<Upstream> UpstreamPool::Impl::take(bool surely_open) {
  const Deadline now = Clock::now();
  while (!idle.empty() && idle.front()->expires <= now) idle.pop_front();
  while (!idle.empty()) {
    std::unique_ptr<Upstream> last = std::move(idle.back());
    idle.pop_back();
    Stream::Impl& stream = last->stream.impl();
    stream.watch.clear_alarm();
    if (stream.watch.hung_up) continue;
    if ((surely_open || stream.watch.readable) && !is_quiet(stream)) continue;
    last->pool = nullptr;
    last->reused = true;
    return last;
  }
  return nullptr;
}

void UpstreamPool::Impl::give(std::unique_ptr<Upstream> upstream) {
  if (idle_max == 0 || upstream->stream.impl().watch.hung_up) return;
  if (idle.size() >= idle_max) idle.pop_front();
  upstream->in.release_if_empty();
  if (upstream->out.capacity() > kOutBytesKept) upstream->out = std::string();
  upstream->pool = this;
  upstream->expires = after(age_max);
  upstream->stream.impl().watch.set_alarm(
      Watch::Alarm{.call = &Impl::hung_up, .with = upstream.get(), .only_broken = false});
  idle.push_back(std::move(upstream));
}

void UpstreamPool::Impl::hung_up(void* upstream) {
  auto* const gone = static_cast<Upstream*>(upstream);
  std::erase_if(gone->pool->idle, [gone](const auto& entry) { return entry.get() == gone; });
}

}  // namespace glovebox::net
