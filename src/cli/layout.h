// Where `glovebox up` puts things, and as whom the daemon runs.
//
//   DATA/             root, 0755
//   DATA/warden/      root, 0700        ownership records, disk images
//   DATA/daemon/      daemon, 0700      database, API key
//   RUN/              root:daemon, 1775 the daemon makes its socket here; sticky, so that it can
//                                       neither move nor replace what is root's
//   RUN/warden/       root, 0755        the warden's socket and those of the agents

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/supervisor.h"

namespace glovebox::cli {

inline constexpr std::uint32_t kDaemonId = 61870;  // When there is no user of that name.
inline constexpr std::string_view kDaemonUser = "glovebox";

struct Layout {
  std::string data_dir;
  std::string run_dir;

  std::string warden_state() const { return data_dir + "/warden"; }
  std::string daemon_data() const { return data_dir + "/daemon"; }
  std::string api_key_file() const { return daemon_data() + "/api-key"; }
  std::string ready_file() const { return daemon_data() + "/ready.json"; }
  std::string warden_socket() const { return run_dir + "/warden/warden.sock"; }
  std::string agent_sockets() const { return run_dir + "/warden/agents"; }
  std::string socket() const { return run_dir + "/glovebox.sock"; }
};

// From /etc/passwd, which is all that a static program can be sure of.
Identity daemon_identity(const std::string& passwd_file);

// Makes all directories. Refuses one that is a link, or belongs to somebody else.
Result<void> prepare_layout(const Layout& layout, const Identity& daemon);

}  // namespace glovebox::cli
