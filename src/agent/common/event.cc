#include "agent/common/event.h"

#include <cassert>

#include "async/coro.h"

namespace glovebox::agent {

// Lives in the waiting coroutine's frame and takes itself off the list, also when that coroutine
// is destroyed while it waits.
struct Event::Waiter {
  explicit Waiter(Event& owner) : event(owner), timer(owner.executor_) {
    event.waiters_.push_back(this);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { std::erase(event.waiters_, this); }

  Event& event;
  Timer timer;
};

Event::~Event() { assert(waiters_.empty() && "destroyed while awaited"); }

void Event::notify() noexcept {
  for (Waiter* waiter : waiters_) waiter->timer.cancel();
}

Task<void> Event::wait(Deadline deadline) {
  Waiter waiter(*this);
  waiter.timer.expires_at(deadline);
  co_await waiter.timer.async_wait(use_result);
}

}  // namespace glovebox::agent
