// Event wakes coroutines that wait for something to change: the condition variable of one thread.
// A waiter checks its condition, awaits, and checks again; waking for nothing is allowed.

#pragma once

#include <vector>

#include "async/task.h"
#include "base/deadline.h"

namespace glovebox::agent {

class Event {
 public:
  explicit Event(const Executor& executor) : executor_(executor) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();  // Nobody may be waiting.

  void notify() noexcept;  // Wakes all who wait now.
  Task<void> wait(Deadline deadline);
  bool awaited() const noexcept { return !waiters_.empty(); }
  const Executor& executor() const noexcept { return executor_; }

 private:
  struct Waiter;
  Executor executor_;
  std::vector<Waiter*> waiters_;
};

}  // namespace glovebox::agent
