// Janitor closes descriptors on a thread of its own: the last close of a deleted disk image frees
// all of its blocks, which can take long and is nobody's to wait for.

#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"

namespace glovebox::native {

class Janitor {
 public:
  Janitor();
  ~Janitor();  // Waits until all are closed.

  // Closes `fd` soon; at once, when too many wait already.
  void take(UniqueFd fd);

 private:
  static constexpr std::size_t kWaitingMax = 1024;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UniqueFd> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace glovebox::native
