// Turnstile: lets `width` through at a time, the others in the order of their coming.
//
// Use from one thread.

#pragma once

#include <list>
#include <memory>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"

namespace glovebox::warden {

class Turnstile {
 public:
  Turnstile(const Executor& executor, std::size_t width, std::size_t waiting_max);
  ~Turnstile();

  // Gives its place back when destroyed.
  class Place {
   public:
    explicit Place(Turnstile& of) : of_(&of) {}
    Place(Place&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (of_ != nullptr) of_->leave();
    }

   private:
    Turnstile* of_;
  };

  // kTimeout when the deadline passes first, kExhausted when too many wait already, kUnavailable
  // once it was shut.
  Task<Result<Place>> enter(Deadline deadline);
  void shut();

 private:
  struct Waiter;
  void leave();

  const Executor executor_;
  std::size_t free_;
  const std::size_t waiting_max_;
  bool shut_ = false;
  std::list<Waiter*> waiting_;  // Borrowed from their coroutines.
};

}  // namespace glovebox::warden
