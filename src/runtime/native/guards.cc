#include "runtime/native/guards.h"

#include <utility>

namespace glovebox::native {
namespace {

#ifdef GLOVEBOX_UNGUARDED
constexpr std::pair<std::string_view, Guard> kNames[] = {
    {"seccomp", Guard::kSeccomp},
    {"caps", Guard::kCaps},
    {"no_new_privs", Guard::kNoNewPrivs},
    {"landlock", Guard::kLandlock},
    {"userns", Guard::kUserNamespace},
    {"netns", Guard::kNetNamespace},
    {"pidns", Guard::kPidNamespace},
    {"ipcns", Guard::kIpcNamespace},
    {"masked_proc", Guard::kMaskedProc},
    {"root_view", Guard::kRootView},
    {"memory", Guard::kMemory},
    {"pids", Guard::kPids},
    {"cpu", Guard::kCpu},
    {"disk", Guard::kDisk},
    {"nested_userns", Guard::kNestedUserNamespaces},
};
#endif

}  // namespace

Result<Unguarded> Unguarded::parse(std::string_view names) {
  Unguarded result;
  if (names.empty()) return result;
#ifdef GLOVEBOX_UNGUARDED
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    bool known = false;
    for (const auto& [text, guard] : kNames) {
      if (text != name) continue;
      result.bits_ |= static_cast<std::uint32_t>(guard);
      known = true;
    }
    if (!known) return Error(Errc::kInvalid, "no guard is named \"" + std::string(name) + "\"");
  }
  return result;
#else
  return Error(Errc::kInvalid, "this build cannot leave a guard off");
#endif
}

}  // namespace glovebox::native
