// Gate counts what is in flight, so that shutdown can wait for it instead of hoping.
//
// Use from one thread. Enter before starting work; destroy the Pass when done.

#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "async/task.h"

namespace glovebox::async {

class Gate {
 public:
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(&gate) { ++gate.inside_; }
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    Gate* gate_;
  };

  explicit Gate(const Executor& executor);
  ~Gate();

  // Empty once close() was called: the caller must then refuse the work.
  std::optional<Pass> enter() {
    if (closing_) return std::nullopt;
    return Pass(*this);
  }

  // Lets nobody in from now on, and returns when the last one inside has left.
  Task<void> close();

  int inside() const noexcept { return inside_; }

 private:
  void leave() noexcept;

  struct Waker;
  std::unique_ptr<Waker> waker_;
  int inside_ = 0;
  bool closing_ = false;
};

}  // namespace glovebox::async
