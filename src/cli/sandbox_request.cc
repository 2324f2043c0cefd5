#include "cli/sandbox_request.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

Result<json::object> object_of(const Pairs& pairs, std::string_view what) {
  json::object out;
  for (const auto& [key, value] : pairs) {
    if (!is_utf8(key) || !is_utf8(value)) {
      return Error(Errc::kInvalid, std::string(what) + " is not UTF-8");
    }
    out[key] = value;
  }
  return out;
}

Result<void> put_text(json::object& out, std::string_view key, const std::string& value) {
  if (value.empty()) return {};
  if (!is_utf8(value)) return Error(Errc::kInvalid, std::string(key) + " is not UTF-8");
  out[key] = value;
  return {};
}

json::object limits_of(const SandboxOptions& options) {
  json::object limits;
  if (options.memory_bytes) limits["memory_bytes"] = *options.memory_bytes;
  if (options.disk_bytes) limits["disk_bytes"] = *options.disk_bytes;
  if (options.cpus) limits["cpus"] = *options.cpus;
  if (options.pids) limits["pids"] = *options.pids;
  return limits;
}

}  // namespace

Result<std::string> create_request_json(const SandboxOptions& options) {
  json::object out;
  GB_TRY(put_text(out, "name", options.name));
  GB_TRY(put_text(out, "template", options.template_name));
  GB_TRY(put_text(out, "isolation", options.isolation));
  GB_TRY(put_text(out, "on_timeout", options.on_timeout));
  if (options.ttl_s) out["timeout_s"] = *options.ttl_s;
  if (options.idle_timeout_s) out["idle_timeout_s"] = *options.idle_timeout_s;
  json::object limits = limits_of(options);
  if (!limits.empty()) out["limits"] = std::move(limits);
  if (!options.env.empty()) {
    GB_TRY_ASSIGN(out["env"], object_of(options.env, "--env"));
  }
  if (!options.labels.empty()) {
    GB_TRY_ASSIGN(out["labels"], object_of(options.labels, "--label"));
  }
  return to_text(out);
}

}  // namespace glovebox::cli
