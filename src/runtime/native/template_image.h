// The disk image that a new sandbox's writable layer starts as: an ext4 file system with the
// directories of a small machine, a made-up /etc, a few device nodes, and room for the layer over
// /usr. User ids on it are those inside a sandbox; each mount of a copy maps them to the slot's.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::native {

// Directories within an image.
inline constexpr const char* kImageRoot = "root";  // Becomes / (with usr and dev mounted on).
inline constexpr const char* kImageDev = "dev";    // Becomes /dev; the only one with devices.
inline constexpr const char* kImageUsrUpper = "usr/upper";
inline constexpr const char* kImageUsrWork = "usr/work";

class TemplateImages {
 public:
  // Images are kept in `dir`; `scratch` is an empty directory to mount on while one is made.
  TemplateImages(std::string dir, std::string scratch)
      : dir_(std::move(dir)), scratch_(std::move(scratch)) {}

  // An open image of that size, made at the first call (tens of milliseconds). Borrowed.
  Result<int> of_size(std::uint64_t bytes);

 private:
  static constexpr std::size_t kKeptMax = 16;  // Sizes; the least recently made goes first.

  std::string dir_;
  std::string scratch_;
  std::map<std::uint64_t, UniqueFd> images_;
};

// Mounts an image file, detached: nosuid, noatime; with `user_ns` >= 0 its ids are mapped by it.
Result<UniqueFd> mount_image(int image_fd, int user_ns);

}  // namespace glovebox::native
