// The program itself: what only its main() decides.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "os/files.h"
#include "os/sys.h"
#include "testing/temp_dir.h"
#include "warden/test_peer.h"

namespace glovebox::warden {
namespace {

namespace fs = std::filesystem;

class WardenProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::error_code ignored;
    std::vector<fs::path> roots;
    for (auto it = fs::recursive_directory_iterator("/sys/fs/cgroup", ignored);
         it != fs::recursive_directory_iterator(); it.increment(ignored)) {
      if (it.depth() > 4) it.disable_recursion_pending();
      if (it->path().filename() == cgroup_) roots.push_back(it->path());
    }
    for (const fs::path& root : roots) ::rmdir(root.c_str());
  }

  // Runs the program until it says on NOTIFY_SOCKET that it is ready.
  void start(const std::vector<std::string>& more = {}) {
    const std::string notify = dir_ / "notify";
    const UniqueFd listener(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    notify.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(notify.c_str());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);

    spawn(more, "NOTIFY_SOCKET=" + notify);
    pollfd told{listener.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&told, 1, 30'000), 1) << "the warden did not start";
    char text[32] = {};
    ASSERT_GT(::recv(listener.get(), text, sizeof text - 1, 0), 0);
    EXPECT_STREQ(text, "READY=1");
  }
  void spawn(const std::vector<std::string>& more, std::string environment) {
    std::vector<std::string> args = {
        GLOVEBOX_WARDEN, "--socket",   socket_,     "--state-dir", dir_ / "state",
        "--agent",       SHELL_AGENT,  "--pool",    "2",           "--cgroup",
        cgroup_,         "--uid-base", "805306368", "--log-level", "error"};
    args.insert(args.end(), more.begin(), more.end());
    std::vector<char*> argv;
    argv.reserve(args.size() + 1);
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    char* envp[] = {environment.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&pid_, GLOVEBOX_WARDEN, nullptr, nullptr, argv.data(), envp), 0);
  }
  // The exit status; -1 when a signal ended it or nothing did in time.
  int wait() {
    const auto pidfd = os::pidfd_open(pid_);
    pollfd dead{pidfd.value().get(), POLLIN, 0};
    if (::poll(&dead, 1, 30'000) != 1) return -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::size_t files_in(const std::string& directory) const {
    const auto names = os::list_dir(AT_FDCWD, dir_ / directory);
    return names ? names.value().size() : 0;
  }

  testing::TempDir dir_;
  const std::string socket_ = dir_ / "run/warden.sock";
  const std::string cgroup_ = "glovebox-test-program-" + std::to_string(::getpid());
  pid_t pid_ = 0;
};

TEST_F(WardenProgramTest, ASignalStopsItCleanly) {
  for (const int signal : {SIGTERM, SIGINT}) {
    start();
    TestPeer peer(socket_);
    ASSERT_TRUE(peer.hello());
    ASSERT_FALSE(peer.error_of(Op::kCreate, host_request("a")));
    ::kill(pid_, signal);
    EXPECT_EQ(wait(), 0);
    // The client's sandbox is all that is left.
    EXPECT_EQ(files_in("state/records"), 1U);
    EXPECT_NE(::access(socket_.c_str(), F_OK), 0);

    start();
    TestPeer again(socket_);
    ASSERT_TRUE(again.hello());
    EXPECT_FALSE(again.error_of(Op::kUsage, NameRequest{"a"}));
    ASSERT_FALSE(again.error_of(Op::kDestroy, NameRequest{"a"}));
    ::kill(pid_, signal);
    EXPECT_EQ(wait(), 0);
    EXPECT_EQ(files_in("state/records"), 0U);
  }
}

TEST_F(WardenProgramTest, TheSocketIsTheClientsOwn) {
  start({"--client-uid", "54321", "--client-gid", "54321"});
  struct stat st{};
  ASSERT_EQ(::stat(socket_.c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 54321U);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(wait(), 0);
}

TEST_F(WardenProgramTest, BadUseIsToldFromFailure) {
  spawn({"--nonsense"}, "X=1");
  EXPECT_EQ(wait(), 2);
  spawn({"--agent", "/no/such/agent"}, "X=1");
  EXPECT_EQ(wait(), 1);
}

}  // namespace
}  // namespace glovebox::warden
