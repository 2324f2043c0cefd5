// What this host can and cannot do for Glovebox: asked of the kernel, one check a line.

#pragma once

#include <string>
#include <vector>

namespace glovebox::cli {

enum class Verdict { kOk, kWarn, kMissing };

struct Check {
  std::string id;  // Stable, for scripts: "userns".
  Verdict verdict = Verdict::kOk;
  std::string found;    // "version 6.1.0"
  std::string meaning;  // What it is for, or what does not work without.
  std::string remedy;   // How to get it; empty when it is fine.
  bool needed = false;  // `native` cannot work without it.
};

// One that found nothing wrong so far.
Check needed_check(std::string id, std::string meaning);
Check optional_check(std::string id, std::string meaning);

// Where to look; a test gives a made-up tree.
struct HostView {
  std::string root;                    // Before /proc, /sys, /dev, /etc.
  std::vector<std::string> path_dirs;  // For programs.
  std::string data_dir = "/var/lib/glovebox";
};
HostView this_host();

std::vector<Check> check_host(const HostView& host);

// The groups, each in its own file.
std::vector<Check> check_kernel(const HostView& host);  // Namespaces, seccomp, Landlock, mounts.
std::vector<Check> check_cgroups(const HostView& host);
std::vector<Check> check_resources(const HostView& host);  // Privileges, disk, user ids, programs.

}  // namespace glovebox::cli
