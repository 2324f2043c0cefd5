// The life of one sandbox, as a table.
//
//   creating --ready--> running --pause--> pausing --paused--> paused --resume--> resuming
//                          ^                  |undo              ^  undo              |
//                          +------------------+                  +--------------------+
//                          +------------------------------ready-----------------------+
//
// Every one of these goes to `stopping` on `stop`, and from there to `stopped` (`gone`) or `failed`
// (`fail`): whatever ended a sandbox, its remains are removed before it counts as ended.
//
// Only SandboxService moves a sandbox, by SandboxRepository::move(), which compares and sets in the
// store. The state is stored before it is acted on, and every action can be repeated, so a restart
// of the daemon is one more event and no special case.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace glovebox::sandbox {

enum class State : std::uint8_t {
  kCreating,
  kRunning,
  kPausing,
  kPaused,
  kResuming,
  kStopping,
  kStopped,
  kFailed,
};

enum class Event : std::uint8_t {
  kReady,   // It was made or thawed: its agent can be reached.
  kPause,   // Someone asks for a pause.
  kPaused,  // It is frozen.
  kUndo,    // Freezing or thawing failed; it is as it was before.
  kResume,  // Someone asks it to go on.
  kStop,    // It must end; whatever is left of it is being removed.
  kGone,    // Nothing is left of it.
  kFail,    // Nothing is left of it, and nobody wanted that.
};

inline constexpr std::array kStates{State::kCreating, State::kRunning,  State::kPausing,
                                    State::kPaused,   State::kResuming, State::kStopping,
                                    State::kStopped,  State::kFailed};
inline constexpr std::array kEvents{Event::kReady,  Event::kPause, Event::kPaused, Event::kUndo,
                                    Event::kResume, Event::kStop,  Event::kGone,   Event::kFail};

struct Transition {
  State from;
  Event on;
  State to;
};

inline constexpr Transition kTransitions[] = {
    {State::kCreating, Event::kReady, State::kRunning},
    {State::kCreating, Event::kStop, State::kStopping},
    {State::kRunning, Event::kPause, State::kPausing},
    {State::kRunning, Event::kStop, State::kStopping},
    {State::kPausing, Event::kPaused, State::kPaused},
    {State::kPausing, Event::kUndo, State::kRunning},
    {State::kPausing, Event::kStop, State::kStopping},
    {State::kPaused, Event::kResume, State::kResuming},
    {State::kPaused, Event::kStop, State::kStopping},
    {State::kResuming, Event::kReady, State::kRunning},
    {State::kResuming, Event::kUndo, State::kPaused},
    {State::kResuming, Event::kStop, State::kStopping},
    {State::kStopping, Event::kGone, State::kStopped},
    {State::kStopping, Event::kFail, State::kFailed},
};

constexpr std::optional<State> next(State from, Event on) {
  for (const Transition& t : kTransitions) {
    if (t.from == from && t.on == on) return t.to;
  }
  return std::nullopt;
}

constexpr bool is_terminal(State s) {
  for (const Event e : kEvents) {
    if (next(s, e)) return false;
  }
  return true;
}

// Names as in the API: "creating", "running", ...
std::string_view to_string(State s) noexcept;
std::string_view to_string(Event e) noexcept;
std::optional<State> parse_state(std::string_view name) noexcept;

// The state after `on`, or kConflict naming both, for the API's 409.
Result<State> apply(State from, Event on);

// Design checks that run before any test does.
static_assert(is_terminal(State::kStopped) && is_terminal(State::kFailed));
static_assert(!is_terminal(State::kCreating) && !is_terminal(State::kStopping));
// What must end can be told so in every state that has an end before it.
static_assert([] {
  for (const State s : kStates) {
    if (!is_terminal(s) && s != State::kStopping && next(s, Event::kStop) != State::kStopping) {
      return false;
    }
  }
  return true;
}());
// Once told to stop, a sandbox never runs again.
static_assert([] {
  for (const Event e : kEvents) {
    const auto to = next(State::kStopping, e);
    if (to && !is_terminal(*to)) return false;
  }
  return true;
}());

}  // namespace glovebox::sandbox
