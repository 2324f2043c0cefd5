#include "os/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace glovebox::os {

Result<UniqueFd> openat(int dir_fd, const std::string& path, int flags, mode_t mode,
                        Resolve resolve) {
  ::open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  if (resolve == Resolve::kBeneath) how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  GB_TRY_ASSIGN(const long fd, retry("openat2", path, [&] {
                  return ::syscall(SYS_openat2, dir_fd, path.c_str(), &how, sizeof how);
                }));
  return UniqueFd(static_cast<int>(fd));
}

Result<UniqueFd> pidfd_open(pid_t pid) {
  GB_TRY_ASSIGN(const long fd, retry("pidfd_open", std::to_string(pid),
                                     [&] { return ::syscall(SYS_pidfd_open, pid, 0); }));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> pidfd_send_signal(int pid_fd, int signal) {
  GB_TRY(retry("pidfd_send_signal", std::to_string(signal),
               [&] { return ::syscall(SYS_pidfd_send_signal, pid_fd, signal, nullptr, 0); }));
  return {};
}

Result<void> bind_mount(const std::string& source, const std::string& target, bool read_only) {
  const auto mount = [&](unsigned long flags) {
    return retry("mount", target,
                 [&] { return ::mount(source.c_str(), target.c_str(), nullptr, flags, nullptr); });
  };
  GB_TRY(mount(MS_BIND | MS_REC));
  // The kernel ignores MS_RDONLY on the first bind; it takes a remount to make it so.
  if (read_only) GB_TRY(mount(MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV));
  return {};
}

}  // namespace glovebox::os
