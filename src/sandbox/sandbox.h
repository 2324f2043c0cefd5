// The values that the domain speaks in. No behaviour, no I/O.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "base/time.h"
#include "sandbox/lifecycle.h"
#include "sandbox/runtime.h"

namespace glovebox::sandbox {

// What happens when the time is up.
enum class OnTimeout : std::uint8_t { kKill, kPause };
std::string_view to_string(OnTimeout o) noexcept;
std::optional<OnTimeout> parse_on_timeout(std::string_view name) noexcept;
// "shared-kernel", "user-kernel", "vm".
std::optional<IsolationClass> parse_isolation(std::string_view name) noexcept;

using Labels = std::map<std::string, std::string>;
using Env = std::map<std::string, std::string>;

// What a client asks for; an empty optional means the configured default.
// SandboxService::create() validates every field and names the one that is wrong.
struct CreateSpec {
  std::string template_id = "host";
  std::string name;
  std::optional<Millis> timeout;
  std::optional<Millis> idle_timeout;  // Empty: no idle timeout.
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> disk_bytes;
  std::optional<std::uint32_t> cpu_millis;
  std::optional<std::uint32_t> pids;
  Env env;
  Labels labels;
  std::optional<IsolationClass> isolation;  // The least rung that will do.
  OnTimeout on_timeout = OnTimeout::kKill;
};

struct Sandbox {
  SandboxId id;
  std::string name;
  std::string template_id;
  State state = State::kCreating;
  IsolationClass isolation = IsolationClass::kSharedKernel;  // What it has, not what was asked.
  std::string runtime;
  WallTime created_at{};
  // Empty while it is paused (or on its way there and back): its clock stands still, and
  // `remaining` says what is left.
  std::optional<WallTime> expires_at;
  std::optional<Millis> remaining;
  Millis timeout{};  // As asked at create.
  std::optional<Millis> idle_timeout;
  OnTimeout on_timeout = OnTimeout::kKill;
  Labels labels;
  Limits limits;
  // Why it ended or is ending. Starts with one of: expired, idle, deleted, lost, died, create
  // failed, not resumed. What follows is for people.
  std::string reason;
  std::optional<WallTime> ended_at;
  // For commands run in it. Empty pointer in what list() gives: environments are large.
  std::shared_ptr<const Env> env;

  // The store's. `ending` is where `stopping` leads: kStopped or kFailed.
  std::int64_t revision = 0;
  State ending = State::kStopped;
  WallTime state_since{};
};

// All labels must match; no states means all.
struct Filter {
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<State> states;
};

// Newest first. Sandboxes created while a client pages do not move what it has yet to see.
struct Page {
  std::vector<Sandbox> sandboxes;
  std::optional<std::string> next_cursor;
};

}  // namespace glovebox::sandbox
