// What each command was asked to do: the parser fills these in, the commands read them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace glovebox::cli {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Globals {
  std::string url;  // Empty: the default endpoints.
  std::string api_key;
  bool json = false;
  bool quiet = false;
};

struct SandboxOptions {
  std::string name;
  std::string template_name;
  std::string isolation;
  std::string on_timeout;
  std::optional<double> ttl_s;
  std::optional<double> idle_timeout_s;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> disk_bytes;
  std::optional<std::uint64_t> pids;
  std::optional<double> cpus;
  Pairs env;
  Pairs labels;
};

struct RunOptions {
  SandboxOptions sandbox;
  std::string file;  // Empty: `args` is a command.
  std::vector<std::string> args;
  std::string language;
  std::vector<std::string> copy;  // LOCAL or LOCAL:PATH
  std::string cwd;
  std::string user;
  std::optional<double> timeout_s;
  bool keep = false;
  bool no_stdin = false;
};

struct CreateOptions {
  SandboxOptions sandbox;
};

struct ListOptions {
  Pairs labels;
  std::string state;
  bool all = false;
};

struct InfoOptions {
  std::vector<std::string> sandboxes;
};

struct ExecOptions {
  std::string sandbox;
  std::vector<std::string> args;
  std::string cwd;
  std::string user;
  Pairs env;
  std::optional<double> timeout_s;
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool no_stdin = false;
};

struct CopyOptions {
  std::vector<std::string> paths;  // Sources, then the destination.
  std::string user;
};

struct LogsOptions {
  std::string sandbox;
  std::optional<std::int64_t> pid;
  bool follow = false;
};

struct PsOptions {
  std::string sandbox;
  bool all = false;
};

struct KillOptions {
  std::string sandbox;
  std::int64_t pid = 0;
  std::string signal = "SIGTERM";
  bool tree = false;
};

struct RemoveOptions {
  std::vector<std::string> sandboxes;
  Pairs labels;
  bool all = false;
};

struct StateOptions {  // pause, resume
  std::vector<std::string> sandboxes;
  std::string verb;
};

struct ExtendOptions {
  std::string sandbox;
  double timeout_s = 0;
};

struct TopOptions {
  std::string sandbox;
  double interval_s = 1;
  bool once = false;
};

struct DoctorOptions {};

struct ConfigCheckOptions {
  std::string file;
};

struct UpOptions {
  std::string data_dir;
  std::string run_dir;
  std::string listen;
  std::string config;
  std::string log_level;
  std::string cgroup;
  std::optional<std::uint32_t> pool;
  std::optional<std::uint32_t> uid_base;
  int ready_fd = -1;
  bool destroy_on_exit = false;
};

struct CompletionOptions {
  std::string shell;
};

struct VersionOptions {};

using Command = std::variant<RunOptions, CreateOptions, ListOptions, InfoOptions, ExecOptions,
                             CopyOptions, LogsOptions, PsOptions, KillOptions, RemoveOptions,
                             StateOptions, ExtendOptions, TopOptions, DoctorOptions,
                             ConfigCheckOptions, UpOptions, CompletionOptions, VersionOptions>;

// Documented in docs/operations/cli.md.
inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitGlovebox = 125;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitPipe = 141;

}  // namespace glovebox::cli
