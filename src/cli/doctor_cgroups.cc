#include <fcntl.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/doctor.h"
#include "os/files.h"

namespace glovebox::cli {
namespace {

constexpr std::string_view kWanted[] = {"memory", "cpu", "pids"};

struct Mounts {
  std::string v2;                         // Where cgroup2 is mounted, or empty.
  std::map<std::string, std::string> v1;  // Controller to mount point.
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Mounts read_mounts(const HostView& host) {
  Mounts mounts;
  const Result<std::string> text = os::read_file(AT_FDCWD, host.root + "/proc/self/mounts");
  if (!text) return mounts;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 4) continue;
    if (words[2] == "cgroup2") mounts.v2 = words[1];
    if (words[2] != "cgroup") continue;
    std::istringstream options(words[3]);
    for (std::string option; std::getline(options, option, ',');) mounts.v1[option] = words[1];
  }
  return mounts;
}

std::string missing_of(const std::vector<std::string>& have) {
  std::string out;
  for (const std::string_view name : kWanted) {
    if (std::find(have.begin(), have.end(), name) != have.end()) continue;
    out.append(out.empty() ? "" : ", ").append(name);
  }
  return out;
}

Check check_controllers(const HostView& host, const Mounts& mounts) {
  Check check = needed_check("cgroup-controllers", "limits on memory, CPU and processes");
  std::vector<std::string> v1;
  for (const std::string_view name : kWanted) {
    if (mounts.v1.contains(std::string(name))) v1.emplace_back(name);
  }
  std::vector<std::string> v2;
  if (!mounts.v2.empty()) {
    const Result<std::string> text =
        os::read_file(AT_FDCWD, host.root + mounts.v2 + "/cgroup.controllers");
    if (text) v2 = words_of(*text);
  }
  const std::string missing_v2 = missing_of(v2);
  const std::string missing_v1 = missing_of(v1);
  if (missing_v2.empty()) {
    check.found = "version 2, all of memory, cpu, pids";
  } else if (missing_v1.empty()) {
    check.found = "version 1, all of memory, cpu, pids";
  } else {
    check.verdict = Verdict::kMissing;
    check.found = "not found: " + (mounts.v1.empty() ? missing_v2 : missing_v1);
    check.remedy =
        "mount cgroup2 on /sys/fs/cgroup (systemd does); in a container, give it its "
        "cgroup tree to write; boot without cgroup_disable=";
  }
  return check;
}

Check check_freezer(const HostView& host, const Mounts& mounts) {
  Check check = optional_check("cgroup-freeze-kill", "pause, and end of everything at one stroke");
  static_cast<void>(host);
  if (!mounts.v2.empty()) {
    check.found = "cgroup2 at " + mounts.v2;
  } else if (mounts.v1.contains("freezer")) {
    check.verdict = Verdict::kWarn;
    check.found = "freezer of version 1 only";
    check.remedy = "mount -t cgroup2 none /sys/fs/cgroup/unified makes it faster and exact";
  } else {
    check.verdict = Verdict::kMissing;
    check.needed = true;
    check.found = "none";
    check.remedy = "mount -t cgroup2 none /sys/fs/cgroup/unified";
  }
  return check;
}

}  // namespace

std::vector<Check> check_cgroups(const HostView& host) {
  const Mounts mounts = read_mounts(host);
  return {check_controllers(host, mounts), check_freezer(host, mounts)};
}

}  // namespace glovebox::cli
