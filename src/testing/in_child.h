// RunInChild runs `body` in a forked child with its own user and mount namespace, so a test can
// mount, chroot or drop privileges without touching the test runner. The child reports by exit
// code.

#pragma once

#include <functional>

namespace glovebox::testing {

enum class ChildOutcome { kPassed, kFailed, kNamespacesRefused };

ChildOutcome run_in_child(const std::function<bool()>& body);

}  // namespace glovebox::testing

// Skips, loudly, where the kernel refuses; a skipped isolation test must be seen in CI's count.
#define EXPECT_PASSES_IN_CHILD(body)                                                     \
  switch (::glovebox::testing::run_in_child(body)) {                                     \
    case ::glovebox::testing::ChildOutcome::kPassed: break;                              \
    case ::glovebox::testing::ChildOutcome::kFailed: ADD_FAILURE() << "in child"; break; \
    case ::glovebox::testing::ChildOutcome::kNamespacesRefused:                          \
      GTEST_SKIP() << "this kernel refuses new namespaces";                              \
  }
