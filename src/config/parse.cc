#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <fcntl.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/unique_fd.h"
#include "config/config.h"
#include "config/keys.h"

namespace glovebox::config {
namespace {

constexpr std::size_t kFileMax = 1 << 20;

struct Fault {
  toml::source_position at;
  std::string text;
};

std::optional<Value> to_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return Value(text->get());
  if (const auto* n = node.as_integer()) return Value(n->get());
  if (const auto* d = node.as_floating_point()) return Value(d->get());
  if (const auto* flag = node.as_boolean()) return Value(flag->get());
  if (const auto* array = node.as_array()) {
    std::vector<std::int64_t> numbers;
    for (const toml::node& each : *array) {
      const auto* n = each.as_integer();
      if (n == nullptr) return std::nullopt;
      numbers.push_back(n->get());
    }
    return Value(std::move(numbers));
  }
  return std::nullopt;
}

// A key's text may hold anything, so it is quoted as JSON is.
std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 100));
  return out;
}

class Walk {
 public:
  explicit Walk(Config& config) : config_(config) {}

  void table(const toml::table& table, const std::string& prefix) {
    for (const auto& [toml_key, node] : table) {
      const std::string name = prefix + std::string(toml_key.str());
      const toml::source_position at = toml_key.source().begin;
      const Key* key = find_key(name);
      if (key != nullptr) {
        this->key(*key, node);
      } else if (const auto* inner = node.as_table(); inner != nullptr && is_table(name)) {
        this->table(*inner, name + ".");
      } else if (is_table(name)) {
        faults.push_back({at, in_quotes(name) + " must be a table"});
      } else {
        unknown(name, at);
      }
    }
  }

  std::vector<Fault> faults;

 private:
  static bool is_table(std::string_view name) {
    return std::ranges::any_of(keys(), [&](const Key& key) {
      return key.name.size() > name.size() && key.name.starts_with(name) &&
             key.name[name.size()] == '.';
    });
  }

  void key(const Key& key, const toml::node& node) {
    const toml::source_position at = node.source().begin;
    const std::optional<Value> value = to_value(node);
    const std::string name(key.name);
    if (!value) {
      faults.push_back({at, name + ": must be a " + kind_text(key)});
    } else if (Result<void> set = assign(config_, key, *value); !set) {
      faults.push_back({at, name + ": " + set.error().text()});
    }
  }

  void unknown(const std::string& name, toml::source_position at) {
    std::string text = "unknown key " + in_quotes(name);
    if (const std::string_view near = nearest_key(name); !near.empty()) {
      text.append("; did you mean ").append(near).append("?");
    }
    faults.push_back({at, std::move(text)});
  }

  Config& config_;
};

Error to_error(std::vector<Fault> faults, std::string_view file) {
  std::ranges::stable_sort(faults, [](const Fault& a, const Fault& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  std::string text;
  for (const Fault& fault : faults) {
    if (!text.empty()) text += '\n';
    text.append(file).append(":").append(std::to_string(fault.at.line));
    text.append(":").append(std::to_string(fault.at.column)).append(": ").append(fault.text);
  }
  return {Errc::kInvalid, std::move(text)};
}

// Reads `text` over what `config` holds already.
Result<void> parse_over(Config& config, std::string_view text, std::string_view file) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    std::string what(error.description());
    return to_error({{error.source().begin, std::move(what)}}, file);
  }
  Walk walk(config);
  walk.table(parsed.table(), "");
  if (!walk.faults.empty()) return to_error(std::move(walk.faults), file);
  return {};
}

// Each key at its default value, as the table states it.
Config table_defaults() {
  Config config;
  for (const Key& key : keys()) {
    const std::string line = std::string(key.name) + " = " + std::string(key.default_value);
    if (Result<void> set = parse_over(config, line, "default"); !set) {
      // The table itself is wrong; config_test covers each key.
      std::fprintf(stderr, "config: %s\n", set.error().text().c_str());
      std::abort();
    }
  }
  return config;
}

// Sets one key as a flag does.
Result<void> set(Config& config, std::string_view name, std::string_view value) {
  const Key* key = find_key(name);
  if (key == nullptr) {
    return Error(Errc::kInvalid, "unknown key " + in_quotes(name));
  }
  if (std::holds_alternative<TextAt>(key->at)) {
    return assign(config, *key, Value(std::string(value))).context(name);
  }
  const toml::parse_result parsed = toml::parse("value = " + std::string(value));
  std::optional<Value> read;
  if (parsed && parsed.table().size() == 1) read = to_value(*parsed.table().get("value"));
  // A size may come without quotes: 64KiB.
  if (!read && std::holds_alternative<Bytes>(key->at)) read = Value(std::string(value));
  if (!read) return Error(Errc::kInvalid, std::string(name) + ": must be a " + kind_text(*key));
  return assign(config, *key, *read).context(name);
}

// Fills in what follows from other keys and checks what spans several.
Result<void> finish(Config& config) {
  if (config.socket.empty()) config.socket = config.run_dir + "/glovebox.sock";
  if (config.warden_socket.empty()) config.warden_socket = config.run_dir + "/warden.sock";
  if (config.listen == "off" && config.socket == "off") {
    return Error(Errc::kInvalid, "listen and socket are both off: nobody could reach the daemon");
  }
  if (config.sandboxes.timeout_default > config.sandboxes.timeout_max) {
    return Error(Errc::kInvalid, "sandboxes.timeout_default_s is over sandboxes.timeout_max_s");
  }
  const Config::Limits& least = config.limits;
  const Config::Limits& most = config.limits_max;
  if (least.memory_bytes > most.memory_bytes || least.disk_bytes > most.disk_bytes ||
      least.cpus > most.cpus || least.pids > most.pids) {
    return Error(Errc::kInvalid, "a default in [limits] is over its maximum in [limits_max]");
  }
  return {};
}

}  // namespace

Config defaults() {
  Config config = table_defaults();
  if (!finish(config)) std::abort();  // As above.
  return config;
}

Result<Config> parse(std::string_view text, std::string_view file,
                     std::span<const Setting> settings) {
  Config config = table_defaults();
  GB_TRY(parse_over(config, text, file));
  for (const auto& [key, value] : settings) GB_TRY(set(config, key, value));
  GB_TRY(finish(config).context(file));
  return config;
}

Result<Config> load(const std::string& path, std::span<const Setting> settings) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return Error::from_errno(errno, "open " + path);
  std::string text(kFileMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno(errno, "read " + path);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > kFileMax) return Error(Errc::kInvalid, path + ": over 1 MiB");
  text.resize(size);
  return parse(text, path, settings);
}

Result<Address> parse_address(std::string_view text) {
  const Error wrong(Errc::kInvalid,
                    "must be a numeric address and a port, such as 127.0.0.1:7070 or [::1]:7070");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  const std::string_view port = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != std::string_view::npos)) return wrong;
  const std::string_view allowed = bracketed ? "0123456789abcdefABCDEF:." : "0123456789.";
  if (host.find_first_not_of(allowed) != std::string_view::npos) return wrong;

  Address address{std::string(host), 0};
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (ec != std::errc() || end != port.data() + port.size()) return wrong;
  return address;
}

}  // namespace glovebox::config
