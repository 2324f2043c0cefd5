// sd_notify(3) without its library: tells systemd that we are ready.

#pragma once

#include <string_view>

namespace glovebox::warden {

// Does nothing where NOTIFY_SOCKET is not set. Failure is of no consequence to us.
void notify_service_manager(std::string_view state);

}  // namespace glovebox::warden
