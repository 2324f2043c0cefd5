// From the configuration to what each part takes.

#pragma once

#include "base/log.h"
#include "config/config.h"
#include "gateway/gateway.h"
#include "net/server.h"
#include "sandbox/service.h"

namespace glovebox {

sandbox::ServiceConfig service_config(const config::Config& config);
net::ServerLimits server_limits(const config::Config& config);
gateway::Options gateway_options(const config::Config& config);
log::Level log_level(const config::Config& config);
log::Form log_form(const config::Config& config);

}  // namespace glovebox
