// The new mount API (fsopen(2) and friends), typed: a mount that is not attached anywhere is a
// descriptor, and goes away with it.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::os {

using MountOptions = std::initializer_list<std::pair<const char*, std::string>>;

// A new instance of a file system, detached. An option with an empty value is a flag.
// `attributes` are MOUNT_ATTR_*. The error carries the kernel's own message where it gives one.
Result<UniqueFd> make_mount(const char* type, MountOptions options, std::uint64_t attributes);

// A detached copy of the mount that `path` is on, rooted at `path`, without what is mounted below.
Result<UniqueFd> clone_mount(int dir_fd, const std::string& path);

// Adds MOUNT_ATTR_* to a mount; with `user_ns` >= 0 also maps its ids by that user namespace.
Result<void> set_mount_attributes(int mount_fd, std::uint64_t attributes, int user_ns = -1);

Result<void> attach_mount(int mount_fd, const std::string& target);
Result<void> detach_mount(const std::string& target) noexcept;

// What is attached at a path for as long as the object lives.
class [[nodiscard]] AttachedMount {
 public:
  static Result<AttachedMount> attach(int mount_fd, std::string target);
  AttachedMount(AttachedMount&& other) noexcept : target_(std::exchange(other.target_, {})) {}
  AttachedMount& operator=(AttachedMount&&) = delete;
  ~AttachedMount();
  const std::string& path() const noexcept { return target_; }

 private:
  explicit AttachedMount(std::string target) : target_(std::move(target)) {}
  std::string target_;
};

}  // namespace glovebox::os
