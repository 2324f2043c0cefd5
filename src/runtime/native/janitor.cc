#include "runtime/native/janitor.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace glovebox::native {

Janitor::Janitor() : thread_([this] { run(); }) {}

Janitor::~Janitor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Janitor::take(UniqueFd fd) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kWaitingMax) return;  // `fd` closes here.
    waiting_.push_back(std::move(fd));
  }
  changed_.notify_one();
}

void Janitor::run() {
  // Signals are for the thread that reads them from a descriptor: one that arrived here would end
  // the process.
  ::sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    UniqueFd fd = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    fd.reset();
    lock.lock();
  }
}

}  // namespace glovebox::native
