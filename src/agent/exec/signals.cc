#include "agent/exec/signals.h"

#include <csignal>
#include <string>
#include <string_view>

namespace glovebox::agent {
namespace {

struct Name {
  std::string_view name;
  int number;
};

constexpr Name kNames[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ILL", SIGILL},   {"TRAP", SIGTRAP},
    {"ABRT", SIGABRT}, {"BUS", SIGBUS},   {"FPE", SIGFPE},   {"KILL", SIGKILL}, {"USR1", SIGUSR1},
    {"SEGV", SIGSEGV}, {"USR2", SIGUSR2}, {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT}, {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"URG", SIGURG},   {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ}, {"WINCH", SIGWINCH},
    {"IO", SIGIO},     {"PWR", SIGPWR},   {"SYS", SIGSYS},
};

constexpr int kSignalMax = 64;

}  // namespace

Result<int> parse_signal(JsonFields& json) {
  const Error unknown(Errc::kInvalid, "\"signal\" must be a signal's name or number");
  if (!json.is_text("signal")) {
    const auto number = json.integer("signal");
    if (!number || *number < 1 || *number > kSignalMax) return unknown;
    return static_cast<int>(*number);
  }
  const std::string text = json.text("signal").value_or("");
  std::string_view name = text;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const Name& known : kNames) {
    if (known.name == name) return known.number;
  }
  return unknown;
}

}  // namespace glovebox::agent
