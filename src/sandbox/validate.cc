#include "sandbox/validate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"

namespace glovebox::sandbox {
namespace {

constexpr std::size_t kNameMax = 128;
constexpr std::size_t kLabelsMax = 64;
constexpr std::size_t kLabelKeyMax = 128;
constexpr std::size_t kLabelValueMax = 1024;
constexpr std::size_t kEnvNameMax = 256;
// The environment goes to the agent in a header, as base64 of JSON: 36 KiB become 48, and a head
// may have 64.
constexpr std::size_t kEnvJsonMax = 36 << 10;
constexpr std::size_t kIdempotencyKeyMax = 255;
constexpr Millis kTimeoutMin{1000};

constexpr std::uint64_t kMemoryMin = 16ULL << 20;  // The agent and a shell.
constexpr std::uint64_t kDiskMin = 1ULL << 20;
constexpr std::uint32_t kCpuMillisMin = 10;  // The kernel's least quota: 1 ms in 100 ms.
constexpr std::uint32_t kPidsMin = 8;

Error invalid(std::string_view field, std::string_view why) {
  return Error(Errc::kInvalid, std::string(field) + ": " + std::string(why));
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string seconds(Millis d) {
  std::string text = std::to_string(d.count() / 1000);
  if (d.count() % 1000 != 0) text += "." + std::to_string(1000 + d.count() % 1000).substr(1);
  return text;
}

Result<void> check_duration(std::string_view field, Millis d, const ServiceConfig& config) {
  if (d >= kTimeoutMin && d <= config.timeout_max) return {};
  return invalid(
      field, "must be " + seconds(kTimeoutMin) + " to " + seconds(config.timeout_max) + " seconds");
}

template <class T>
Result<T> within(std::string_view field, std::optional<T> asked, T least, T fallback, T most) {
  const T value = asked.value_or(fallback);
  if (value >= least && value <= most) return value;
  return invalid(field, "must be " + std::to_string(least) + " to " + std::to_string(most));
}

Result<Limits> resolve_limits(const CreateSpec& spec, const ServiceConfig& config) {
  const Limits& usual = config.limits_default;
  const Limits& most = config.limits_max;
  Limits out;
  GB_TRY_ASSIGN(out.memory_bytes, within("limits.memory_bytes", spec.memory_bytes, kMemoryMin,
                                         usual.memory_bytes, most.memory_bytes));
  GB_TRY_ASSIGN(out.disk_bytes, within("limits.disk_bytes", spec.disk_bytes, kDiskMin,
                                       usual.disk_bytes, most.disk_bytes));
  GB_TRY_ASSIGN(out.pids, within("limits.pids", spec.pids, kPidsMin, usual.pids, most.pids));
  out.cpu_millis = spec.cpu_millis.value_or(usual.cpu_millis);
  if (out.cpu_millis < kCpuMillisMin || out.cpu_millis > most.cpu_millis) {
    return invalid("limits.cpus", "must be 0.01 to " + seconds(Millis(most.cpu_millis)));
  }
  if (config.memory_bytes_max != 0 && out.memory_bytes > config.memory_bytes_max) {
    return invalid(
        "limits.memory_bytes",
        "this node has " + std::to_string(config.memory_bytes_max) + " for all sandboxes together");
  }
  return out;
}

Result<void> check_labels(const Labels& labels) {
  if (labels.size() > kLabelsMax) return invalid("labels", "at most 64");
  for (const auto& [key, value] : labels) {
    if (key.empty() || key.size() > kLabelKeyMax) {
      return invalid("labels", "a key must be 1 to 128 bytes");
    }
    if (value.size() > kLabelValueMax) return invalid("labels", "a value is over 1024 bytes");
    if (!is_utf8(key) || !is_utf8(value)) return invalid("labels", "must be UTF-8");
    if (has_control(key)) return invalid("labels", "a key must not hold control characters");
    // "?label=k=v" splits at the first '='.
    if (key.find('=') != std::string::npos) return invalid("labels", "a key must not hold '='");
    if (value.find('\0') != std::string::npos) return invalid("labels", "a value holds a NUL");
  }
  return {};
}

Result<void> check_env(const Env& env) {
  std::string json;
  for (const auto& [name, value] : env) {
    if (name.empty() || name.size() > kEnvNameMax) {
      return invalid("env", "a name must be 1 to 256 bytes");
    }
    if (!is_utf8(name) || !is_utf8(value)) return invalid("env", "must be UTF-8");
    if (has_control(name) || name.find('=') != std::string::npos) {
      return invalid("env", "a name must not hold '=' or control characters");
    }
    if (value.find('\0') != std::string::npos) return invalid("env", "a value holds a NUL");
    append_json_string(json, name);
    append_json_string(json, value);
    json += ":,";
    if (json.size() > kEnvJsonMax) {
      return invalid("env", "must be at most 36 KiB as JSON; put more into a file");
    }
  }
  return {};
}

}  // namespace

Result<Sandbox> resolve(const CreateSpec& spec, const ServiceConfig& config) {
  const auto& known = config.templates;
  if (std::find(known.begin(), known.end(), spec.template_id) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return invalid("template", "there is no such template; there is: " + names);
  }
  if (spec.name.size() > kNameMax || !is_utf8(spec.name) || has_control(spec.name)) {
    return invalid("name", "must be at most 128 bytes of UTF-8 without control characters");
  }
  Sandbox out;
  out.template_id = spec.template_id;
  out.name = spec.name;
  out.timeout = spec.timeout.value_or(config.timeout_default);
  GB_TRY(check_timeout(out.timeout, config));
  out.idle_timeout = spec.idle_timeout;
  if (out.idle_timeout) GB_TRY(check_duration("idle_timeout_s", *out.idle_timeout, config));
  out.on_timeout = spec.on_timeout;
  GB_TRY_ASSIGN(out.limits, resolve_limits(spec, config));
  GB_TRY(check_labels(spec.labels));
  out.labels = spec.labels;
  GB_TRY(check_env(spec.env));
  out.env = std::make_shared<const Env>(spec.env);
  return out;
}

Result<void> check_timeout(Millis timeout, const ServiceConfig& config) {
  return check_duration("timeout_s", timeout, config);
}

Result<void> check_idempotency_key(const std::string& key) {
  const bool plain =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (key.size() <= kIdempotencyKeyMax && plain) return {};
  return invalid("Idempotency-Key", "must be 1 to 255 printable ASCII characters without spaces");
}

}  // namespace glovebox::sandbox
