// Thin, typed wrappers over the system calls we use, one function a call, named after it.
//
// What they add: EINTR is retried, errno becomes an Error that names the call and its subject,
// descriptors come back owned, and every new descriptor is close-on-exec.
// What they do not add: policy. Anything that decides belongs to the caller.

#pragma once

#include <sys/types.h>

#include <cerrno>
#include <concepts>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::os {

// Calls `f` until it is not interrupted. `name` is the call's name, `subject` what it acts on.
template <std::invocable F>
auto retry(std::string_view name, std::string_view subject, F f) -> Result<decltype(f())> {
  for (;;) {
    const auto r = f();
    if (r != -1) return r;
    if (errno == EINTR) continue;
    const int err = errno;
    return Error::from_errno(err, std::string(name).append(" ").append(subject));
  }
}

// How far a path may lead. kBeneath refuses "..", absolute links and magic links.
enum class Resolve { kAnywhere, kBeneath };

Result<UniqueFd> openat(int dir_fd, const std::string& path, int flags, mode_t mode = 0,
                        Resolve resolve = Resolve::kBeneath);
Result<UniqueFd> pidfd_open(pid_t pid);
Result<void> pidfd_send_signal(int pid_fd, int signal);
Result<void> bind_mount(const std::string& source, const std::string& target, bool read_only);

}  // namespace glovebox::os
