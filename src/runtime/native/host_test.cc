// The launcher against the real kernel: each test makes sandboxes and asks from inside.

#include "runtime/native/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/deadline.h"

namespace glovebox::native {
namespace {

using std::chrono_literals::operator""s;
using testing::HasSubstr;
using testing::Not;

class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    char dir[] = "/tmp/glovebox-host-XXXXXX";
    dir_ = ::mkdtemp(dir);
  }
  void TearDown() override {
    if (host_) {
      auto left = host_->instances();
      ASSERT_TRUE(left) << left.error().text();
      for (const std::string& instance : *left) EXPECT_TRUE(host_->erase(instance));
    }
    host_.reset();
    if (!dir_.empty()) std::filesystem::remove_all(dir_);
  }

  Host& host(const std::string& unguarded = "") {
    HostConfig config;
    config.state_dir = dir_ + "/state";
    config.agent_socket_dir = dir_ + "/agents";
    config.agent_program = SHELL_AGENT;
    config.slots = 64;
    config.cgroup_name = "glovebox-test-" + std::to_string(::getpid());
    config.unguarded = unguarded;
    auto opened = Host::open(config);
    if (!opened) throw std::runtime_error(opened.error().text());
    host_ = std::move(*opened);
    return *host_;
  }

  std::unique_ptr<Box> launch(Limits limits = {}, std::uint32_t slot = 3) {
    auto box = host_->launch("box-" + std::to_string(slot), slot, limits);
    if (!box) throw std::runtime_error(box.error().text());
    return std::move(*box);
  }

  // What a shell inside prints, run as root inside. Ends with "TIMEOUT" when it takes too long.
  static std::string run(const Box& box, const std::string& command,
                         std::chrono::seconds patience = 20s) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::sockaddr_un to{};
    to.sun_family = AF_UNIX;
    box.agent_socket().copy(to.sun_path, sizeof to.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return "NO AGENT";
    if (::write(fd.get(), command.data(), command.size()) < 0) return "NO AGENT";
    const Deadline deadline = after(patience);
    std::string output;
    char buffer[4096];
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      ::pollfd readable{fd.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) {
        return output + "TIMEOUT";
      }
      const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
      if (n <= 0) return output;
      output.append(buffer, static_cast<std::size_t>(n));
    }
  }

  std::string dir_;
  std::unique_ptr<Host> host_;
};

TEST_F(HostTest, ASandboxIsASmallMachineOfItsOwn) {
  host();
  auto box = launch();
  EXPECT_EQ(run(*box, "id -u; id -un; hostname; echo $$ | grep -c ."), "0\nroot\nsandbox\n1\n");
  EXPECT_EQ(run(*box, "cat /proc/1/comm | head -c 5"), "shell");
  EXPECT_EQ(run(*box, "ls /home /root; stat -c '%U %a' /home/user /tmp /usr/bin"),
            "/home:\nuser\n\n/root:\nuser 755\nroot 1777\nroot 755\n");
  EXPECT_EQ(run(*box, "echo hi > /tmp/a && cat /tmp/a; echo x > /usr/local/a && cat /usr/local/a"),
            "hi\nx\n");
  EXPECT_EQ(run(*box, "echo > /dev/null && head -c 4 /dev/zero | wc -c; ls /dev | xargs"),
            "4\nfd full null ptmx pts random shm stderr stdin stdout tty urandom zero\n");
  EXPECT_EQ(run(*box, "python3 -c 'print(6*7)'"), "42\n");
  EXPECT_EQ(run(*box, "grep SigIgn /proc/1/status"), "SigIgn:\t0000000000010000\n");
}

TEST_F(HostTest, TheHostIsOutOfSightAndOutOfReach) {
  host();
  const std::string marker = dir_ + "/marker";
  {
    std::filesystem::create_directory(marker);
  }
  auto box = launch();
  EXPECT_THAT(run(*box, "ls -d " + marker), HasSubstr("No such file"));
  EXPECT_EQ(run(*box, "ls /sys; wc -l < /proc/net/dev"), "devices\n3\n");
  EXPECT_THAT(run(*box, "mount -t tmpfs x /mnt; echo $?"), Not(HasSubstr("\n0\n")));
  EXPECT_THAT(run(*box, "unshare -Ur true; echo $?"), HasSubstr("1\n"));
  EXPECT_THAT(run(*box, "grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status"),
              HasSubstr("CapBnd:\t00000000000004ff\nNoNewPrivs:\t1\nSeccomp:\t2\n"));
  EXPECT_EQ(
      run(*box, "wc -c < /proc/kallsyms; echo 1 2>&1 > /proc/sys/kernel/panic | grep -c only"),
      "0\n1\n");
  EXPECT_THAT(run(*box, "cat /proc/self/mountinfo"), Not(HasSubstr(dir_)));
  EXPECT_EQ(run(*box, "cat /proc/self/uid_map | xargs"),
            "0 " + std::to_string(0x70000000 + 3 * 65536) + " 65536\n");
}

