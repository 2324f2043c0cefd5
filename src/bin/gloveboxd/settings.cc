#include "bin/gloveboxd/settings.h"

#include <unistd.h>

#include <chrono>
#include <cmath>

namespace glovebox {
namespace {

std::chrono::seconds whole_seconds(config::Duration d) {
  return std::chrono::ceil<std::chrono::seconds>(d);
}

sandbox::Limits limits(const config::Config::Limits& from) {
  sandbox::Limits to;
  to.memory_bytes = from.memory_bytes;
  to.disk_bytes = from.disk_bytes;
  to.cpu_millis = static_cast<std::uint32_t>(std::llround(from.cpus * 1000));
  to.pids = static_cast<std::uint32_t>(from.pids);
  return to;
}

}  // namespace

sandbox::ServiceConfig service_config(const config::Config& config) {
  const config::Config::Sandboxes& from = config.sandboxes;
  sandbox::ServiceConfig to;
  to.workers = static_cast<std::uint32_t>(from.create_workers);
  to.sandboxes_max = static_cast<std::uint32_t>(from.max);
  to.memory_bytes_max = from.memory_bytes_max;
  to.queue_max = static_cast<std::uint32_t>(from.queue_max);
  to.queue_deadline = whole_seconds(from.queue_timeout);
  to.create_timeout = whole_seconds(from.create_timeout);
  to.timeout_default = from.timeout_default;
  to.timeout_max = from.timeout_max;
  to.limits_default = limits(config.limits);
  to.limits_max = limits(config.limits_max);
  to.paused_max = whole_seconds(from.paused_max);
  to.ended_kept = whole_seconds(from.ended_kept);
  return to;
}

net::ServerLimits server_limits(const config::Config& config) {
  net::ServerLimits limits;
  limits.head_bytes_max = config.http.head_bytes_max;
  limits.connections_max = config.http.connections_max;
  limits.head_timeout = whole_seconds(config.http.head_timeout);
  limits.idle = whole_seconds(config.http.idle_timeout);
  limits.body_idle = whole_seconds(config.http.body_idle_timeout);
  return limits;
}

gateway::Options gateway_options(const config::Config& config) {
  gateway::Options options;
  if (!config.gateway.domain.empty()) options.domains.push_back(config.gateway.domain);
  if (config.gateway.localhost) options.domains.emplace_back("localhost");
  options.key_required = config.gateway.key_required;
  options.response_timeout = whole_seconds(config.gateway.response_timeout);
  options.idle_timeout = whole_seconds(config.gateway.idle_timeout);
  return options;
}

log::Level log_level(const config::Config& config) {
  return log::parse_level(config.log.level).value_or(log::Level::kInfo);
}

log::Form log_form(const config::Config& config) {
  if (config.log.form == "json") return log::Form::kJson;
  if (config.log.form == "console") return log::Form::kConsole;
  return ::isatty(STDERR_FILENO) != 0 ? log::Form::kConsole : log::Form::kJson;
}

}  // namespace glovebox
