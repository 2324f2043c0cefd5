// Link: one connection to the warden, as packets.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

struct Packet {
  Message message;
  std::vector<UniqueFd> fds;
};

// Shared by the one who reads and the one who writes: a closed Link stays valid.
class Link : public std::enable_shared_from_this<Link> {
 public:
  // kDenied when who listens there is neither root nor ourselves.
  static Result<std::shared_ptr<Link>> connect(const Executor& executor, const std::string& path);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // kUnavailable at the end of the connection. One caller at a time.
  Task<Result<Packet>> receive();
  // Sends now, or soon. The caller bounds how much is under way.
  Result<void> post(std::string message);
  // Ends a receive() under way, too.
  void close() noexcept;

 private:
  struct Impl;
  explicit Link(std::unique_ptr<Impl> impl);
  static Task<void> flush(std::shared_ptr<Link> self);
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::warden
