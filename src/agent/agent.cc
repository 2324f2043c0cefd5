#include "agent/agent.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "agent/common/users.h"
#include "agent/exec/child.h"
#include "agent/exec/process_table.h"
#include "agent/router.h"
#include "async/coro.h"
#include "net/server.h"

namespace glovebox::agent {
namespace {

// All signals, for good: SIGCHLD is read from a descriptor, SIGPIPE would be an errno, and what
// remains nobody may end process 1 with. Children start with an empty mask. As an ordinary
// process, SIGTERM and SIGINT still end it.
void settle_signals(bool first_process) {
  sigset_t blocked;
  ::sigfillset(&blocked);
  if (!first_process) {
    ::sigdelset(&blocked, SIGTERM);
    ::sigdelset(&blocked, SIGINT);
    // Whoever started us may have left signals ignored, and children would inherit that.
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

Result<void> settle_process() {
  const bool first_process = ::getpid() == 1;
  settle_signals(first_process);
  // Not even root in the sandbox may read or trace us without CAP_SYS_PTRACE.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Error::from_errno(errno, "PR_SET_DUMPABLE");
  if (!first_process && ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Error::from_errno(errno, "PR_SET_CHILD_SUBREAPER");
  }
  // Children get 1024 again; we serve many at once.
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  prepare_for_children();
  // A fixed threshold: what a big transfer took goes back to the kernel afterwards.
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
  return {};
}

net::ServerLimits limits() {
  net::ServerLimits limits;
  limits.connections_max = 1024;
  limits.idle = std::chrono::seconds(300);  // The daemon pools its connections.
  return limits;
}

}  // namespace

Result<void> run_agent(AgentOptions options) {
  GB_TRY(settle_process());
  boost::asio::io_context io(1);
  Users users;
  GB_TRY_ASSIGN(const std::unique_ptr<ProcessTable> processes,
                ProcessTable::open(io.get_executor(), users, std::move(options.cgroup)));
  Router router(*processes, users);
  net::Server server(io, limits(),
                     [&router](net::Exchange& exchange) { return router.handle(exchange); });
  GB_TRY(server.listen_on(std::move(options.listener)));
  io.run();
  return Error(Errc::kInternal, "nothing is left to do");
}

}  // namespace glovebox::agent
