#include "runtime/native/disk.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/mount.h"
#include "os/sys.h"
#include "runtime/native/template_image.h"

namespace glovebox::native {
namespace {

Result<UniqueFd> part(const std::string& image, const char* name, std::uint64_t attributes) {
  GB_TRY_ASSIGN(UniqueFd mount, os::clone_mount(AT_FDCWD, image + "/" + name));
  GB_TRY(os::set_mount_attributes(mount.get(), attributes));
  return mount;
}

// The host's /usr, with its owners mapped so that root's files are root's inside.
Result<UniqueFd> host_usr(int user_ns) {
  GB_TRY_ASSIGN(UniqueFd mount, os::clone_mount(AT_FDCWD, "/usr"));
  GB_TRY(os::set_mount_attributes(
      mount.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, user_ns));
  return mount;
}

// Acts on files as the sandbox's root, with all of our capabilities, for as long as it lives.
// Overlayfs works in its upper layer as whoever mounted it, and on an id-mapped layer host root is
// nobody: it could create nothing there, and overlayfs would go read-only.
class [[nodiscard]] AsRootInside {
 public:
  static Result<AsRootInside> enter(uid_t uid_base) {
    AsRootInside scope;
    ::setfsgid(uid_base);
    ::setfsuid(uid_base);
    // Leaving fsuid 0 takes the capabilities over files from the effective set (capabilities(7)).
    GB_TRY(all_capabilities());
    return scope;
  }
  AsRootInside(AsRootInside&& other) noexcept : active_(std::exchange(other.active_, false)) {}
  AsRootInside& operator=(AsRootInside&&) = delete;
  ~AsRootInside() {
    if (!active_) return;
    ::setfsuid(0);
    ::setfsgid(0);
    (void)all_capabilities();
  }

 private:
  AsRootInside() = default;

  static Result<void> all_capabilities() {
    ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    ::__user_cap_data_struct data[2] = {};
    GB_TRY(os::retry("capget", "", [&] { return ::syscall(SYS_capget, &header, data); }));
    for (auto& half : data) half.effective = half.permitted;
    GB_TRY(os::retry("capset", "", [&] { return ::syscall(SYS_capset, &header, data); }));
    return {};
  }

  bool active_ = true;
};

}  // namespace

Result<BoxMounts> make_box_mounts(int image_fd, int user_ns, uid_t uid_base,
                                  const std::string& scratch_a, const std::string& scratch_b) {
  BoxMounts mounts;
  // Attached for a moment, because before Linux 6.15 neither open_tree(2) nor overlayfs takes a
  // mount that is attached nowhere. Overlayfs keeps copies of its own.
  GB_TRY_ASSIGN(const UniqueFd image, mount_image(image_fd, user_ns));
  GB_TRY_ASSIGN(const auto at, os::AttachedMount::attach(image.get(), scratch_a));
  GB_TRY_ASSIGN(const UniqueFd usr, host_usr(user_ns));
  GB_TRY_ASSIGN(const auto lower, os::AttachedMount::attach(usr.get(), scratch_b));
  GB_TRY_ASSIGN(mounts.root, part(at.path(), kImageRoot, MOUNT_ATTR_NODEV));
  GB_TRY_ASSIGN(mounts.dev, part(at.path(), kImageDev, MOUNT_ATTR_NOEXEC));
  GB_TRY_ASSIGN(const auto as_root, AsRootInside::enter(uid_base));
  GB_TRY_ASSIGN(mounts.usr,
                os::make_mount("overlay",
                               {{"source", "glovebox"},
                                {"lowerdir", lower.path()},
                                {"upperdir", at.path() + "/" + kImageUsrUpper},
                                {"workdir", at.path() + "/" + kImageUsrWork},
                                {"volatile", ""}},
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME));
  return mounts;
}

}  // namespace glovebox::native
