#include "os/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/sys.h"

namespace glovebox::os {
namespace {

// The kernel leaves its reason in the context ("e overlay: ...") as messages to read(2).
std::string kernel_message(int context_fd) {
  char text[512];
  const ssize_t n = ::read(context_fd, text, sizeof text - 1);
  if (n <= 2) return {};
  std::string message(text + 2, static_cast<std::size_t>(n - 2));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return " (" + message + ")";
}

}  // namespace

Result<UniqueFd> make_mount(const char* type, MountOptions options, std::uint64_t attributes) {
  GB_TRY_ASSIGN(const long raw,
                retry("fsopen", type, [&] { return ::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC); }));
  const UniqueFd context(static_cast<int>(raw));
  const auto fail = [&](const std::string& what) -> Error {
    const int err = errno;
    return Error::from_errno(err, std::string(type) + " " + what + kernel_message(context.get()));
  };
  for (const auto& [key, value] : options) {
    const bool flag = value.empty();
    const long r =
        ::syscall(SYS_fsconfig, context.get(), flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, key,
                  flag ? nullptr : value.c_str(), 0);
    if (r != 0) return fail(std::string("option ") + key);
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail("mount");
  }
  const long fd = ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes);
  if (fd < 0) return fail("fsmount");
  return UniqueFd(static_cast<int>(fd));
}

Result<UniqueFd> clone_mount(int dir_fd, const std::string& path) {
  GB_TRY_ASSIGN(const long fd, retry("open_tree", path, [&] {
                  return ::syscall(SYS_open_tree, dir_fd, path.c_str(),
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                }));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> set_mount_attributes(int mount_fd, std::uint64_t attributes, int user_ns) {
  ::mount_attr attr{};
  attr.attr_set = attributes;
  if (user_ns >= 0) {
    attr.attr_set |= MOUNT_ATTR_IDMAP;
    attr.userns_fd = static_cast<std::uint64_t>(user_ns);
  }
  GB_TRY(retry("mount_setattr", "", [&] {
    return ::syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
  }));
  return {};
}

Result<void> attach_mount(int mount_fd, const std::string& target) {
  GB_TRY(retry("move_mount", target, [&] {
    return ::syscall(SYS_move_mount, mount_fd, "", AT_FDCWD, target.c_str(),
                     MOVE_MOUNT_F_EMPTY_PATH);
  }));
  return {};
}

Result<void> detach_mount(const std::string& target) noexcept {
  GB_TRY(retry("umount2", target,
               [&] { return ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW); }));
  return {};
}

Result<AttachedMount> AttachedMount::attach(int mount_fd, std::string target) {
  GB_TRY(attach_mount(mount_fd, target));
  return AttachedMount(std::move(target));
}

AttachedMount::~AttachedMount() {
  if (!target_.empty()) ::umount2(target_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace glovebox::os
