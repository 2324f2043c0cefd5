// What gloveboxd does to itself as a process, before it serves anybody.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::daemon {

// Each sandbox stream takes two descriptors, so the soft limit goes up to the hard one. Returns it.
Result<std::uint64_t> raise_open_files();

// SIGTERM when the parent ends; kUnavailable when it has ended already.
Result<void> die_with_parent();

struct User {
  std::string name;
  uid_t uid;
  gid_t gid;
};
// From /etc/passwd only: a static program has no NSS.
Result<User> find_user(const std::string& name);
// For good, with no supplementary groups, and checked.
Result<void> become(const User& user);

// Makes the directory and its parents if they are not there, and gives it to `owner`. One that is
// there must belong to `owner` already.
Result<void> prepare_dir(const std::string& path, mode_t mode, const std::optional<User>& owner);

// Replaces the file in one step; mode 0600.
Result<void> write_private_file(const std::string& path, std::string_view text);

// systemd.exec(5), sd_listen_fds(3): listening sockets that systemd holds for us.
std::vector<UniqueFd> inherited_listeners();
// sd_notify(3). Without systemd it does nothing.
void notify_supervisor(std::string_view state);

}  // namespace glovebox::daemon
