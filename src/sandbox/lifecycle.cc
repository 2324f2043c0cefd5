#include "sandbox/lifecycle.h"

#include <string>

namespace glovebox::sandbox {

std::string_view to_string(State s) noexcept {
  switch (s) {
    case State::kCreating: return "creating";
    case State::kRunning: return "running";
    case State::kPausing: return "pausing";
    case State::kPaused: return "paused";
    case State::kResuming: return "resuming";
    case State::kStopping: return "stopping";
    case State::kStopped: return "stopped";
    case State::kFailed: return "failed";
  }
  return "?";
}

std::string_view to_string(Event e) noexcept {
  switch (e) {
    case Event::kReady: return "ready";
    case Event::kPause: return "pause";
    case Event::kPaused: return "paused";
    case Event::kUndo: return "undo";
    case Event::kResume: return "resume";
    case Event::kStop: return "stop";
    case Event::kGone: return "gone";
    case Event::kFail: return "fail";
  }
  return "?";
}

std::optional<State> parse_state(std::string_view name) noexcept {
  for (const State s : kStates) {
    if (to_string(s) == name) return s;
  }
  return std::nullopt;
}

Result<State> apply(State from, Event on) {
  if (const std::optional<State> to = next(from, on)) return *to;
  return Error(Errc::kConflict, std::string("cannot ")
                                    .append(to_string(on))
                                    .append(" a sandbox that is ")
                                    .append(to_string(from)));
}

}  // namespace glovebox::sandbox
