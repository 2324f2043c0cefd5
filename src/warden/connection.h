// Connection: one client's SOCK_SEQPACKET socket, with bounded sending.

#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::warden {

// A listening socket at `path`, mode 0600, owned by uid:gid. Replaces a dead socket there, but
// fails with kConflict when somebody answers on it.
Result<UniqueFd> listen_at(const std::string& path, uid_t uid, gid_t gid);

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};
Result<Peer> peer_of(int fd);

class Connection {
 public:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const noexcept { return fd_.get(); }

  // The next message, in `buffer`; nothing when there is none now. kUnavailable when the peer has
  // gone, kInvalid for a message larger than the buffer. Descriptors sent along are never taken.
  Result<std::optional<std::string_view>> receive(std::span<char> buffer);

  // Sends now or queues. kExhausted when the peer does not read what it was sent.
  Result<void> send(std::string message, std::vector<UniqueFd> fds = {});
  // Sends what is queued, as far as the socket takes it.
  Result<void> flush();
  bool blocked() const noexcept { return !queue_.empty(); }

 private:
  struct Outgoing {
    std::string message;
    std::vector<UniqueFd> fds;
  };
  Result<bool> send_now(const Outgoing& out);  // False when the socket is full.

  UniqueFd fd_;
  std::deque<Outgoing> queue_;
};

}  // namespace glovebox::warden
