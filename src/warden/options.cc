#include "warden/options.h"

#include <getopt.h>

#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "warden/names.h"

namespace glovebox::warden {
namespace {

constexpr char kHelp[] =
    R"(glovebox-warden: makes, holds and destroys sandboxes. Runs as root, serves one Unix socket.

  --socket PATH        where it listens (mode 0600, owned by the client's uid)
  --state-dir DIR      disk images and ownership records; made 0700
  --agent PATH         the static glovebox-agent that runs in each sandbox
  --agent-sockets DIR  where agents' sockets appear (default: agents/ beside the socket)
  --client-uid N       the daemon's user; besides root, the only one served (default 0)
  --client-gid N       its group (default 0)
  --pool N             warm sandboxes kept ready (default 4)
  --max-sandboxes N    sandboxes held at once, warm ones not counted (default 2000)
  --uid-base N         first of the host user ids used inside sandboxes (default 1879048192);
                       two wardens on one host must not share ranges
  --cgroup NAME        cgroup below the warden's own (default glovebox)
  --log-level LEVEL    debug, info, warn or error (default info)
  --die-with-parent    stop when the process that started the warden ends
)"
#ifdef GLOVEBOX_UNGUARDED
    "  --unguarded LIST     test builds only: guards to leave off\n"
#endif
    R"(  --help, --version

SIGTERM and SIGINT stop it; clients' sandboxes go on running and are taken back at the next start.
)";

enum Flag : int {
  kSocket = 256,
  kStateDir,
  kAgent,
  kAgentSockets,
  kClientUid,
  kClientGid,
  kPool,
  kMaxSandboxes,
  kUidBase,
  kCgroup,
  kLogLevel,
  kDieWithParent,
  kUnguarded,
  kHelpFlag,
  kVersion,
};

const option kOptions[] = {
    {"socket", required_argument, nullptr, kSocket},
    {"state-dir", required_argument, nullptr, kStateDir},
    {"agent", required_argument, nullptr, kAgent},
    {"agent-sockets", required_argument, nullptr, kAgentSockets},
    {"client-uid", required_argument, nullptr, kClientUid},
    {"client-gid", required_argument, nullptr, kClientGid},
    {"pool", required_argument, nullptr, kPool},
    {"max-sandboxes", required_argument, nullptr, kMaxSandboxes},
    {"uid-base", required_argument, nullptr, kUidBase},
    {"cgroup", required_argument, nullptr, kCgroup},
    {"log-level", required_argument, nullptr, kLogLevel},
    {"die-with-parent", no_argument, nullptr, kDieWithParent},
#ifdef GLOVEBOX_UNGUARDED
    {"unguarded", required_argument, nullptr, kUnguarded},
#endif
    {"help", no_argument, nullptr, kHelpFlag},
    {"version", no_argument, nullptr, kVersion},
    {nullptr, 0, nullptr, 0},
};

// More slots than sandboxes: for the pool, and for those that are still being erased.
constexpr std::uint32_t kSpareSlots = 512;
constexpr std::uint32_t kSandboxesMax = 30'000;
constexpr std::uint32_t kPoolMax = 256;

Result<std::uint32_t> number(std::string_view text, std::uint32_t max) {
  std::uint32_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size() || n > max) {
    return Error(Errc::kInvalid, "must be a number from 0 to " + std::to_string(max));
  }
  return n;
}

Result<std::string> absolute(std::string_view text) {
  if (!text.starts_with('/')) return Error(Errc::kInvalid, "must be an absolute path");
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  return std::string(text);
}

template <class T>
Result<void> set(T& field, Result<T> value) {
  GB_TRY_ASSIGN(field, std::move(value));
  return {};
}

