// The domain's numbers under the names that /metrics gives them.

#pragma once

#include "base/metrics.h"
#include "sandbox/stats.h"

namespace glovebox::api {

void write_metrics(metrics::Writer& out, const sandbox::Stats& stats);

}  // namespace glovebox::api
