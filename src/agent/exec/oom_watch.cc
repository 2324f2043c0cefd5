#include "agent/exec/oom_watch.h"

#include <fcntl.h>

#include <charconv>
#include <string>
#include <string_view>

#include "agent/common/small_file.h"

namespace glovebox::agent {
namespace {

// The number on the line "oom_kill N".
std::optional<std::uint64_t> find_counter(std::string_view text) {
  constexpr std::string_view kName = "oom_kill ";
  std::size_t at = text.find(kName);
  while (at != std::string_view::npos && at > 0 && text[at - 1] != '\n') {
    at = text.find(kName, at + 1);
  }
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kName.size());
  std::uint64_t count = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (ec != std::errc()) return std::nullopt;
  return count;
}

}  // namespace

std::optional<std::uint64_t> OomWatch::read() const {
  if (cgroup_fd_ >= 0) {
    auto events = read_small_file(cgroup_fd_, "memory.events", 4096);
    if (events) return find_counter(*events);
  }
  auto vmstat = read_small_file(AT_FDCWD, "/proc/vmstat", 64 << 10);
  if (!vmstat) return std::nullopt;
  return find_counter(*vmstat);
}

void OomWatch::begin() {
  const Deadline now = Clock::now();
  if (known_ && now < read_at_ + std::chrono::seconds(1)) return;
  known_ = read();
  read_at_ = now;
}

bool OomWatch::kernel_killed() {
  const std::optional<std::uint64_t> now = read();
  const bool rose = now && known_ && *now > *known_;
  known_ = now;
  return rose;
}

}  // namespace glovebox::agent
