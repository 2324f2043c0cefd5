// glovebox-agent: process 1 of a sandbox. It is started with a listening socket as descriptor 3
// and, where there is one, its cgroup's directory as descriptor 4.
//
//   glovebox-agent                                  in a sandbox
//   glovebox-agent --listen PATH [--cgroup DIR]     as an ordinary process, for tests

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "agent/agent.h"

namespace {

using glovebox::UniqueFd;

constexpr int kListenerFd = 3;
constexpr int kCgroupFd = 4;

// Takes an inherited descriptor; empty when it is not open.
UniqueFd inherited(int fd) {
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return UniqueFd();
  return UniqueFd(fd);
}

UniqueFd listen_at(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return UniqueFd();
  std::strcpy(address.sun_path, path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::unlink(path);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 128) != 0) {
    return UniqueFd();
  }
  return fd;
}

bool read_arguments(int argc, char** argv, glovebox::agent::AgentOptions& options) {
  if (argc <= 1) {
    options.listener = inherited(kListenerFd);
    options.cgroup = inherited(kCgroupFd);
    return true;
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--listen") {
      options.listener = listen_at(argv[i + 1]);
    } else if (name == "--cgroup") {
      options.cgroup.reset(::open(argv[i + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

// A library call that opens a file must never get 0, 1 or 2: children would write into it.
bool occupy_standard_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::dup(fd)) {
    if (fd > 2) return ::close(fd) == 0;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  glovebox::agent::AgentOptions options;
  if (!read_arguments(argc, argv, options)) {
    std::fprintf(stderr, "usage: glovebox-agent [--listen PATH [--cgroup DIR]]\n");
    return 2;
  }
  if (!options.listener) {
    std::fprintf(stderr, "glovebox-agent: no socket to listen on\n");
    return 1;
  }
  if (::fcntl(2, F_GETFD) < 0 && !occupy_standard_descriptors()) return 1;
  const glovebox::Result<void> ended = glovebox::agent::run_agent(std::move(options));
  std::fprintf(stderr, "glovebox-agent: %s\n", ended.error().text().c_str());
  return 1;
}
