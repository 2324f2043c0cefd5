#include "async/gate.h"

#include <cassert>

#include "async/coro.h"

namespace glovebox::async {

// A timer that never expires is Asio's smallest condition variable.
struct Gate::Waker {
  Timer timer;
};

Gate::Gate(const Executor& executor) : waker_(new Waker{Timer(executor)}) {
  waker_->timer.expires_at(Timer::time_point::max());
}

Gate::~Gate() { assert(inside_ == 0 && "destroyed with work in flight; close() it first"); }

void Gate::leave() noexcept {
  if (--inside_ == 0 && closing_) waker_->timer.cancel();
}

Task<void> Gate::close() {
  closing_ = true;
  while (inside_ > 0) {
    co_await waker_->timer.async_wait(use_result);
  }
}

}  // namespace glovebox::async
