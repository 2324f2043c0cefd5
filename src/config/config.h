// Config: what an operator can set, read from a TOML file. keys.cc holds the one table of keys that
// parsing, defaults and docs/operations/config.md come from.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace glovebox::config {

using Duration = std::chrono::milliseconds;

// A Config{} is empty: get one from parse() or defaults(), which fill in every key.
struct Config {
  std::string listen;  // "ADDRESS:PORT", or "off".
  std::string run_dir;
  std::string data_dir;
  std::string socket;  // Never empty after parse().
  std::vector<std::uint64_t> socket_uids;
  std::string warden_socket;  // Never empty after parse().
  std::string user;

  struct Log {
    std::string level;
    std::string form;
  } log;

  struct Http {
    std::uint64_t connections_max = 0;
    std::uint64_t head_bytes_max = 0;
    std::uint64_t json_bytes_max = 0;
    Duration head_timeout{};
    Duration idle_timeout{};
    Duration body_idle_timeout{};
    Duration drain_timeout{};
  } http;

  struct Gateway {
    std::string domain;
    bool localhost = false;
    bool key_required = false;
    Duration response_timeout{};
    Duration idle_timeout{};
    std::uint64_t destinations_max = 0;
    std::uint64_t idle_connections_max = 0;
  } gateway;

  struct Sandboxes {
    std::uint64_t max = 0;
    std::uint64_t memory_bytes_max = 0;  // 0: not counted.
    std::uint64_t create_workers = 0;    // 0: twice the processors.
    std::uint64_t queue_max = 0;
    Duration queue_timeout{};
    Duration create_timeout{};
    Duration timeout_default{};
    Duration timeout_max{};
    Duration paused_max{};
    Duration ended_kept{};
  } sandboxes;

  struct Limits {
    std::uint64_t memory_bytes = 0;
    std::uint64_t disk_bytes = 0;
    double cpus = 0;
    std::uint64_t pids = 0;
  };
  Limits limits;      // Of a sandbox that asks for none.
  Limits limits_max;  // What one may ask for.
};

// Everything at its default.
Config defaults();

// One key set by a flag on the command line. The value is as in TOML, except that a text needs no
// quotes: {"log.level", "debug"}.
struct Setting {
  std::string key;
  std::string value;
};

// `settings` come over the text, which may be empty. `file` names it in errors. The error's text
// has one line a fault, "FILE:LINE:COLUMN: …", with all faults of the text, not only the first.
Result<Config> parse(std::string_view text, std::string_view file,
                     std::span<const Setting> settings = {});
// At most 1 MiB.
Result<Config> load(const std::string& path, std::span<const Setting> settings = {});

struct Address {
  std::string host;  // Numeric, IPv6 without brackets.
  std::uint16_t port = 0;
};
// "127.0.0.1:7070", "[::1]:0".
Result<Address> parse_address(std::string_view text);

// docs/operations/config.md, whole.
std::string reference_markdown();
// A file that sets every key to its default, with its description as comments.
std::string sample_toml();

}  // namespace glovebox::config
