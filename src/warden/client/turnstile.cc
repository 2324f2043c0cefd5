#include "warden/client/turnstile.h"

#include "async/coro.h"

namespace glovebox::warden {

struct Turnstile::Waiter {
  Waiter(Turnstile& turnstile, Deadline deadline)
      : of(turnstile), timer(turnstile.executor_, deadline) {
    at = of.waiting_.insert(of.waiting_.end(), this);
  }
  ~Waiter() {
    if (!admitted) of.waiting_.erase(at);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Turnstile& of;
  Timer timer;
  std::list<Waiter*>::iterator at;
  bool admitted = false;
};

Turnstile::Turnstile(const Executor& executor, std::size_t width, std::size_t waiting_max)
    : executor_(executor), free_(width), waiting_max_(waiting_max) {}
Turnstile::~Turnstile() = default;

Task<Result<Turnstile::Place>> Turnstile::enter(Deadline deadline) {
  if (shut_) co_return Error(Errc::kUnavailable, "shutting down");
  if (free_ > 0) {
    --free_;
    co_return Place(*this);
  }
  if (waiting_.size() >= waiting_max_) {
    co_return Error(Errc::kExhausted, "too many requests wait for the warden");
  }
  Waiter waiter(*this, deadline);
  co_await waiter.timer.async_wait(use_result);
  // Looked at first: it may have been admitted in the moment its time ran out.
  if (waiter.admitted) co_return Place(*this);
  if (shut_) co_return Error(Errc::kUnavailable, "shutting down");
  co_return Error(Errc::kTimeout, "too many requests before this one at the warden");
}

void Turnstile::leave() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter* next = waiting_.front();
  waiting_.pop_front();
  next->admitted = true;
  next->timer.cancel();
}

void Turnstile::shut() {
  shut_ = true;
  for (Waiter* w : waiting_) w->timer.cancel();
}

}  // namespace glovebox::warden
