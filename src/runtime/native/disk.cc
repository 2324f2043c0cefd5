#include "runtime/native/disk.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>
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

// A directory of the host, with its owners mapped so that root's files are root's inside.
Result<UniqueFd> lower_layer(const std::string& path, int user_ns) {
  GB_TRY_ASSIGN(UniqueFd mount, os::clone_mount(AT_FDCWD, path));
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

Result<BoxMounts> make_box_mounts(const DiskPlan& plan) {
  BoxMounts mounts;
  // Attached for a moment, because before Linux 6.15 neither open_tree(2) nor overlayfs takes a
  // mount that is attached nowhere. Overlayfs keeps copies of its own.
  GB_TRY_ASSIGN(const UniqueFd image, mount_image(plan.image, plan.user_ns));
  GB_TRY_ASSIGN(const auto at, os::AttachedMount::attach(image.get(), plan.scratch_image));
  GB_TRY_ASSIGN(const UniqueFd usr, lower_layer("/usr", plan.user_ns));
  GB_TRY_ASSIGN(const auto usr_at, os::AttachedMount::attach(usr.get(), plan.scratch_usr));
  GB_TRY_ASSIGN(const UniqueFd layer, lower_layer(plan.usr_layer, plan.user_ns));
  GB_TRY_ASSIGN(const auto layer_at, os::AttachedMount::attach(layer.get(), plan.scratch_layer));
  GB_TRY_ASSIGN(mounts.root, part(at.path(), kImageRoot, MOUNT_ATTR_NODEV));
  GB_TRY_ASSIGN(mounts.dev, part(at.path(), kImageDev, MOUNT_ATTR_NOEXEC));
  GB_TRY_ASSIGN(const auto as_root, AsRootInside::enter(plan.uid_base));
  GB_TRY_ASSIGN(mounts.usr,
                os::make_mount("overlay",
                               {{"source", "glovebox"},
                                {"lowerdir", layer_at.path() + ":" + usr_at.path()},
                                {"upperdir", at.path() + "/" + kImageUsrUpper},
                                {"workdir", at.path() + "/" + kImageUsrWork},
                                {"volatile", ""}},
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME));
  return mounts;
}

void discard_unwritten(const std::string& path) noexcept {
  // fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH, in no public header.
  constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);
  std::uint32_t without_flush = 2;
  struct ::statfs fs;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The number is another call on another file system, so ask which one this is.
  if (fd && ::fstatfs(fd.get(), &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC) {
    ::ioctl(fd.get(), kShutdown, &without_flush);
  }
}

}  // namespace glovebox::native
