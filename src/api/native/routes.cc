#include "api/native/routes.h"

namespace glovebox::api::native {
namespace {

#define SANDBOX "/api/v1/sandboxes/{id}"

constexpr RouteEntry kRoutes[] = {
    {{"GET", "/health"}, Action::kHealth},
    {{"GET", "/ready"}, Action::kReady},
    {{"GET", "/metrics"}, Action::kMetrics},
    {{"GET", "/openapi.yaml"}, Action::kOpenApi},

    {{"POST", "/api/v1/sandboxes"}, Action::kCreate},
    {{"GET", "/api/v1/sandboxes"}, Action::kList},
    {{"GET", SANDBOX}, Action::kGet},
    {{"DELETE", SANDBOX}, Action::kDelete},
    {{"POST", SANDBOX "/extend"}, Action::kExtend},
    {{"POST", SANDBOX "/pause"}, Action::kPause},
    {{"POST", SANDBOX "/resume"}, Action::kResume},
    {{"GET", SANDBOX "/metrics"}, Action::kUsage},

    {{"POST", SANDBOX "/exec"}, Action::kAgentWait},
    {{"GET", SANDBOX "/exec"}, Action::kAgent},
    {{"GET", SANDBOX "/processes"}, Action::kAgent},
    {{"GET", SANDBOX "/processes/{pid}"}, Action::kAgent},
    {{"GET", SANDBOX "/processes/{pid}/output"}, Action::kAgent},
    {{"POST", SANDBOX "/processes/{pid}/stdin"}, Action::kAgent},
    {{"POST", SANDBOX "/processes/{pid}/signal"}, Action::kAgent},
    {{"POST", SANDBOX "/processes/{pid}/resize"}, Action::kAgent},
    {{"GET", SANDBOX "/files"}, Action::kAgent},
    {{"PUT", SANDBOX "/files"}, Action::kAgentWait},
    {{"DELETE", SANDBOX "/files"}, Action::kAgent},
    {{"GET", SANDBOX "/files/stat"}, Action::kAgent},
    {{"GET", SANDBOX "/files/list"}, Action::kAgent},
    {{"POST", SANDBOX "/files/mkdir"}, Action::kAgent},
    {{"POST", SANDBOX "/files/move"}, Action::kAgent},
    {{"POST", SANDBOX "/files/chmod"}, Action::kAgent},
    {{"GET", SANDBOX "/files/watch"}, Action::kAgent},
    {{"GET", SANDBOX "/ports"}, Action::kAgent},
    {{"GET", SANDBOX "/health"}, Action::kAgent},
};

#undef SANDBOX

}  // namespace

std::span<const RouteEntry> routes() { return kRoutes; }

}  // namespace glovebox::api::native
