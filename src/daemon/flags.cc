#include "daemon/flags.h"

#include <string_view>

namespace glovebox::daemon {
namespace {

struct FlagSpec {
  std::string_view name;
  std::string_view value_name;  // Empty: takes none.
  std::string_view key;         // The config key it sets, if it is one.
  void (*apply)(Flags&, std::string value);
  std::string_view help;
};

void set_mode(Flags& flags, Flags::Mode mode) { flags.mode = mode; }

const FlagSpec kFlags[] = {
    {"--config", "FILE", "", [](Flags& f, std::string v) { f.config_file = std::move(v); },
     "read this TOML file (see docs/operations/config.md)"},
    {"--listen", "ADDR:PORT", "listen", nullptr, "address of the HTTP API, or off; port 0: any"},
    {"--socket", "PATH", "socket", nullptr, "Unix socket of the HTTP API, or off"},
    {"--data-dir", "DIR", "data_dir", nullptr, "directory of the database"},
    {"--run-dir", "DIR", "run_dir", nullptr, "directory of sockets"},
    {"--warden-socket", "PATH", "warden_socket", nullptr, "socket of glovebox-warden"},
    {"--log-level", "LEVEL", "log.level", nullptr, "debug, info, warn or error"},
    {"--set", "KEY=VALUE", "", nullptr, "set any key of the configuration"},
    {"--ready-file", "FILE", "", [](Flags& f, std::string v) { f.ready_file = std::move(v); },
     "write a JSON line with the addresses here once requests are taken"},
    {"--api-key-file", "FILE", "", [](Flags& f, std::string v) { f.api_key_file = std::move(v); },
     "see to it that this file (mode 0600) holds an API key that works"},
    {"--allow-root", "", "", [](Flags& f, std::string) { f.allow_root = true; },
     "run as root; by default that is refused"},
    {"--die-with-parent", "", "", [](Flags& f, std::string) { f.die_with_parent = true; },
     "end when the process that started this one ends"},
    {"--check-config", "", "",
     [](Flags& f, std::string) { set_mode(f, Flags::Mode::kCheckConfig); },
     "check file and flags, then exit"},
    {"--print-sample-config", "", "",
     [](Flags& f, std::string) { set_mode(f, Flags::Mode::kPrintSample); },
     "print a configuration file with every key at its default"},
    {"--print-config-reference", "", "",
     [](Flags& f, std::string) { set_mode(f, Flags::Mode::kPrintReference); }, ""},
    {"--version", "", "", [](Flags& f, std::string) { set_mode(f, Flags::Mode::kVersion); },
     "print the version"},
    {"--help", "", "", [](Flags& f, std::string) { set_mode(f, Flags::Mode::kHelp); },
     "print this help"},
};

const FlagSpec* find_flag(std::string_view name) {
  for (const FlagSpec& spec : kFlags) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

Result<void> take(Flags& flags, const FlagSpec& spec, std::string value) {
  if (spec.name == "--set") {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos) return Error(Errc::kInvalid, "--set takes KEY=VALUE");
    flags.settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (!spec.key.empty()) {
    flags.settings.emplace_back(std::string(spec.key), std::move(value));
  } else {
    spec.apply(flags, std::move(value));
  }
  return {};
}

}  // namespace

Result<Flags> parse_flags(std::span<const char* const> args) {
  Flags flags;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    const std::size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    const FlagSpec* spec = find_flag(name);
    if (spec == nullptr) {
      return Error(Errc::kInvalid, "unknown argument " + std::string(name) + "; try --help");
    }
    std::string value;
    if (spec->value_name.empty()) {
      if (equals != std::string_view::npos) {
        return Error(Errc::kInvalid, std::string(name) + " takes no value");
      }
    } else if (equals != std::string_view::npos) {
      value = arg.substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return Error(Errc::kInvalid,
                   std::string(name) + " needs a value: " + std::string(spec->value_name));
    }
    GB_TRY(take(flags, *spec, std::move(value)));
  }
  return flags;
}

std::string help_text() {
  std::string out =
      "gloveboxd: serves the Glovebox API and the gateway to sandboxes.\n\n"
      "usage: gloveboxd [FLAGS]\n\n";
  for (const FlagSpec& spec : kFlags) {
    if (spec.help.empty()) continue;
    std::string left = "  " + std::string(spec.name);
    if (!spec.value_name.empty()) left.append(" ").append(spec.value_name);
    if (left.size() < 28) left.resize(28, ' ');
    out.append(left).append(" ").append(spec.help).append("\n");
  }
  return out;
}

Result<config::Config> load_config(const Flags& flags) {
  if (flags.config_file.empty()) return config::parse("", "command line", flags.settings);
  return config::load(flags.config_file, flags.settings);
}

}  // namespace glovebox::daemon
