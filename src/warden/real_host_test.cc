// The warden over the real host: kill -9 at any moment loses nothing and leaves nothing.
//
// The warden runs in a child process, because opening a host changes the process that does it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "os/files.h"
#include "testing/temp_dir.h"
#include "warden/record.h"
#include "warden/test_peer.h"
#include "warden/warden.h"

namespace glovebox::warden {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::uint32_t kSlots = 64;

class RealHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    host_.state_dir = dir_ / "state";
    host_.agent_socket_dir = dir_ / "agents";
    host_.agent_program = SHELL_AGENT;
    host_.slots = kSlots;
    // Its own ids and cgroups, so that tests may run side by side.
    host_.uid_base = 0x20000000 + (static_cast<std::uint32_t>(::getpid()) % 64) * kSlots * 65536;
    host_.cgroup_name = "glovebox-test-warden-" + std::to_string(::getpid());
    ASSERT_TRUE(os::make_dirs(host_.state_dir, 0700));
    config_.state_dir = host_.state_dir;
    config_.keeper.slots = kSlots;
    config_.keeper.sandboxes_max = 24;
    config_.keeper.pool_size = 2;
    config_.server.socket_path = dir_ / "warden.sock";
    config_.server.agent_socket_dir = host_.agent_socket_dir;
  }
  void TearDown() override {
    if (::geteuid() != 0) return;
    kill9();
    if (HasFailure()) erase_all();  // Opening a host takes a while.
    remove_cgroup_roots();
  }

  void start() {
    int ready[2];
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    stop_.reset(::eventfd(0, EFD_CLOEXEC));
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) ::_exit(be_the_warden(ready[1]));
    ::close(ready[1]);
    UniqueFd wait(ready[0]);
    char byte = 0;
    ASSERT_EQ(::read(wait.get(), &byte, 1), 1) << "the warden did not start";
  }
  int be_the_warden(int ready) {
    log::Logger log(STDERR_FILENO, log::Level::kError, log::Form::kConsole);
    auto host = native::Host::open(host_);
    if (!host) {
      log.error("cannot open the host", {{"error", host.error()}});
      return 1;
    }
    const auto tell = [&] { (void)!::write(ready, "x", 1); };
    const Result<void> served = run(config_, **host, stop_.get(), log, tell);
    return served ? 0 : 1;
  }
  void kill9() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void stop() {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(stop_.get(), &one, sizeof one), 8);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    EXPECT_EQ(status, 0);
  }
  TestPeer greeted() {
    TestPeer p(config_.server.socket_path);
    EXPECT_TRUE(p.hello());
    return p;
  }
  std::map<std::string, ListEntry> list(TestPeer& p) {
    std::map<std::string, ListEntry> all;
    const auto reply = p.ask(Op::kList, ListRequest{});
    EXPECT_TRUE(reply);
    if (!reply) return all;
    const auto page = decode_payload<ListReply>(reply->payload);
    for (const ListEntry& e : page.value().entries) all[e.name] = e;
    return all;
  }
  std::set<std::string> names(TestPeer& p) {
    std::set<std::string> all;
    for (const auto& [name, entry] : list(p)) all.insert(name);
    return all;
  }
  // What a shell inside prints.
  static std::string shell(const std::string& agent_socket, const std::string& command) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{20, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    agent_socket.copy(to.sun_path, sizeof to.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return "NO AGENT";
    if (::write(fd.get(), command.data(), command.size()) < 0) return "NO AGENT";
    std::string output;
    char buffer[512];
    for (;;) {
      const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
      if (n <= 0) return output;
      output.append(buffer, static_cast<std::size_t>(n));
    }
  }
  std::vector<Record> records() {
    std::vector<Record> all;
    const auto files = os::list_dir(AT_FDCWD, config_.state_dir + "/records");
    for (const std::string& file : files.value()) {
      const auto bytes = os::read_file(AT_FDCWD, config_.state_dir + "/records/" + file);
      auto record = decode_record(bytes.value());
      if (record) all.push_back(*std::move(record));
    }
    return all;
  }
  void end_process_of(const std::string& name) {
    for (const Record& r : records()) {
      if (r.name == name) ::kill(r.box.pid, SIGKILL);
    }
  }

  // How many instances a fresh host finds; erases them if told so.
  int instances(bool erase) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto host = native::Host::open(host_);
      if (!host) ::_exit(100);
      const auto found = (*host)->instances();
      if (!found) ::_exit(101);
      for (const std::string& instance : found.value()) {
        if (erase) (void)(*host)->erase(instance);
      }
      ::_exit(static_cast<int>(std::min<std::size_t>(found.value().size(), 99)));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void erase_all() { (void)instances(true); }
  // Processes that run as one of our ids. Dead ones that wait for init to reap them (their parent
  // was killed) do not.
  int processes() const {
    int found = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      struct stat st{};
      if (::stat(entry.path().c_str(), &st) != 0) continue;
      const bool ours = st.st_uid >= host_.uid_base && st.st_uid < host_.uid_base + kSlots * 65536;
      if (!ours) continue;
      const auto stat_line = os::read_file(AT_FDCWD, entry.path() / "stat");
      if (!stat_line) continue;
      const std::size_t state = stat_line.value().rfind(") ") + 2;
      found += stat_line.value().at(state) == 'Z' ? 0 : 1;
    }
    return found;
  }
  void expect_nothing_left() {
    EXPECT_EQ(instances(false), 0);
    EXPECT_EQ(processes(), 0);
    EXPECT_TRUE(records().empty());
    EXPECT_TRUE(os::list_dir(AT_FDCWD, config_.state_dir + "/damaged-records")->empty());
    EXPECT_TRUE(os::list_dir(AT_FDCWD, host_.agent_socket_dir)->empty());
    EXPECT_TRUE(os::list_dir(AT_FDCWD, config_.state_dir + "/images")->empty());
  }
  void remove_cgroup_roots() const {
    std::error_code ignored;
    std::vector<fs::path> roots;
    for (auto it = fs::recursive_directory_iterator("/sys/fs/cgroup", ignored);
         it != fs::recursive_directory_iterator(); it.increment(ignored)) {
      if (it.depth() > 4) it.disable_recursion_pending();
      if (it->path().filename() == host_.cgroup_name) roots.push_back(it->path());
    }
    for (const fs::path& root : roots) ::rmdir(root.c_str());
  }

  testing::TempDir dir_;
  native::HostConfig host_;
  WardenConfig config_;
  UniqueFd stop_;
  pid_t pid_ = 0;
};

