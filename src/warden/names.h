// Names of sandboxes and of instances, as the warden takes and makes them.

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace glovebox::warden {

// [a-z0-9-]{1,64}: safe as a file name, a cgroup's name and a part of a socket's path.
bool valid_name(std::string_view name) noexcept;

// A name that no two sandboxes ever share: 12 random characters of [a-z0-9]. Resources are named
// by it and not by the client's name, so a warm sandbox keeps its resources when it is claimed,
// and a client's name can be used again while its former owner is still being taken down.
Result<std::string> make_instance_name();

}  // namespace glovebox::warden
