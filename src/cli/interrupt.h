// Interrupt turns SIGINT, SIGTERM and SIGHUP into the end of what a command waits for, so that it
// can clean up on the way out instead of dying.

#pragma once

#include <functional>
#include <list>
#include <memory>

#include "async/task.h"

namespace glovebox::cli {

class Interrupt {
 public:
  // What to do when it happens; kept until this object goes. Called at once when it has happened.
  class [[nodiscard]] Hook {
   public:
    Hook(Interrupt& owner, std::function<void()> cancel);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    Interrupt& owner_;
    std::list<std::function<void()>>::iterator at_;
  };

  // The first signal that came, or 0.
  int signal() const noexcept { return signal_; }
  int exit_code() const noexcept { return 128 + signal_; }
  void raise(int signal);
  // Lets clean-up work make its own calls after the interruption.
  void disarm() noexcept { armed_ = false; }

 private:
  std::list<std::function<void()>> hooks_;
  int signal_ = 0;
  bool armed_ = true;
};

// From construction to destruction these signals come to `handler`, on the executor's thread.
class SignalWatch {
 public:
  SignalWatch(const Executor& executor, std::initializer_list<int> signals,
              std::function<void(int)> handler);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace glovebox::cli
