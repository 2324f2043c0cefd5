#include "warden/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "os/sys.h"

namespace glovebox::warden {

Result<Loop> Loop::make() {
  GB_TRY_ASSIGN(const int fd,
                os::retry("epoll_create1", "", [] { return ::epoll_create1(EPOLL_CLOEXEC); }));
  return Loop(UniqueFd(fd));
}

Result<Loop::Token> Loop::watch(int fd, std::uint32_t epoll_events, Handler handler) {
  const Token token = next_++;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = token;
  GB_TRY(os::retry("epoll_ctl", std::to_string(fd),
                   [&] { return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event); }));
  watches_.emplace(token, std::make_shared<Watch>(Watch{fd, std::move(handler)}));
  return token;
}

void Loop::change(Token token, std::uint32_t epoll_events) {
  const auto it = watches_.find(token);
  if (it == watches_.end()) return;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, &event);
}

void Loop::unwatch(Token token) {
  const auto it = watches_.find(token);
  if (it == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, nullptr);
  watches_.erase(it);
}

Result<int> Loop::turn(Deadline until) {
  using std::chrono::milliseconds;
  // Rounded up: waking a moment early would spin until the deadline.
  const auto wait = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  const int timeout_ms = static_cast<int>(std::clamp<long long>(wait, 0, 60'000));
  std::array<epoll_event, 64> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  if (n < 0) {
    if (errno == EINTR) return 0;
    return Error::from_errno(errno, "epoll_wait");
  }
  for (int i = 0; i < n; ++i) {
    const Token token = events[i].data.u64;  // A copy: the struct is packed.
    // Not there any more when an earlier handler of this turn took it away.
    const auto it = watches_.find(token);
    if (it == watches_.end()) continue;
    const std::shared_ptr<Watch> keep = it->second;
    keep->handler(events[i].events);
  }
  return n;
}

}  // namespace glovebox::warden
