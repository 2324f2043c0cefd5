#include "os/cgroup.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "os/files.h"

namespace glovebox::os {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool lists(std::string_view comma_separated, std::string_view word) {
  const auto words = split(comma_separated, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Mount {
  std::string_view root;
  std::string_view point;
  std::string_view type;
  std::string_view options;
};

// "36 35 98:0 /root /point rw,noatime master:1 - type source options" (proc(5)).
bool parse_mount(std::string_view line, Mount& out) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return false;
  const auto head = split(line.substr(0, dash), ' ');
  const auto tail = split(line.substr(dash + 3), ' ');
  if (head.size() < 5 || tail.size() < 3) return false;
  out = {head[3], head[4], tail[0], tail[2]};
  return true;
}

// The caller's path, which counts from the hierarchy's root, as seen below a mount of `root`.
std::string below(std::string_view self, std::string_view root) {
  if (root != "/" && self.starts_with(root)) self.remove_prefix(root.size());
  return self == "/" ? std::string() : std::string(self);
}

std::string_view self_path(std::string_view self, std::string_view controller) {
  for (const std::string_view line : split(self, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool match = controller.empty() ? parts[1].empty() : lists(parts[1], controller);
    if (match) return line.substr(parts[0].size() + parts[1].size() + 2);
  }
  return "/";
}

void take(CgroupHierarchy& out, const Mount& m, std::string_view self, std::string_view name) {
  if (!out.mount.empty()) return;
  out.mount = m.point;
  out.self = below(self_path(self, name), m.root);
}

}  // namespace

CgroupHierarchies parse_cgroups(const std::string& mountinfo, const std::string& self) {
  CgroupHierarchies found;
  for (const std::string_view line : split(mountinfo, '\n')) {
    Mount m;
    if (!parse_mount(line, m)) continue;
    if (m.type == "cgroup2") take(found.unified, m, self, "");
    if (m.type != "cgroup") continue;
    if (lists(m.options, "memory")) take(found.memory, m, self, "memory");
    if (lists(m.options, "cpu")) take(found.cpu, m, self, "cpu");
    if (lists(m.options, "pids")) take(found.pids, m, self, "pids");
  }
  return found;
}

Result<CgroupHierarchies> find_cgroups() {
  GB_TRY_ASSIGN(const std::string mounts, read_file(AT_FDCWD, "/proc/self/mountinfo"));
  GB_TRY_ASSIGN(const std::string self, read_file(AT_FDCWD, "/proc/self/cgroup"));
  return parse_cgroups(mounts, self);
}

}  // namespace glovebox::os