TEST_F(RealHostTest, CyclesLeaveNothing) {
  start();
  TestPeer p = greeted();
  for (int i = 0; i < 30; ++i) {
    CreateRequest r = host_request("sb-" + std::to_string(i));
    if (i % 3 == 1) r.memory_bytes = 64 << 20;  // A claim with other limits.
    if (i % 3 == 2) r.disk_bytes = 64 << 20;    // A cold launch.
    const auto reply = p.ask(Op::kCreate, r);
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->header.status, 0) << decode_error(*reply).text();
    const auto made = decode_payload<CreateReply>(reply->payload);
    EXPECT_EQ(shell(made.value().agent_socket, "echo ok; exit\n"), "ok\n");
    const auto usage = p.ask(Op::kUsage, NameRequest{r.name});
    EXPECT_EQ(decode_payload<UsageReply>(usage->payload)->memory_limit_bytes, r.memory_bytes);
    ASSERT_FALSE(p.error_of(Op::kSockets, SocketsRequest{r.name, 4, 0}));
    p.fds.clear();
    ASSERT_FALSE(p.error_of(Op::kDestroy, NameRequest{r.name}));
  }
  stop();
  expect_nothing_left();
}

TEST_F(RealHostTest, ACrashAtAnyMomentLosesNothingAndLeavesNothing) {
  std::mt19937 random(20261201);
  std::set<std::string> held;
  int number = 0;
  start();
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const pid_t victim = pid_;
    const milliseconds delay(random() % 150);
    std::thread killer([=] {
      std::this_thread::sleep_for(delay);  // Any moment will do: that is what is tested.
      ::kill(victim, SIGKILL);
    });
    TestPeer p(config_.server.socket_path);
    (void)p.hello();  // It may be too late already.
    std::string unanswered;
    for (;;) {
      ++number;
      const bool destroy = !held.empty() && (held.size() >= 20 || random() % 2 == 0);
      const std::string name =
          destroy ? *std::next(held.begin(), static_cast<int>(random() % held.size()))
                  : "sb-" + std::to_string(number);
      CreateRequest create = host_request(name);
      if (random() % 4 == 0) create.disk_bytes = 64 << 20;
      const auto reply =
          destroy ? p.ask(Op::kDestroy, NameRequest{name}) : p.ask(Op::kCreate, create);
      if (!reply) {
        unanswered = name;
        break;
      }
      ASSERT_EQ(reply->header.status, 0) << decode_error(*reply).text();
      if (destroy) {
        held.erase(name);
      } else {
        held.insert(name);
      }
    }
    killer.join();
    kill9();
    start();
    TestPeer again = greeted();
    std::set<std::string> got = names(again);
    // What was not answered may have happened or not.
    if (got.contains(unanswered)) {
      held.insert(unanswered);
    } else {
      held.erase(unanswered);
    }
    ASSERT_EQ(got, held);
    for (const auto& [name, entry] : list(again)) {
      EXPECT_EQ(shell(entry.agent_socket, "echo ok; exit\n"), "ok\n") << name;
    }
  }
  TestPeer p = greeted();
  for (const std::string& name : held) {
    ASSERT_FALSE(p.error_of(Op::kDestroy, NameRequest{name}));
  }
  stop();
  // Stopping has a time limit; what it left is found at the next start.
  start();
  stop();
  expect_nothing_left();
}

