#include "agent/exec/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "agent/common/small_file.h"

namespace glovebox::agent {
namespace {

constexpr int kRoundsMax = 50;

struct Entry {
  pid_t pid;
  pid_t parent;
  pid_t session;
  bool dead;
};

// Fields 3, 4 and 6 of /proc/pid/stat, counted from the last ')': the name before it may hold
// anything.
bool read_entry(pid_t pid, Entry& entry) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  auto text = read_small_file(AT_FDCWD, path.c_str(), 4096);
  if (!text) return false;
  const std::size_t at = text->rfind(')');
  if (at == std::string::npos) return false;
  char state = 0;
  int group = 0;
  entry.pid = pid;
  // NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers.
  if (std::sscanf(text->c_str() + at + 1, " %c %d %d %d", &state, &entry.parent, &group,
                  &entry.session) != 4) {
    return false;
  }
  entry.dead = state == 'Z' || state == 'X';
  return true;
}

std::vector<Entry> all_processes() {
  std::vector<Entry> list;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return list;
  while (const dirent* item = ::readdir(dir)) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (ec != std::errc() || end != name.data() + name.size()) continue;
    Entry entry{};
    if (read_entry(pid, entry)) list.push_back(entry);
  }
  ::closedir(dir);
  return list;
}

}  // namespace

void kill_process_tree(pid_t root) {
  std::vector<pid_t> family{root};
  const auto in_family = [&](pid_t pid) {
    return std::find(family.begin(), family.end(), pid) != family.end();
  };
  for (int round = 0; round < kRoundsMax; ++round) {
    bool found = false;
    for (const Entry& entry : all_processes()) {
      if (entry.pid <= 1 || entry.pid == ::getpid() || entry.dead) continue;
      if (entry.pid != root && entry.session != root && !in_family(entry.parent) &&
          !in_family(entry.pid)) {
        continue;
      }
      // Stopped first, so that it forks no more while its children are being looked for.
      if (!in_family(entry.pid)) {
        ::kill(entry.pid, SIGSTOP);
        family.push_back(entry.pid);
        found = true;
      }
    }
    if (!found) break;
  }
  for (const pid_t pid : family) ::kill(pid, SIGKILL);
}

}  // namespace glovebox::agent
