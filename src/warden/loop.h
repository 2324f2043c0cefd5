// Loop: epoll with handlers. Single-threaded; a handler may watch and unwatch anything, itself too.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::warden {

class Loop {
 public:
  using Token = std::uint64_t;  // 0 is no watch.
  using Handler = std::function<void(std::uint32_t epoll_events)>;

  static Result<Loop> make();

  // Borrows `fd`: unwatch it before closing it. Level-triggered.
  Result<Token> watch(int fd, std::uint32_t epoll_events, Handler handler);
  void change(Token token, std::uint32_t epoll_events);
  void unwatch(Token token);

  // Waits for events until `until` at most and runs each ready handler once. Returns how many.
  Result<int> turn(Deadline until);

 private:
  explicit Loop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  struct Watch {
    int fd;
    Handler handler;
  };
  UniqueFd epoll_;
  Token next_ = 1;
  // Shared, so that a handler which unwatches itself is not destroyed while it runs.
  std::unordered_map<Token, std::shared_ptr<Watch>> watches_;
};

}  // namespace glovebox::warden
