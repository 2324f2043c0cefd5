// Event: something that happens once, and those who wait for it.

#pragma once

#include <memory>

#include "async/task.h"

namespace glovebox::async {

// Use from one thread. Share it (shared_ptr) with the coroutines that wait: it must outlive them.
class Event {
 public:
  explicit Event(const Executor& executor);
  ~Event();

  void set();
  bool is_set() const noexcept { return set_; }
  // Returns at once when it is set. Returns without it when the waiting coroutine was cancelled:
  // look at is_set(), and await nothing more.
  Task<void> wait();

 private:
  struct Waker;
  std::unique_ptr<Waker> waker_;
  bool set_ = false;
};

}  // namespace glovebox::async
