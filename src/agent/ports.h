// The TCP ports that something in the sandbox listens on.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glovebox::agent {

struct ListeningPort {
  std::uint16_t port = 0;
  std::string address;  // "127.0.0.1", "::"
  std::uint64_t inode = 0;
  uid_t uid = 0;  // Of the socket's owner.
  std::optional<pid_t> pid;
};

// The listening sockets in the text of /proc/net/tcp or tcp6; lines that make no sense are left
// out.
std::vector<ListeningPort> parse_proc_net_tcp(std::string_view text);

// All of them, by port, with the process that holds each where it can be found.
std::vector<ListeningPort> listening_ports();

}  // namespace glovebox::agent
