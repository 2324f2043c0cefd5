#include "api/native/codec.h"

#include <boost/json.hpp>
#include <charconv>
#include <cmath>

#include "api/common/json_reader.h"
#include "api/common/json_writer.h"

namespace glovebox::api::native {
namespace {

using sandbox::CreateSpec;
using sandbox::Sandbox;

constexpr int kListMax = 1000;

// Cores as a decimal number to thousandths. Whether so many may be had is the domain's question.
std::optional<std::uint32_t> to_cpu_millis(double cpus) {
  if (cpus <= 0 || cpus > 1e6) return std::nullopt;
  return static_cast<std::uint32_t>(std::llround(cpus * 1000));
}

Result<void> decode_limits(const boost::json::value& value, CreateSpec& spec) {
  ObjectReader in(value, "limits");
  std::optional<std::uint64_t> pids;
  std::optional<double> cpus;
  in.whole_number("memory_bytes", spec.memory_bytes)
      .whole_number("disk_bytes", spec.disk_bytes)
      .real("cpus", cpus)
      .whole_number("pids", pids);
  if (cpus) {
    spec.cpu_millis = to_cpu_millis(*cpus);
    if (!spec.cpu_millis) in.fail("cpus", "must be more than 0 and not absurdly many");
  }
  if (pids) {
    if (*pids > std::numeric_limits<std::uint32_t>::max()) in.fail("pids", "is too large");
    spec.pids = static_cast<std::uint32_t>(*pids);
  }
  return in.finish();
}

// What an enumeration takes, or a fault that lists its names.
template <class T, class Parse>
void choose(ObjectReader& in, std::string_view name, Parse parse, std::string_view names, T& to) {
  std::optional<std::string> text;
  in.text(name, text);
  if (!text) return;
  if (auto value = parse(*text)) {
    to = *value;
  } else {
    in.fail(name, std::string("must be one of ").append(names));
  }
}

void write_sandbox(JsonWriter& out, const Sandbox& s) {
  out.begin_object();
  out.key("id").text(s.id.str());
  out.key("name").text(s.name);
  out.key("template").text(s.template_id);
  out.key("state").text(to_string(s.state));
  out.key("isolation").text(to_string(s.isolation));
  out.key("runtime").text(s.runtime);
  out.key("created_at").text(to_rfc3339(s.created_at));
  out.key("expires_at");
  s.expires_at ? out.text(to_rfc3339(*s.expires_at)) : out.null();
  out.key("remaining_s");
  s.remaining ? out.real(static_cast<double>(s.remaining->count()) / 1000) : out.null();
  out.key("idle_timeout_s");
  s.idle_timeout ? out.real(static_cast<double>(s.idle_timeout->count()) / 1000) : out.null();
  out.key("on_timeout").text(to_string(s.on_timeout));
  out.key("labels").text_map(s.labels);
  out.key("limits").begin_object();
  out.key("memory_bytes").integer(s.limits.memory_bytes);
  out.key("disk_bytes").integer(s.limits.disk_bytes);
  out.key("cpus").real(s.limits.cpu_millis / 1000.0);
  out.key("pids").integer(s.limits.pids);
  out.end_object();
  out.key("reason");
  s.reason.empty() ? out.null() : out.text(s.reason);
  out.key("ended_at");
  s.ended_at ? out.text(to_rfc3339(*s.ended_at)) : out.null();
  out.end_object();
}

Error invalid_param(std::string_view name, std::string_view why) {
  return Error(Errc::kInvalid, std::string(name) + ": " + std::string(why));
}

Result<void> add_states(std::string_view text, std::vector<sandbox::State>& to) {
  while (true) {
    const std::size_t comma = text.find(',');
    const auto state = sandbox::parse_state(text.substr(0, comma));
    if (!state) {
      return invalid_param("state",
                           "must be a list of creating, running, pausing, paused, resuming, "
                           "stopping, stopped and failed with commas between");
    }
    to.push_back(*state);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<CreateSpec> decode_create(std::string_view body) {
  CreateSpec spec;
  if (body.empty()) return spec;
  GB_TRY_ASSIGN(const boost::json::value value, parse_json(body));
  ObjectReader in(value);
  std::optional<std::string> template_id;
  std::optional<std::string> name;
  in.text("template", template_id)
      .text("name", name)
      .seconds("timeout_s", spec.timeout)
      .nullable_seconds("idle_timeout_s", spec.idle_timeout)
      .text_map("env", spec.env)
      .text_map("labels", spec.labels);
  if (template_id) spec.template_id = *std::move(template_id);
  if (name) spec.name = *std::move(name);
  choose(in, "isolation", sandbox::parse_isolation, "shared-kernel, user-kernel, vm",
         spec.isolation);
  choose(in, "on_timeout", sandbox::parse_on_timeout, "kill, pause", spec.on_timeout);
  const boost::json::value* limits = in.object("limits");
  GB_TRY(in.finish());
  if (limits != nullptr) GB_TRY(decode_limits(*limits, spec));
  return spec;
}

Result<std::variant<Millis, WallTime>> decode_extend(std::string_view body) {
  GB_TRY_ASSIGN(const boost::json::value value, parse_json(body));
  ObjectReader in(value);
  std::optional<Millis> timeout;
  std::optional<std::string> at_text;
  std::optional<WallTime> at;
  in.seconds("timeout_s", timeout).text("expires_at", at_text);
  if (at_text) {
    at = parse_rfc3339(*at_text);
    if (!at) in.fail("expires_at", "must be a time such as 2026-12-01T12:00:00Z");
  }
  GB_TRY(in.finish());
  if (timeout.has_value() == at.has_value()) {
    return Error(Errc::kInvalid, "body: must have either timeout_s or expires_at");
  }
  if (timeout) return std::variant<Millis, WallTime>(*timeout);
  return std::variant<Millis, WallTime>(*at);
}

Result<void> decode_nothing(std::string_view body) {
  if (body.empty()) return {};
  GB_TRY_ASSIGN(const boost::json::value value, parse_json(body));
  return ObjectReader(value).finish();
}

Result<ListQuery> decode_list(const Params& params) {
  ListQuery query;
  bool has_limit = false;
  bool has_cursor = false;
  for (const auto& [name, value] : params) {
    if (name == "label") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos || equals == 0) {
        return invalid_param("label", "must be KEY=VALUE");
      }
      query.filter.labels.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (name == "state") {
      GB_TRY(add_states(value, query.filter.states));
    } else if (name == "limit" && !has_limit) {
      has_limit = true;
      const char* end = value.data() + value.size();
      const auto [rest, ec] = std::from_chars(value.data(), end, query.limit);
      if (ec != std::errc() || rest != end || query.limit < 1 || query.limit > kListMax) {
        return invalid_param("limit", "must be 1 to 1000");
      }
    } else if (name == "cursor" && !has_cursor) {
      has_cursor = true;
      query.cursor = value;
    } else if (name == "limit" || name == "cursor") {
      return invalid_param(name, "is there twice");
    } else {
      return Error(Errc::kInvalid,
                   "query: has an unknown parameter; known: label, state, limit, cursor");
    }
  }
  return query;
}

std::string encode(const Sandbox& sandbox) {
  JsonWriter out;
  write_sandbox(out, sandbox);
  return std::move(out).take() + "\n";
}

std::string encode(const sandbox::Page& page) {
  JsonWriter out;
  out.begin_object().key("sandboxes").begin_array();
  for (const Sandbox& each : page.sandboxes) write_sandbox(out, each);
  out.end_array().key("next_cursor");
  page.next_cursor ? out.text(*page.next_cursor) : out.null();
  out.end_object();
  return std::move(out).take() + "\n";
}

std::string encode(const sandbox::Usage& u) {
  JsonWriter out;
  out.begin_object();
  out.key("cpu_us").integer(u.cpu_us);
  out.key("memory_bytes").integer(u.memory_bytes);
  out.key("memory_limit_bytes").integer(u.memory_limit_bytes);
  out.key("memory_peak_bytes").integer(u.memory_peak_bytes);
  out.key("disk_used_bytes").integer(u.disk_used_bytes);
  out.key("disk_limit_bytes").integer(u.disk_limit_bytes);
  out.key("pids").integer(u.pids);
  out.key("pids_limit").integer(u.pids_limit);
  out.key("cpus").real(u.cpu_millis / 1000.0);
  out.key("oom_kills").integer(u.oom_kills);
  out.end_object();
  return std::move(out).take() + "\n";
}

}  // namespace glovebox::api::native
