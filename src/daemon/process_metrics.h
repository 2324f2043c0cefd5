// The process's own numbers, by the names that Prometheus clients use everywhere.

#pragma once

#include "base/metrics.h"

namespace glovebox::daemon {

void write_process_metrics(metrics::Writer& out);

}  // namespace glovebox::daemon
