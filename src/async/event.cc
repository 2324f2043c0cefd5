#include "async/event.h"

#include "async/coro.h"

namespace glovebox::async {

struct Event::Waker {
  Timer timer;
};

Event::Event(const Executor& executor) : waker_(new Waker{Timer(executor)}) {
  waker_->timer.expires_at(Timer::time_point::max());
}

Event::~Event() = default;

void Event::set() {
  set_ = true;
  waker_->timer.cancel();
}

Task<void> Event::wait() {
  if (set_) co_return;
  co_await waker_->timer.async_wait(use_result);
}

}  // namespace glovebox::async
