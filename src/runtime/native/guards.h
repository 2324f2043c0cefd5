// The single guards of a sandbox, by name. A test build can leave one off, to show that the test
// of that guard then fails; in any other build the set is empty and unguarded() cannot change it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace glovebox::native {

enum class Guard : std::uint32_t {
  kSeccomp = 1 << 0,
  kCaps = 1 << 1,
  kNoNewPrivs = 1 << 2,
  kLandlock = 1 << 3,
  kUserNamespace = 1 << 4,  // Ids of its own; without it inside root is host root.
  kNetNamespace = 1 << 5,
  kPidNamespace = 1 << 6,
  kIpcNamespace = 1 << 7,
  kMaskedProc = 1 << 8,
  kRootView = 1 << 9,  // Without it the host's root is visible at /.host.
  kMemory = 1 << 10,
  kPids = 1 << 11,
  kCpu = 1 << 12,
  kDisk = 1 << 13,
  kNestedUserNamespaces = 1 << 14,
};

// Guards that are off.
class Unguarded {
 public:
  bool off(Guard guard) const noexcept { return (bits_ & static_cast<std::uint32_t>(guard)) != 0; }
  // Comma-separated names, as in guards.cc. kInvalid for an unknown name, and for any name at all
  // in a build without GLOVEBOX_UNGUARDED.
  static Result<Unguarded> parse(std::string_view names);

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace glovebox::native
