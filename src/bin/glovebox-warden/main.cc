// The one program that runs as root.

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <variant>

#include "base/log.h"
#include "os/files.h"
#include "os/sys.h"
#include "runtime/native/host.h"
#include "warden/options.h"
#include "warden/service_manager.h"
#include "warden/warden.h"

namespace {

using glovebox::Errc;
using glovebox::Error;
using glovebox::Result;
using glovebox::UniqueFd;
namespace log = glovebox::log;
namespace native = glovebox::native;
namespace os = glovebox::os;
namespace warden = glovebox::warden;

// Not PR_SET_PDEATHSIG: the kernel forgets that whenever the process changes its fsuid, as making a
// sandbox's disk does.
Result<UniqueFd> watch_parent() {
  const pid_t parent = ::getppid();
  GB_TRY_ASSIGN(UniqueFd watched, os::pidfd_open(parent));
  // It may have ended before we asked, and its number may be another's by now.
  if (::getppid() != parent) return Error(Errc::kUnavailable, "the parent has ended already");
  return watched;
}

// Readable when any of `fds` is; they must stay open as long.
Result<UniqueFd> any_of(std::initializer_list<int> fds) {
  GB_TRY_ASSIGN(const int set,
                os::retry("epoll_create1", "", [] { return ::epoll_create1(EPOLL_CLOEXEC); }));
  UniqueFd any(set);
  for (const int fd : fds) {
    epoll_event event{};
    event.events = EPOLLIN;
    GB_TRY(os::retry("epoll_ctl", "stop",
                     [&] { return ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event); }));
  }
  return any;
}

// Each sandbox holds a handful of descriptors.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<UniqueFd> stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  GB_TRY(os::retry("sigprocmask", "", [&] { return ::sigprocmask(SIG_BLOCK, &signals, nullptr); }));
  GB_TRY_ASSIGN(const int fd, os::retry("signalfd", "", [&] {
                  return ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
                }));
  return UniqueFd(fd);
}

Result<void> serve(const warden::Options& options, log::Logger& log) {
  if (::geteuid() != 0) {
    return Error(Errc::kDenied, "must run as root: it makes namespaces, mounts and cgroups");
  }
  UniqueFd parent;
  if (options.die_with_parent) {
    GB_TRY_ASSIGN(parent, watch_parent());
  }
  ::umask(0022);
  (void)::signal(SIGPIPE, SIG_IGN);
  raise_file_limit();
  GB_TRY(os::make_dirs(options.warden.state_dir, 0700));
  const std::string& socket = options.warden.server.socket_path;
  GB_TRY(os::make_dirs(socket.substr(0, socket.rfind('/')), 0755));
  GB_TRY_ASSIGN(
      const UniqueFd lock,
      warden::lock_state_dir(options.warden.state_dir, glovebox::after(std::chrono::seconds(5))));
  // Before open(), which starts a thread: a signal goes to any thread that does not block it, and
  // would end us without a farewell. The spawner unblocks them for itself.
  GB_TRY_ASSIGN(const UniqueFd signals, stop_signals());
  GB_TRY_ASSIGN(const std::unique_ptr<native::Host> host, native::Host::open(options.host));
  GB_TRY_ASSIGN(const UniqueFd stop,
                parent ? any_of({signals.get(), parent.get()}) : any_of({signals.get()}));
  return warden::run(options.warden, *host, stop.get(), log, [&] {
    log.info("ready", {{"socket", options.warden.server.socket_path}});
    warden::notify_service_manager("READY=1");
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = warden::parse_options(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "glovebox-warden: %s (see --help)\n", parsed.error().text().c_str());
    return 2;
  }
  if (const auto* text = std::get_if<warden::Text>(&*parsed)) {
    std::fputs(text->text.c_str(), stdout);
    return 0;
  }
  const warden::Options& options = std::get<warden::Options>(*parsed);
  log::Logger log(STDERR_FILENO, options.log_level,
                  ::isatty(STDERR_FILENO) == 1 ? log::Form::kConsole : log::Form::kJson);
  const Result<void> served = serve(options, log);
  if (!served) {
    log.error("the warden ends", {{"error", served.error()}});
    return 1;
  }
  return 0;
}