TEST_F(RealHostTest, AFrozenSandboxStaysFrozenOverACrash) {
  config_.keeper.pool_size = 0;
  start();
  {
    TestPeer p = greeted();
    ASSERT_FALSE(p.error_of(Op::kCreate, host_request("a")));
    ASSERT_FALSE(p.error_of(Op::kFreeze, NameRequest{"a"}));
  }
  kill9();
  start();
  TestPeer p = greeted();
  EXPECT_EQ(list(p)["a"].frozen, 1);
  ASSERT_FALSE(p.error_of(Op::kThaw, NameRequest{"a"}));
  EXPECT_EQ(shell(list(p)["a"].agent_socket, "echo ok; exit\n"), "ok\n");
  // A frozen one can be destroyed, too.
  ASSERT_FALSE(p.error_of(Op::kFreeze, NameRequest{"a"}));
  ASSERT_FALSE(p.error_of(Op::kDestroy, NameRequest{"a"}));
  stop();
  expect_nothing_left();
}

TEST_F(RealHostTest, DeathsAreToldWhetherOrNotAWardenSawThem) {
  config_.keeper.pool_size = 0;
  start();
  {
    TestPeer p = greeted();
    ASSERT_FALSE(p.error_of(Op::kCreate, host_request("a")));
    ASSERT_FALSE(p.error_of(Op::kCreate, host_request("b")));
  }
  kill9();
  end_process_of("a");
  start();
  TestPeer p = greeted();
  ASSERT_TRUE(p.ask(Op::kSubscribe, std::string_view()));
  const auto first = p.receive();
  ASSERT_TRUE(first);
  EXPECT_EQ(decode_payload<ExitedEvent>(first->payload)->name, "a");
  EXPECT_EQ(names(p), std::set<std::string>{"b"});
  end_process_of("b");
  const auto second = p.receive();
  ASSERT_TRUE(second);
  EXPECT_EQ(decode_payload<ExitedEvent>(second->payload)->name, "b");
  EXPECT_TRUE(names(p).empty());
  stop();
  expect_nothing_left();
}

TEST_F(RealHostTest, ADamagedRecordsSandboxIsErased) {
  config_.keeper.pool_size = 0;
  start();
  ASSERT_FALSE(greeted().error_of(Op::kCreate, host_request("a")));
  kill9();
  const std::string file = config_.state_dir + "/records/" + records().at(0).box.instance;
  ASSERT_TRUE(os::put_file(AT_FDCWD, file, "rubbish", 0600));
  start();
  TestPeer p = greeted();
  EXPECT_TRUE(names(p).empty());
  EXPECT_EQ(processes(), 0);
  EXPECT_FALSE(p.error_of(Op::kCreate, host_request("a")));
  ASSERT_FALSE(p.error_of(Op::kDestroy, NameRequest{"a"}));
  stop();
  EXPECT_EQ(instances(false), 0);
  EXPECT_EQ(os::list_dir(AT_FDCWD, config_.state_dir + "/damaged-records")->size(), 1U);
}

}  // namespace
}  // namespace glovebox::warden