TEST_F(HostTest, LimitsHold) {
  host();
  Limits limits;
  limits.memory_bytes = 64 << 20;
  limits.pids = 32;
  limits.disk_bytes = 64 << 20;
  auto box = launch(limits);
  EXPECT_THAT(run(*box, "python3 -c 'x = bytearray(100 << 20)' ; echo $?"), HasSubstr("137\n"));
  EXPECT_GE(box->usage()->oom_kills, 1U);
  EXPECT_THAT(
      run(*box, "dd if=/dev/zero of=/home/user/big bs=1M count=100 2>&1 | grep -c 'No space'"),
      HasSubstr("1\n"));
  EXPECT_THAT(run(*box, "rm /home/user/big; for i in $(seq 60); do sleep 2 & done 2>&1; true"),
              HasSubstr("annot fork"));
  EXPECT_EQ(run(*box, "nproc"), "1\n");
}

TEST_F(HostTest, FreezesThawsAndCounts) {
  host();
  auto box = launch();
  EXPECT_EQ(run(*box, "(while :; do date > /tmp/now; done) >/dev/null 2>&1 & echo started"),
            "started\n");
  ASSERT_TRUE(box->freeze());
  const std::uint64_t before = box->usage()->cpu_us;
  ::usleep(200'000);
  EXPECT_LT(box->usage()->cpu_us - before, 20'000U);
  ASSERT_TRUE(box->thaw());
  const Deadline deadline = after(10s);
  while (box->usage()->cpu_us - before < 20'000U && Clock::now() < deadline) ::usleep(20'000);
  EXPECT_GT(box->usage()->cpu_us - before, 20'000U);
  EXPECT_GT(box->usage()->memory_bytes, 0U);
  EXPECT_GT(box->usage()->pids, 1U);
}

TEST_F(HostTest, SocketsReachPortsInside) {
  host();
  auto box = launch();
  run(*box, "cd /tmp && echo hello > f && (python3 -m http.server 80 >/dev/null 2>&1 &) ; true");
  for (int i = 0; i < 100; ++i) {
    auto sockets = box->make_sockets(1, false);
    ASSERT_TRUE(sockets) << sockets.error().text();
    ::sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(80);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = (*sockets)[0].get();
    ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
    ::pollfd ready{fd, POLLOUT, 0};
    ::poll(&ready, 1, 1000);
    if (::send(fd, "GET /f HTTP/1.0\r\n\r\n", 19, MSG_NOSIGNAL) == 19) {
      ready.events = POLLIN;
      ::poll(&ready, 1, 2000);
      char text[512];
      const ssize_t n = ::recv(fd, text, sizeof text, 0);
      ASSERT_GT(n, 0);
      EXPECT_THAT(std::string(text, static_cast<std::size_t>(n)), HasSubstr("200 OK"));
      return;
    }
    ::usleep(50'000);
  }
  FAIL() << "the server inside never answered";
}

TEST_F(HostTest, EraseLeavesNothing) {
  host();
  auto box = launch();
  run(*box, "setsid sh -c 'trap \"\" TERM HUP; sleep 100' >/dev/null 2>&1 & true");
  box.reset();
  EXPECT_THAT(*host_->instances(), testing::ElementsAre("box-3"));
  ASSERT_TRUE(host_->erase("box-3"));
  EXPECT_THAT(*host_->instances(), testing::IsEmpty());
  EXPECT_TRUE(host_->erase("box-3"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/state/images"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/agents"));
}

TEST_F(HostTest, AnotherHostAdoptsWhatRuns) {
  host();
  auto box = launch();
  const BoxIdentity identity = box->identity();
  run(*box, "echo kept > /tmp/kept");
  box.reset();
  host_.reset();  // The spawner ends with it; the sandbox must not.
  host();
  auto again = host_->adopt(identity);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(run(**again, "cat /tmp/kept"), "kept\n");
  BoxIdentity other = identity;
  other.start_time += 1;
  EXPECT_EQ(host_->adopt(other).error().code(), Errc::kNotFound);
}

TEST_F(HostTest, AFailedLaunchLeavesNothingAndNamesTheStep) {
  host();
  auto first = launch();
  auto second = host_->launch("box-3", 4, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kConflict);
  EXPECT_EQ(run(*first, "echo alive"), "alive\n");
  Limits tiny;
  tiny.disk_bytes = 4096;  // No file system fits.
  auto third = host_->launch("box-5", 5, tiny);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().text(), HasSubstr("launch box-5: make the disk image"));
  EXPECT_THAT(*host_->instances(), testing::ElementsAre("box-3"));
}

TEST_F(HostTest, UnknownGuardsAreRefused) {
  HostConfig config;
  config.state_dir = dir_ + "/state";
  config.agent_socket_dir = dir_ + "/agents";
  config.agent_program = SHELL_AGENT;
  config.unguarded = "seccomp,nonsense";
  auto opened = Host::open(config);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text(), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace glovebox::native
