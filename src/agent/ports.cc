#include "agent/ports.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <tuple>

#include "agent/common/acting_as.h"
#include "agent/common/small_file.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kFileBytesMax = 4 << 20;
constexpr std::size_t kPortsMax = 4096;
constexpr int kProcessesMax = 4096;
constexpr int kDescriptorsMax = 65'536;

std::string_view next_word(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <class T>
bool parse(std::string_view text, T& value, int base) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return ec == std::errc() && end == text.data() + text.size();
}

// The kernel prints an address as 32-bit words in its own byte order.
bool parse_address(std::string_view hex, std::string& address) {
  if (hex.size() != 8 && hex.size() != 32) return false;
  std::uint32_t words[4] = {};
  for (std::size_t i = 0; i < hex.size() / 8; ++i) {
    if (!parse(hex.substr(i * 8, 8), words[i], 16)) return false;
  }
  char text[INET6_ADDRSTRLEN];
  const int family = hex.size() == 8 ? AF_INET : AF_INET6;
  if (::inet_ntop(family, words, text, sizeof text) == nullptr) return false;
  address = text;
  return true;
}

// "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 12345 …"
bool parse_line(std::string_view line, ListeningPort& port) {
  next_word(line);
  const std::string_view local = next_word(line);
  next_word(line);
  if (next_word(line) != "0A") return false;  // TCP_LISTEN
  for (int i = 0; i < 3; ++i) next_word(line);
  const std::string_view uid = next_word(line);
  next_word(line);
  const std::string_view inode = next_word(line);
  const std::size_t colon = local.find(':');
  return colon != std::string_view::npos && parse_address(local.substr(0, colon), port.address) &&
         parse(local.substr(colon + 1), port.port, 16) && parse(uid, port.uid, 10) &&
         parse(inode, port.inode, 10);
}

// Whom a process belongs to may look at its descriptors; root without CAP_SYS_PTRACE may not.
void look_into(pid_t pid, std::map<std::uint64_t, ListeningPort*>& wanted, int& budget) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return;
  User owner;
  owner.uid = st.st_uid;
  owner.gid = st.st_gid;
  const Result<ActingAs> rights = ActingAs::begin(owner);
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return;
  while (const dirent* item = ::readdir(dir)) {
    if (--budget < 0) break;
    char target[64];
    const ssize_t n = ::readlinkat(::dirfd(dir), item->d_name, target, sizeof target - 1);
    constexpr std::string_view kPrefix = "socket:[";
    const std::string_view text(target, n > 0 ? static_cast<std::size_t>(n) : 0);
    if (!text.starts_with(kPrefix) || !text.ends_with(']')) continue;
    std::uint64_t inode = 0;
    if (!parse(text.substr(kPrefix.size(), text.size() - kPrefix.size() - 1), inode, 10)) continue;
    const auto found = wanted.find(inode);
    if (found != wanted.end() && !found->second->pid) found->second->pid = pid;
  }
  ::closedir(dir);
}

void find_processes(std::vector<ListeningPort>& ports) {
  std::map<std::uint64_t, ListeningPort*> wanted;
  for (ListeningPort& port : ports) wanted[port.inode] = &port;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return;
  int budget = kDescriptorsMax;
  int processes = kProcessesMax;
  while (const dirent* item = ::readdir(dir)) {
    pid_t pid = 0;
    if (!parse(std::string_view(item->d_name), pid, 10) || --processes < 0) continue;
    look_into(pid, wanted, budget);
  }
  ::closedir(dir);
}

}  // namespace

std::vector<ListeningPort> parse_proc_net_tcp(std::string_view text) {
  std::vector<ListeningPort> ports;
  while (!text.empty() && ports.size() < kPortsMax) {
    const std::size_t newline = text.find('\n');
    ListeningPort port;
    if (parse_line(text.substr(0, newline), port)) ports.push_back(std::move(port));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return ports;
}

std::vector<ListeningPort> listening_ports() {
  std::vector<ListeningPort> ports;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    auto text = read_small_file(AT_FDCWD, path, kFileBytesMax);
    if (!text) continue;
    for (ListeningPort& port : parse_proc_net_tcp(*text)) ports.push_back(std::move(port));
  }
  std::sort(ports.begin(), ports.end(), [](const ListeningPort& a, const ListeningPort& b) {
    return std::tie(a.port, a.address) < std::tie(b.port, b.address);
  });
  if (!ports.empty()) find_processes(ports);
  return ports;
}

}  // namespace glovebox::agent
