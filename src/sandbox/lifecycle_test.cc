#include "sandbox/lifecycle.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "sandbox/sandbox.h"

namespace glovebox::sandbox {
namespace {

// Written a second time, in another form, so that a slip in the table shows.
const std::map<State, std::map<Event, State>> kExpected = {
    {State::kCreating, {{Event::kReady, State::kRunning}, {Event::kStop, State::kStopping}}},
    {State::kRunning, {{Event::kPause, State::kPausing}, {Event::kStop, State::kStopping}}},
    {State::kPausing,
     {{Event::kPaused, State::kPaused},
      {Event::kUndo, State::kRunning},
      {Event::kStop, State::kStopping}}},
    {State::kPaused, {{Event::kResume, State::kResuming}, {Event::kStop, State::kStopping}}},
    {State::kResuming,
     {{Event::kReady, State::kRunning},
      {Event::kUndo, State::kPaused},
      {Event::kStop, State::kStopping}}},
    {State::kStopping, {{Event::kGone, State::kStopped}, {Event::kFail, State::kFailed}}},
    {State::kStopped, {}},
    {State::kFailed, {}},
};

TEST(Lifecycle, EveryPairOfStateAndEventIsDecided) {
  for (const State s : kStates) {
    for (const Event e : kEvents) {
      const auto& row = kExpected.at(s);
      const auto it = row.find(e);
      const auto to = apply(s, e);
      if (it != row.end()) {
        ASSERT_TRUE(to) << to_string(s) << " " << to_string(e);
        EXPECT_EQ(to.value(), it->second);
      } else {
        ASSERT_FALSE(to) << to_string(s) << " " << to_string(e);
        EXPECT_EQ(to.error().code(), Errc::kConflict);
        EXPECT_EQ(to.error().text(), "cannot " + std::string(to_string(e)) + " a sandbox that is " +
                                         std::string(to_string(s)));
      }
    }
  }
}

TEST(Lifecycle, EveryStateIsReachedAndHasAWayOut) {
  std::set<State> reached{State::kCreating};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const Transition& t : kTransitions) {
      if (reached.contains(t.from)) reached.insert(t.to);
    }
  }
  EXPECT_EQ(reached.size(), kStates.size());
  for (const State s : kStates) {
    EXPECT_EQ(is_terminal(s), s == State::kStopped || s == State::kFailed);
  }
}

TEST(Lifecycle, NamesRoundTripAndDiffer) {
  std::set<std::string_view> names;
  for (const State s : kStates) {
    EXPECT_TRUE(names.insert(to_string(s)).second);
    EXPECT_EQ(parse_state(to_string(s)), s);
  }
  EXPECT_FALSE(parse_state("Running"));
  EXPECT_FALSE(parse_state(""));
  EXPECT_EQ(parse_isolation("vm"), IsolationClass::kVm);
  EXPECT_FALSE(parse_isolation("VM"));
  EXPECT_EQ(parse_on_timeout("pause"), OnTimeout::kPause);
  EXPECT_FALSE(parse_on_timeout("stop"));
}

}  // namespace
}  // namespace glovebox::sandbox