Result<void> apply(Options& o, int flag, const std::string& value) {
  constexpr std::uint32_t kIdMax = std::numeric_limits<std::uint32_t>::max() - 1;
  switch (flag) {
    case kSocket: return set(o.warden.server.socket_path, absolute(value));
    case kStateDir: return set(o.warden.state_dir, absolute(value));
    case kAgent: return set(o.host.agent_program, absolute(value));
    case kAgentSockets: return set(o.host.agent_socket_dir, absolute(value));
    case kClientUid: return set(o.host.client_uid, number(value, kIdMax));
    case kClientGid: return set(o.host.client_gid, number(value, kIdMax));
    case kPool: return set(o.warden.keeper.pool_size, number(value, kPoolMax));
    case kMaxSandboxes: return set(o.warden.keeper.sandboxes_max, number(value, kSandboxesMax));
    case kUidBase: return set(o.host.uid_base, number(value, kIdMax));
    case kCgroup:
      if (!valid_name(value)) return Error(Errc::kInvalid, "must be 1 to 64 of a-z, 0-9 and -");
      o.host.cgroup_name = value;
      break;
    case kLogLevel: {
      const auto level = log::parse_level(value);
      if (!level) return Error(Errc::kInvalid, "must be debug, info, warn or error");
      o.log_level = *level;
      break;
    }
    case kDieWithParent: o.die_with_parent = true; break;
    case kUnguarded: o.host.unguarded = value; break;
    default: return Error(Errc::kInternal, "no such flag");
  }
  return {};
}

// What follows from the flags, once all are known.
Result<void> complete(Options& o) {
  const struct {
    const char* flag;
    const std::string& value;
  } needed[] = {{"--socket", o.warden.server.socket_path},
                {"--state-dir", o.warden.state_dir},
                {"--agent", o.host.agent_program}};
  for (const auto& n : needed) {
    if (n.value.empty()) return Error(Errc::kInvalid, std::string(n.flag) + " is needed");
  }
  if (o.host.agent_socket_dir.empty()) {
    const std::string& socket = o.warden.server.socket_path;
    o.host.agent_socket_dir = socket.substr(0, socket.rfind('/')) + "/agents";
  }
  o.host.state_dir = o.warden.state_dir;
  const KeeperConfig& k = o.warden.keeper;
  o.host.slots = std::max(o.host.slots, k.sandboxes_max + k.pool_size + kSpareSlots);
  const std::uint64_t last = o.host.uid_base + std::uint64_t{o.host.slots} * 65536;
  if (last > std::numeric_limits<std::uint32_t>::max()) {
    return Error(Errc::kInvalid, "--uid-base leaves too few user ids above it");
  }
  o.warden.keeper.slots = o.host.slots;
  o.warden.server.client_uid = o.host.client_uid;
  o.warden.server.client_gid = o.host.client_gid;
  o.warden.server.agent_socket_dir = o.host.agent_socket_dir;
  return {};
}

}  // namespace

Result<std::variant<Options, Text>> parse_options(int argc, char** argv) {
  Options options;
  optind = 0;  // getopt(3): starts anew; tests parse many command lines.
  opterr = 0;
  for (;;) {
    int index = -1;
    const int flag = ::getopt_long(argc, argv, ":", kOptions, &index);
    if (flag == -1) break;
    if (flag == ':') return Error(Errc::kInvalid, std::string(argv[optind - 1]) + " needs a value");
    if (flag == '?') return Error(Errc::kInvalid, std::string("no such flag: ") + argv[optind - 1]);
    if (flag == kHelpFlag) return std::variant<Options, Text>(Text{kHelp});
    if (flag == kVersion) {
      return std::variant<Options, Text>(Text{"glovebox-warden " GLOVEBOX_VERSION "\n"});
    }
    const std::string value = optarg == nullptr ? "" : optarg;
    GB_TRY(apply(options, flag, value).context(std::string("--") + kOptions[index].name));
  }
  if (optind < argc) return Error(Errc::kInvalid, std::string("not a flag: ") + argv[optind]);
  GB_TRY(complete(options));
  return std::variant<Options, Text>(std::move(options));
}

}  // namespace glovebox::warden
