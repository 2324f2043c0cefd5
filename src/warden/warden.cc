#include "warden/warden.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "os/sys.h"
#include "warden/record_store.h"

namespace glovebox::warden {

Result<UniqueFd> lock_state_dir(const std::string& state_dir, Deadline deadline) {
  const std::string path = state_dir + "/lock";
  GB_TRY_ASSIGN(UniqueFd fd, os::openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
                                        os::Resolve::kAnywhere));
  for (;;) {
    const auto locked =
        os::retry("flock", path, [&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); });
    if (locked) return fd;
    if (locked.error().sys_errno() != EWOULDBLOCK) return locked.error();
    if (Clock::now() >= deadline) {
      return Error(Errc::kConflict, "another warden uses " + state_dir);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<void> run(const WardenConfig& config, native::Host& host, int stop_fd, log::Logger& log,
                 const std::function<void()>& ready) {
  GB_TRY_ASSIGN(RecordStore records, RecordStore::open(config.state_dir));
  GB_TRY_ASSIGN(Loop loop, Loop::make());
  Server* listening = nullptr;
  std::vector<ExitedEvent> early;
  Keeper keeper(config.keeper, host, records, loop, log, [&](ExitedEvent event) {
    if (listening == nullptr) {
      early.push_back(std::move(event));
    } else {
      listening->publish(std::move(event));
    }
  });
  GB_TRY(keeper.recover());
  GB_TRY_ASSIGN(const std::unique_ptr<Server> server,
                Server::listen(config.server, keeper, loop, log));
  listening = server.get();
  for (ExitedEvent& event : early) server->publish(std::move(event));
  bool stopping = false;
  GB_TRY_ASSIGN(const Loop::Token stop,
                loop.watch(stop_fd, EPOLLIN, [&](unsigned) { stopping = true; }));
  ready();

  while (!stopping) {
    GB_TRY_ASSIGN(const int handled, loop.turn(std::min(keeper.next_due(), server->next_due())));
    server->tick();
    // Background work only in a turn in which nobody asked for anything, lest it pile up.
    if (!stopping && (handled == 0 || keeper.behind())) keeper.step();
  }
  loop.unwatch(stop);
  log.info("stopping", {{"running", keeper.running()}, {"warm", keeper.warm()}});
  keeper.shut_down(after(config.stop_within));
  return {};
}

}  // namespace glovebox::warden
