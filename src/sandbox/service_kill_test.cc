// A daemon that is killed with SIGKILL in the middle of work, for real.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/unique_fd.h"
#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

// What the child tells once the service has answered: the client's knowledge.
struct Ack {
  char id[32] = {};
  std::int64_t revision = 0;
  std::int64_t expires_ms = 0;
  std::int64_t remaining_ms = 0;
  bool destroyed = false;
};

class Daemon {
 public:
  Daemon(const std::string& path, int ack_fd)
      : ack_fd_(ack_fd),
        db_(open_db(path)),
        time_(io_.get_executor()),
        runtime_(time_),
        service_(io_, db_, runtime_, time_, log_, {}) {}

  void run() {
    if (!service_.start()) ::_exit(1);
    for (int i = 0; i < 8; ++i) {
      boost::asio::co_spawn(io_, client(*this, i), boost::asio::detached);
    }
    io_.run();
  }

 private:
  void tell(const Sandbox& s, bool destroyed = false) const {
    Ack ack;
    s.id.str().copy(ack.id, sizeof ack.id - 1);
    ack.revision = s.revision;
    if (s.expires_at) ack.expires_ms = to_unix_ms(*s.expires_at);
    if (s.remaining) ack.remaining_ms = s.remaining->count();
    ack.destroyed = destroyed;
    if (::write(ack_fd_, &ack, sizeof ack) != sizeof ack) ::_exit(2);
  }

  static Task<void> client(Daemon& d, int number) {
    for (int i = 0;; ++i) {
      const std::string key = "k" + std::to_string(number) + "-" + std::to_string(i);
      CreateSpec spec;
      spec.labels["client"] = std::to_string(number);
      Result<Sandbox> made = co_await d.service_.create(std::move(spec), key);
      if (!made) {
        // Before the first reconcile; everything else would be a fault.
        if (d.service_.not_ready()) continue;
        ::_exit(3);
      }
      Sandbox s = std::move(*made);
      d.tell(s);
      Result<Sandbox> extended = co_await d.service_.extend(s.id, std::chrono::hours(1 + i % 5));
      if (!extended) ::_exit(4);
      d.tell(*extended);
      Result<Sandbox> paused = co_await d.service_.pause(s.id);
      if (!paused) ::_exit(5);
      d.tell(*paused);
      Result<Sandbox> resumed = co_await d.service_.resume(s.id);
      if (!resumed) ::_exit(6);
      d.tell(*resumed);
      if (i % 2 == 0) continue;
      Result<void> gone = co_await d.service_.destroy(s.id);
      if (!gone) ::_exit(7);
      d.tell(s, true);
    }
  }

  int ack_fd_;
  store::Database db_;
  boost::asio::io_context io_{1};
  async::SystemTime time_;
  FakeRuntime runtime_;
  log::Logger log_{STDERR_FILENO, log::Level::kError, log::Form::kConsole};
  SandboxService service_;
};

// Runs a daemon until it has acknowledged `acks` things, kills it, and returns all it had told.
std::vector<Ack> run_and_kill(const std::string& path, int acks) {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::pipe(fds), 0);
  const UniqueFd in(fds[0]);
  UniqueFd out(fds[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    Daemon(path, out.get()).run();
    ::_exit(9);
  }
  out.reset();
  std::vector<Ack> told;
  Ack ack;
  while (::read(in.get(), &ack, sizeof ack) == static_cast<ssize_t>(sizeof ack)) {
    told.push_back(ack);
    if (told.size() == static_cast<std::size_t>(acks)) ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  return told;
}

void expect_kept(SandboxRepository& rows, const Ack& ack) {
  const auto row = rows.find(SandboxId(ack.id));
  ASSERT_TRUE(row && row.value().has_value()) << ack.id << " is forgotten";
  const Sandbox s = *row.value();
  if (ack.destroyed) {
    EXPECT_EQ(s.state, State::kStopped);
    return;
  }
  ASSERT_GE(s.revision, ack.revision);
  if (s.revision > ack.revision) return;  // Went on, and died before it could tell.
  EXPECT_EQ(s.expires_at ? to_unix_ms(*s.expires_at) : 0, ack.expires_ms);
  EXPECT_EQ(s.remaining ? s.remaining->count() : 0, ack.remaining_ms);
}

TEST(Sigkill, NothingThatWasAcknowledgedIsLost) {
  std::mt19937 random(20261201);
  for (int round = 0; round < 25 && !testing::Test::HasFailure(); ++round) {
    const TempDir dir;
    const std::string path = dir.file("t.db");
    const int acks = std::uniform_int_distribution<int>(1, 400)(random);
    const std::vector<Ack> told = run_and_kill(path, acks);
    ASSERT_GE(told.size(), static_cast<std::size_t>(acks));
    store::Database db = open_db(path);
    ASSERT_TRUE(db.check_integrity());
    SandboxRepository rows(db);
    for (const Ack& ack : told) expect_kept(rows, ack);
  }
}

TEST(Sigkill, TheNextDaemonAdoptsAndRepairs) {
  const TempDir dir;
  const std::string path = dir.file("t.db");
  const std::vector<Ack> told = run_and_kill(path, 300);
  store::Database db = open_db(path);
  boost::asio::io_context io(1);
  async::FakeTime time(io, std::chrono::floor<Millis>(std::chrono::system_clock::now()));
  FakeRuntime runtime(time);
  log::Logger log(STDERR_FILENO, log::Level::kError, log::Form::kConsole);
  SandboxRepository rows(db);
  // As if the runtime had survived: all that are not stopped live, those under way in either form.
  const auto before = rows.live();
  int n = 0;
  for (const Sandbox& s : before.value()) {
    if (s.state == State::kCreating && ++n % 2 == 0) continue;
    runtime.live[s.id.str()].frozen = s.state == State::kPaused || ++n % 2 == 0;
  }
  SandboxService service(io, db, runtime, time, log, {});
  ASSERT_TRUE(service.start());
  time.advance(10s);
  const auto after = rows.live();
  for (const Sandbox& s : after.value()) {
    EXPECT_TRUE(s.state == State::kRunning || s.state == State::kPaused) << to_string(s.state);
    ASSERT_TRUE(runtime.live.contains(s.id.str()));
    EXPECT_EQ(runtime.live[s.id.str()].frozen, s.state == State::kPaused);
  }
  EXPECT_EQ(runtime.live.size(), after.value().size());
  EXPECT_EQ(service.snapshot().capacity_used, runtime.live.size());
  boost::asio::co_spawn(io, service.close(time.now() + 1s), boost::asio::detached);
  time.advance(1s);
}

}  // namespace
}  // namespace glovebox::sandbox
