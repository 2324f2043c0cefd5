// TimeSource is where code that waits gets the time from, so that a test can be the clock.
//
// Use from one thread.

#pragma once

#include <memory>

#include "async/task.h"
#include "base/deadline.h"
#include "base/time.h"

namespace glovebox::async {

// One waiter at a time; wake() is for whoever changed what it waits for.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // True at the deadline; false when woken before it, or when the waiting coroutine was cancelled.
  // A wake() without a waiter is not remembered: look at the condition, then wait, with no await
  // between.
  virtual Task<bool> wait_until(Deadline deadline) = 0;
  virtual void wake() = 0;
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual Deadline now() const = 0;
  virtual WallTime wall() const = 0;
  virtual std::unique_ptr<Alarm> make_alarm() = 0;
};

// The machine's clocks. Borrows nothing; its alarms run on `executor`.
class SystemTime final : public TimeSource {
 public:
  explicit SystemTime(const Executor& executor) : executor_(executor) {}
  Deadline now() const override;
  WallTime wall() const override;
  std::unique_ptr<Alarm> make_alarm() override;

 private:
  Executor executor_;
};

}  // namespace glovebox::async
