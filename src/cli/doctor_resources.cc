#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "cli/doctor.h"
#include "cli/units.h"
#include "os/files.h"

namespace glovebox::cli {
namespace {

// As runtime/native/host.h has it: slot n uses 65,536 ids from here.
constexpr std::uint64_t kUidBase = 0x70000000;
constexpr std::uint64_t kUidCount = 4096ULL * 65536;

std::string find_program(const HostView& host, const std::string& name) {
  for (const std::string& dir : host.path_dirs) {
    const std::string path = host.root + dir + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return dir + "/" + name;
  }
  return {};
}

Check check_privileges(const HostView& host) {
  Check check = needed_check("privileges",
                             "the warden makes namespaces, mounts and cgroups, and "
                             "has the hog killed before the agent (oom_score_adj)");
  const Result<std::string> status = os::read_file(AT_FDCWD, host.root + "/proc/self/status");
  std::uint64_t caps = 0;
  if (status) {
    const std::size_t at = status->find("CapEff:\t");
    if (at != std::string::npos) {
      const char* begin = status->data() + at + 8;
      std::from_chars(begin, status->data() + status->size(), caps, 16);
    }
  }
  struct Cap {
    int bit;  // Of capabilities(7).
    std::string_view name;
  };
  constexpr Cap kNeeded[] = {{0, "CHOWN"},  {1, "DAC_OVERRIDE"}, {5, "KILL"},      {6, "SETGID"},
                             {7, "SETUID"}, {12, "NET_ADMIN"},   {21, "SYS_ADMIN"}};
  std::string missing;
  for (const Cap& cap : kNeeded) {
    if ((caps >> cap.bit & 1) == 0) missing.append(missing.empty() ? "" : ", ").append(cap.name);
  }
  const bool resource = (caps >> 24 & 1) != 0;
  if (missing.empty() && resource) {
    check.found = "root";
    return check;
  }
  if (missing.empty()) {
    check.verdict = Verdict::kWarn;
    check.found = "root without SYS_RESOURCE";
    check.remedy = "give the container CAP_SYS_RESOURCE, or the agent may be killed before the hog";
    return check;
  }
  check.verdict = Verdict::kMissing;
  check.found = "without " + missing;
  check.remedy = "run as root: sudo glovebox doctor";
  return check;
}

Check check_disk(const HostView& host) {
  Check check = optional_check("disk", "room for what sandboxes write, in " + host.data_dir);
  std::string path = host.root + host.data_dir;
  struct statvfs space{};
  while (::statvfs(path.c_str(), &space) != 0 && path.size() > 1) {
    const std::size_t slash = path.rfind('/');
    path = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  }
  const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  check.found = format_bytes(free) + " free";
  constexpr std::uint64_t kComfort = 5ULL << 30;
  if (free < kComfort) {
    check.verdict = Verdict::kWarn;
    check.remedy = "free some, or name another place with glovebox up --data-dir";
  }
  return check;
}

Check check_uids(const HostView& host) {
  Check check = optional_check("user-ids", "each sandbox gets 65,536 user ids of its own");
  std::string clash;
  for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
    const Result<std::string> text = os::read_file(AT_FDCWD, host.root + file);
    if (!text) continue;
    std::istringstream in(*text);
    for (std::string line; std::getline(in, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == std::string::npos || second == std::string::npos) continue;
      std::uint64_t start = 0;
      std::uint64_t count = 0;
      const char* data = line.data();
      std::from_chars(data + first + 1, data + second, start);
      std::from_chars(data + second + 1, data + line.size(), count);
      if (start < kUidBase + kUidCount && kUidBase < start + count) {
        clash = std::string(file) + ": " + line;
      }
    }
  }
  const std::string range =
      std::to_string(kUidBase) + " to " + std::to_string(kUidBase + kUidCount - 1);
  if (clash.empty()) {
    check.found = range + " free";
  } else {
    check.verdict = Verdict::kWarn;
    check.found = range + " overlaps " + clash;
    check.remedy = "move that range, or start glovebox-warden with another --uid-base";
  }
  return check;
}

Check check_program(const HostView& host, std::string id, const std::string& name,
                    std::string meaning, std::string remedy) {
  Check check = optional_check(std::move(id), std::move(meaning));
  check.found = find_program(host, name);
  if (check.found.empty()) {
    check.verdict = Verdict::kWarn;
    check.found = "no " + name;
    check.remedy = std::move(remedy);
  }
  return check;
}

Check check_mkfs(const HostView& host) {
  Check check = needed_check("mkfs.ext4", "makes the disk image that every sandbox starts with");
  check.found = find_program(host, "mkfs.ext4");
  if (check.found.empty()) {
    check.verdict = Verdict::kMissing;
    check.found = "no mkfs.ext4";
    check.remedy = "apt install e2fsprogs";
  }
  return check;
}

}  // namespace

Check needed_check(std::string id, std::string meaning) {
  Check check = optional_check(std::move(id), std::move(meaning));
  check.needed = true;
  return check;
}

Check optional_check(std::string id, std::string meaning) {
  Check check;
  check.id = std::move(id);
  check.meaning = std::move(meaning);
  return check;
}

HostView this_host() {
  HostView host;
  const char* path = std::getenv("PATH");
  std::istringstream in(path == nullptr ? "" : path);
  for (std::string dir; std::getline(in, dir, ':');) {
    if (!dir.empty()) host.path_dirs.push_back(dir);
  }
  for (const char* dir : {"/usr/local/sbin", "/usr/sbin", "/sbin"})
    host.path_dirs.emplace_back(dir);
  return host;
}

std::vector<Check> check_resources(const HostView& host) {
  return {check_privileges(host),
          check_disk(host),
          check_uids(host),
          check_mkfs(host),
          check_program(host, "gvisor", "runsc",
                        "for the isolation `user-kernel`: system calls end in gVisor",
                        "apt install runsc, or from gvisor.dev; `native` does without"),
          check_program(host, "nftables", "nft",
                        "for redirecting all ports of a sandbox to the door out",
                        "apt install nftables; sandboxes have no network without")};
}

std::vector<Check> check_host(const HostView& host) {
  std::vector<Check> all = check_kernel(host);
  for (auto* group : {&check_cgroups, &check_resources}) {
    for (Check& check : (*group)(host)) all.push_back(std::move(check));
  }
  return all;
}

}  // namespace glovebox::cli
