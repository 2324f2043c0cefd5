#include "os/loop.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/sys.h"

namespace glovebox::os {
namespace {

constexpr int kTriesMax = 64;  // Others on the host take free numbers too.
constexpr unsigned kLoopMajor = 7;

// The node may be missing where no udev runs; its number is fixed
// (Documentation/admin-guide/devices).
Result<UniqueFd> open_device(const std::string& path, int number) {
  for (bool made = false;; made = true) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != ENOENT || made) return Error::from_errno(errno, "open " + path);
    if (::mknod(path.c_str(), S_IFBLK | 0600,
                ::makedev(kLoopMajor, static_cast<unsigned>(number))) != 0 &&
        errno != EEXIST) {
      return Error::from_errno(errno, "mknod " + path);
    }
  }
}

}  // namespace

Result<LoopDevice> attach_loop(int file_fd) {
  GB_TRY_ASSIGN(const int raw, retry("open", "/dev/loop-control", [] {
                  return ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
                }));
  const UniqueFd control(raw);
  ::loop_config config{};
  config.fd = static_cast<std::uint32_t>(file_fd);
  config.block_size = 4096;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  for (int i = 0; i < kTriesMax; ++i) {
    GB_TRY_ASSIGN(const int number, retry("ioctl", "LOOP_CTL_GET_FREE", [&] {
                    return ::ioctl(control.get(), LOOP_CTL_GET_FREE);
                  }));
    std::string path = "/dev/loop" + std::to_string(number);
    GB_TRY_ASSIGN(UniqueFd device, open_device(path, number));
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
      return LoopDevice{std::move(device), std::move(path)};
    }
    if (errno == EBUSY) continue;  // Somebody was faster.
    if (errno == EINVAL && (config.info.lo_flags & LO_FLAGS_DIRECT_IO) != 0) {
      config.info.lo_flags &= ~static_cast<std::uint32_t>(LO_FLAGS_DIRECT_IO);
      continue;
    }
    return Error::from_errno(errno, "LOOP_CONFIGURE " + path);
  }
  return Error(Errc::kUnavailable, "no loop device could be had: others keep taking them");
}

}  // namespace glovebox::os
