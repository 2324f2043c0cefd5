#include "config/keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/edit_distance.h"
#include "base/log.h"

namespace glovebox::config {
namespace {

constexpr double kDay = 86400;
constexpr double kTera = 1099511627776.0;

Error invalid(std::string text) { return Error(Errc::kInvalid, std::move(text)); }

Result<void> check_listen(const std::string& text) {
  if (text == "off") return {};
  Result<Address> address = parse_address(text);
  if (!address) return std::move(address).error();
  return {};
}

Result<void> check_absolute(const std::string& text) {
  if (text.empty() || text.front() != '/') return invalid("must be an absolute path");
  return {};
}

Result<void> check_socket(const std::string& text) {
  if (text.empty() || text == "off") return {};
  // sun_path of unix(7) holds 108 bytes with the NUL.
  if (text.size() > 107) return invalid("a socket's path has at most 107 bytes");
  return check_absolute(text);
}

Result<void> check_level(const std::string& text) {
  if (log::parse_level(text)) return {};
  return invalid("must be debug, info, warn or error");
}

Result<void> check_form(const std::string& text) {
  if (text == "auto" || text == "json" || text == "console") return {};
  return invalid("must be auto, json or console");
}

Result<void> check_domain(const std::string& text) {
  if (text.empty()) return {};
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (plain && text.size() <= 200 && text.front() != '.' && text.back() != '.') return {};
  return invalid("must be a host name in lower case, without a port");
}

const Key kKeys[] = {
    {"listen", R"("127.0.0.1:7070")",
     "Address and port of the HTTP API and the gateway; `off` for the Unix socket only. Every "
     "request that comes this "
     "way needs an API key. Port 0 takes a free port. There is no TLS here: put a proxy in front "
     "before listening "
     "beyond loopback.",
     TextAt([](Config& c) -> std::string& { return c.listen; }), 0, 0, check_listen},
    {"run_dir", R"("/run/glovebox")", "Directory of sockets; gone after a reboot.",
     TextAt([](Config& c) -> std::string& { return c.run_dir; }), 0, 0, check_absolute},
    {"data_dir", R"("/var/lib/glovebox")",
     "Directory of what must last: the database `glovebox.db`. Made with mode 0700 when it is not "
     "there.",
     TextAt([](Config& c) -> std::string& { return c.data_dir; }), 0, 0, check_absolute},
    {"socket", R"("")",
     "Unix socket of the same API, mode 0600, without a key; `off` for none. Empty means "
     "`glovebox.sock` in `run_dir`.",
     TextAt([](Config& c) -> std::string& { return c.socket; }), 0, 0, check_socket},
    {"socket_uids", "[]",
     "User ids that may use the Unix socket besides root and the daemon's own. With any, the "
     "socket's mode is 0666 and "
     "the peer's user id alone decides.",
     NumbersAt([](Config& c) -> std::vector<std::uint64_t>& { return c.socket_uids; }), 0,
     4294967294.0},
    {"warden_socket", R"("")",
     "Socket of `glovebox-warden`. Empty means `warden.sock` in `run_dir`.",
     TextAt([](Config& c) -> std::string& { return c.warden_socket; }), 0, 0, check_socket},
    {"user", R"("")",
     "User to become when started as root, after the directories are made. Empty: starting as root "
     "is refused unless "
     "`--allow-root` is given.",
     TextAt([](Config& c) -> std::string& { return c.user; })},

    {"log.level", R"("info")", "`debug`, `info`, `warn` or `error`. Read again on SIGHUP.",
     TextAt([](Config& c) -> std::string& { return c.log.level; }), 0, 0, check_level},
    {"log.form", R"("auto")",
     "`json` (one object a line), `console`, or `auto`: console on a terminal, else JSON.",
     TextAt([](Config& c) -> std::string& { return c.log.form; }), 0, 0, check_form},

    {"http.connections_max", "4096",
     "Client connections at a time, over all listeners; one more is answered 503.",
     CountAt([](Config& c) -> std::uint64_t& { return c.http.connections_max; }), 1, 1e6},
    {"http.head_bytes_max", R"("64 KiB")", "Request line and headers; more is answered 431.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.http.head_bytes_max; }}, 1024, 1 << 20},
    {"http.json_bytes_max", R"("1 MiB")",
     "Body of a call that the daemon itself reads (not files and not what goes to a sandbox's "
     "port); more is answered "
     "413.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.http.json_bytes_max; }}, 1024, 64 << 20},
    {"http.head_timeout_s", "30",
     "From a request's first byte to the end of its headers; 408 afterwards.",
     SecondsAt([](Config& c) -> Duration& { return c.http.head_timeout; }), 0.1, 3600},
    {"http.idle_timeout_s", "90",
     "How long a connection may wait for its next request. Longer than the usual clients keep "
     "theirs, so that they "
     "close first.",
     SecondsAt([](Config& c) -> Duration& { return c.http.idle_timeout; }), 1, kDay},
    {"http.body_idle_timeout_s", "60", "Between two reads or two writes of a body.",
     SecondsAt([](Config& c) -> Duration& { return c.http.body_idle_timeout; }), 1, kDay},
    {"http.drain_timeout_s", "10",
     "After SIGTERM: how long requests in flight may go on before they are cut.",
     SecondsAt([](Config& c) -> Duration& { return c.http.drain_timeout; }), 0, 3600},

    {"gateway.domain", R"("")",
     "Domain whose names `PORT-ID.DOMAIN` lead to a port of a sandbox; a wildcard DNS record must "
     "point here. Empty "
     "for none.",
     TextAt([](Config& c) -> std::string& { return c.gateway.domain; }), 0, 0, check_domain},
    {"gateway.localhost", "true",
     "The same for `PORT-ID.localhost`, which browsers resolve to this machine.",
     FlagAt([](Config& c) -> bool& { return c.gateway.localhost; })},
    {"gateway.key_required", "true",
     "Whether requests to a sandbox's port need an API key. The key is taken off before the "
     "request goes in. With "
     "`false`, who knows a sandbox's id can reach its ports.",
     FlagAt([](Config& c) -> bool& { return c.gateway.key_required; })},
    {"gateway.response_timeout_s", "300",
     "Until what listens in the sandbox begins its reply; 504 afterwards.",
     SecondsAt([](Config& c) -> Duration& { return c.gateway.response_timeout; }), 1, kDay},
    {"gateway.idle_timeout_s", "3600", "Between two bytes of a body or of an upgraded connection.",
     SecondsAt([](Config& c) -> Duration& { return c.gateway.idle_timeout; }), 1, kDay},
    {"gateway.destinations_max", "1024",
     "Ports and agents in sandboxes to which idle connections are kept for reuse; when one more "
     "comes, the least "
     "recently used loses its.",
     CountAt([](Config& c) -> std::uint64_t& { return c.gateway.destinations_max; }), 1, 1e6},
    {"gateway.idle_connections_max", "64",
     "Idle connections that are kept to each of them. 0: none is used twice.",
     CountAt([](Config& c) -> std::uint64_t& { return c.gateway.idle_connections_max; }), 0, 4096},

    {"sandboxes.max", "1000",
     "Sandboxes at a time on this node, paused ones included; a further create waits in the queue.",
     CountAt([](Config& c) -> std::uint64_t& { return c.sandboxes.max; }), 1, 1e6},
    {"sandboxes.memory_bytes_max", "0",
     "Most that the memory limits of all sandboxes may add up to; a create that would pass it "
     "waits. 0: not counted.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.sandboxes.memory_bytes_max; }}, 0,
     1024 * kTera},
    {"sandboxes.create_workers", "0",
     "Creates that are worked on at the same time; more only makes each slower. 0: twice the "
     "processors.",
     CountAt([](Config& c) -> std::uint64_t& { return c.sandboxes.create_workers; }), 0, 1024},
    {"sandboxes.queue_max", "10000",
     "Creates that may wait for their turn; one more is answered 429.",
     CountAt([](Config& c) -> std::uint64_t& { return c.sandboxes.queue_max; }), 0, 1e6},
    {"sandboxes.queue_timeout_s", "30",
     "How long a create may wait for its turn; 429 with `Retry-After` afterwards.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.queue_timeout; }), 0, 3600},
    {"sandboxes.create_timeout_s", "30",
     "How long making one sandbox may take, once it has its turn.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.create_timeout; }), 1, 3600},
    {"sandboxes.timeout_default_s", "300", "`timeout_s` of a sandbox that asks for none.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.timeout_default; }), 1, 365 * kDay},
    {"sandboxes.timeout_max_s", "2592000", "The longest `timeout_s` that may be asked for.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.timeout_max; }), 1, 365 * kDay},
    {"sandboxes.paused_max_s", "2592000",
     "How long a sandbox may stay paused before it is stopped.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.paused_max; }), 1, 365 * kDay},
    {"sandboxes.ended_kept_s", "3600", "How long an ended sandbox can still be looked at.",
     SecondsAt([](Config& c) -> Duration& { return c.sandboxes.ended_kept; }), 0, 30 * kDay},

    {"limits.memory_bytes", R"("512 MiB")", "Memory of a sandbox that asks for no limit.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.limits.memory_bytes; }}, 1 << 20, kTera},
    {"limits.disk_bytes", R"("2 GiB")",
     "Size of the writable layer of a sandbox that asks for no limit.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.limits.disk_bytes; }}, 1 << 20, 64 * kTera},
    {"limits.cpus", "1", "Processors of a sandbox that asks for no limit; 0.5 is half of one.",
     RealAt([](Config& c) -> double& { return c.limits.cpus; }), 0.01, 1024},
    {"limits.pids", "512", "Processes and threads of a sandbox that asks for no limit.",
     CountAt([](Config& c) -> std::uint64_t& { return c.limits.pids; }), 8, 1e6},

    {"limits_max.memory_bytes", R"("64 GiB")", "The most memory that a sandbox may ask for.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.limits_max.memory_bytes; }}, 1 << 20, kTera},
    {"limits_max.disk_bytes", R"("1 TiB")",
     "The largest writable layer that a sandbox may ask for.",
     Bytes{[](Config& c) -> std::uint64_t& { return c.limits_max.disk_bytes; }}, 1 << 20,
     64 * kTera},
    {"limits_max.cpus", "128", "The most processors that a sandbox may ask for.",
     RealAt([](Config& c) -> double& { return c.limits_max.cpus; }), 0.01, 1024},
    {"limits_max.pids", "65536", "The most processes and threads that a sandbox may ask for.",
     CountAt([](Config& c) -> std::uint64_t& { return c.limits_max.pids; }), 8, 4e6},
};

std::string number_text(double n) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, n, std::chars_format::fixed).ptr;
  return {digits, end};
}

std::string range_text(const Key& key) {
  return number_text(key.min) + " to " + number_text(key.max);
}

// "64 KiB", "64KiB", "65536".
Result<std::int64_t> parse_bytes(const std::string& text) {
  std::int64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, n);
  if (ec != std::errc() || n < 0) return invalid("is not a size such as \"64 KiB\"");
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  constexpr std::pair<std::string_view, int> kUnits[] = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                         {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    if (n > (std::numeric_limits<std::int64_t>::max() >> shift)) return invalid("is too large");
    return n << shift;
  }
  return invalid("has an unknown unit; use B, KiB, MiB, GiB or TiB");
}

struct Assign {
  Config& config;
  const Key& key;
  const Value& value;

  Error wrong_kind() const { return invalid("must be a " + kind_text(key)); }

  Result<double> in_range(double n) const {
    if (!(n >= key.min && n <= key.max)) return invalid("must be " + range_text(key));
    return n;
  }
  Result<void> count(std::uint64_t& to, std::int64_t n) const {
    GB_TRY(in_range(static_cast<double>(n)));
    to = static_cast<std::uint64_t>(n);
    return {};
  }

  Result<void> operator()(TextAt at) const {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return wrong_kind();
    if (text->find('\0') != std::string::npos) return invalid("must not hold a NUL");
    if (key.check != nullptr) GB_TRY(key.check(*text));
    at(config) = *text;
    return {};
  }
  Result<void> operator()(FlagAt at) const {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return wrong_kind();
    at(config) = *flag;
    return {};
  }
  Result<void> operator()(CountAt at) const {
    const auto* n = std::get_if<std::int64_t>(&value);
    if (n == nullptr) return wrong_kind();
    return count(at(config), *n);
  }
  Result<void> operator()(Bytes bytes) const {
    if (const auto* n = std::get_if<std::int64_t>(&value)) return count(bytes.at(config), *n);
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return wrong_kind();
    GB_TRY_ASSIGN(const std::int64_t n, parse_bytes(*text));
    return count(bytes.at(config), n);
  }
  Result<double> real() const {
    if (const auto* n = std::get_if<std::int64_t>(&value)) return in_range(static_cast<double>(*n));
    if (const auto* d = std::get_if<double>(&value)) return in_range(*d);
    return wrong_kind();
  }
  Result<void> operator()(RealAt at) const {
    GB_TRY_ASSIGN(at(config), real());
    return {};
  }
  Result<void> operator()(SecondsAt at) const {
    GB_TRY_ASSIGN(const double seconds, real());
    at(config) = Duration(std::llround(seconds * 1000));
    return {};
  }
  Result<void> operator()(NumbersAt at) const {
    const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
    if (list == nullptr) return wrong_kind();
    for (const std::int64_t n : *list) GB_TRY(in_range(static_cast<double>(n)));
    at(config).assign(list->begin(), list->end());
    return {};
  }
};

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::span<const Key> keys() { return kKeys; }

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string_view nearest_key(std::string_view name) {
  if (name.size() > 200) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const Key& key : kKeys) {
    std::size_t distance = edit_distance(name, key.name);
    // The right name under the wrong table.
    if (last_part(name) == last_part(key.name)) distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance) {
      best_distance = distance;
      best = key.name;
    }
  }
  return best;
}

std::string kind_text(const Key& key) {
  struct Visitor {
    const Key& key;
    std::string operator()(TextAt) const { return "string"; }
    std::string operator()(FlagAt) const { return "boolean: true or false"; }
    std::string operator()(CountAt) const { return "whole number, " + range_text(key); }
    std::string operator()(Bytes) const {
      return "size in bytes, or a string such as \"64 KiB\"; " + range_text(key);
    }
    std::string operator()(RealAt) const { return "number, " + range_text(key); }
    std::string operator()(SecondsAt) const { return "number of seconds, " + range_text(key); }
    std::string operator()(NumbersAt) const {
      return "list of whole numbers, each " + range_text(key);
    }
  };
  return std::visit(Visitor{key}, key.at);
}

Result<void> assign(Config& config, const Key& key, const Value& value) {
  return std::visit(Assign{config, key, value}, key.at);
}

}  // namespace glovebox::config
