// Every route of the native API, in one list: what the router matches, what metrics are named
// after, and what docs/api/openapi.yaml must describe (a test compares).

#pragma once

#include <cstdint>
#include <span>

#include "api/common/routes.h"

namespace glovebox::api::native {

enum class Action : std::uint8_t {
  kHealth,
  kReady,
  kMetrics,
  kOpenApi,
  kCreate,
  kList,
  kGet,
  kDelete,
  kExtend,
  kPause,
  kResume,
  kUsage,
  kAgent,      // Passed on to the sandbox's agent.
  kAgentWait,  // The same, where the reply may take as long as a command runs.
};

struct RouteEntry {
  RouteSpec spec;
  Action action;
};

std::span<const RouteEntry> routes();

}  // namespace glovebox::api::native
