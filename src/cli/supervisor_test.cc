#include "cli/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "async/coro.h"
#include "base/deadline.h"
#include "cli/doctor.h"
#include "cli/layout.h"

namespace glovebox::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;

class SupervisorTest : public ::testing::Test {
 public:
  ~SupervisorTest() override { fs::remove_all(dir); }

 protected:
  SupervisorTest() {
    std::string pattern = ::testing::TempDir() + "glovebox-up-XXXXXX";
    dir = ::mkdtemp(pattern.data());
    config.backoff_first = milliseconds(5);
    config.backoff_max = milliseconds(20);
    config.crashes_max = 3;
    config.stop_grace = milliseconds(300);
  }

  std::unique_ptr<Supervisor> make() {
    return std::make_unique<Supervisor>(
        io.get_executor(), config, [this](const std::string& line) { lines.push_back(line); },
        [this] { io.stop(); });
  }
  static ProgramSpec script(const std::string& name, const std::string& text) {
    ProgramSpec spec;
    spec.name = name;
    spec.argv = {"/bin/sh", "-c", text};
    return spec;
  }
  void stop(Supervisor& supervisor) {
    io.restart();
    boost::asio::co_spawn(io, supervisor.stop(), [this](const std::exception_ptr&) { io.stop(); });
    io.run_for(seconds(10));
  }
  // Runs the loop until `file` has `wanted` lines.
  void wait_for_lines(const std::string& file, int wanted) {
    const Deadline deadline = after(seconds(10));
    while (count_lines(file) < wanted && Clock::now() < deadline) {
      io.restart();
      io.run_for(milliseconds(5));
    }
    EXPECT_GE(count_lines(file), wanted);
  }
  static int count_lines(const std::string& file) {
    std::ifstream in(file);
    int n = 0;
    for (std::string line; std::getline(in, line);) ++n;
    return n;
  }

  boost::asio::io_context io{1};
  std::string dir;
  SupervisorConfig config;
  std::vector<std::string> lines;
};

TEST_F(SupervisorTest, StartsACrashedProgramAgain) {
  const auto supervisor = make();
  const std::string log = dir + "/log";
  ASSERT_TRUE(supervisor->start(script("crasher", "echo x >>" + log + "; [ $(wc -l <" + log +
                                                      ") -lt 3 ] && exit 1; exec sleep 60")));
  wait_for_lines(log, 3);
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines.at(0), HasSubstr("crasher ended with exit code 1; starting it again"));
  EXPECT_FALSE(supervisor->gave_up());
  stop(*supervisor);
  EXPECT_EQ(supervisor->running(), 0);
}

TEST_F(SupervisorTest, GivesUpOnWhatCrashesTooOften) {
  const auto supervisor = make();
  ASSERT_TRUE(supervisor->start(script("crasher", "kill -9 $$")));
  io.run_for(seconds(10));
  EXPECT_TRUE(supervisor->gave_up());
  EXPECT_THAT(lines.back(), HasSubstr("killed by signal 9, too often"));
}

TEST_F(SupervisorTest, GivesUpAtOnceOnWhatCannotBeStarted) {
  const auto supervisor = make();
  ProgramSpec spec;
  spec.name = "nothing";
  spec.argv = {"/nonexistent"};
  ASSERT_TRUE(supervisor->start(spec));
  io.run_for(seconds(10));
  EXPECT_TRUE(supervisor->gave_up());
  EXPECT_EQ(lines.size(), 1U);
}

TEST_F(SupervisorTest, StopsInReverseOrderAndKillsWhatStays) {
  const auto supervisor = make();
  const std::string log = dir + "/log";
  const auto say = [&](const std::string& name) {
    return "trap 'echo " + name + " >>" + log + "; exit 0' TERM; echo up >>" + log +
           "; while :; do sleep 0.01; done";
  };
  ASSERT_TRUE(supervisor->start(script("first", say("first"))));
  ASSERT_TRUE(supervisor->start(script("second", say("second"))));
  ASSERT_TRUE(supervisor->start(
      script("deaf", "trap '' TERM; echo up >>" + log + "; while :; do sleep 0.01; done")));
  wait_for_lines(log, 3);
  stop(*supervisor);
  EXPECT_EQ(supervisor->running(), 0);
  std::ifstream in(log);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "up\nup\nup\nsecond\nfirst\n");
  EXPECT_THAT(lines, Contains(HasSubstr("deaf did not stop in time")));
}

TEST_F(SupervisorTest, GivesAProgramNothingOfOurs) {
  const auto supervisor = make();
  const std::string log = dir + "/log";
  ::setenv("GLOVEBOX_API_KEY", "secret", 1);
  ProgramSpec spec = script("plain", "exec sleep 60");
  spec.argv = {"/bin/sh", "-c",
               "{ env; id -u; id -G; readlink /proc/self/fd/0; pwd; } >" + log + ".new; mv " + log +
                   ".new " + log + "; exec sleep 60"};
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(::chmod(dir.c_str(), 0777), 0);
  if (root) spec.run_as = Identity{kDaemonId, kDaemonId};
  ASSERT_TRUE(supervisor->start(spec));
  wait_for_lines(log, 1);
  stop(*supervisor);
  ::unsetenv("GLOVEBOX_API_KEY");
  std::ifstream in(log);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("/dev/null\n/\n"));
  if (root) EXPECT_THAT(text, HasSubstr("61870\n61870\n"));
}

TEST_F(SupervisorTest, LayoutGivesTheDaemonOnlyWhatIsItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to change owners";
  Layout layout{dir + "/a/data", dir + "/a/run"};
  const Identity daemon{kDaemonId, kDaemonId};
  ASSERT_TRUE(prepare_layout(layout, daemon));
  ASSERT_TRUE(prepare_layout(layout, daemon)) << "again";
  struct Case {
    std::string path;
    uid_t uid;
    mode_t mode;
  };
  for (const Case& c : {Case{layout.data_dir, 0, 0755},
                        {layout.warden_state(), 0, 0700},
                        {layout.daemon_data(), kDaemonId, 0700},
                        {layout.run_dir, 0, 01775},
                        {layout.run_dir + "/warden", 0, 0755}}) {
    struct stat status{};
    ASSERT_EQ(::stat(c.path.c_str(), &status), 0) << c.path;
    EXPECT_EQ(status.st_uid, c.uid) << c.path;
    EXPECT_EQ(status.st_mode & 07777, c.mode) << c.path;
  }
}

TEST_F(SupervisorTest, LayoutRefusesLinksAndStrangersDirectories) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to change owners";
  const Identity daemon{kDaemonId, kDaemonId};
  fs::create_directory(dir + "/elsewhere");
  fs::create_directory(dir + "/run");
  fs::create_symlink(dir + "/elsewhere", dir + "/run/warden");
  EXPECT_FALSE(prepare_layout(Layout{dir + "/data", dir + "/run"}, daemon));
  fs::create_directory(dir + "/theirs");
  ASSERT_EQ(::chown((dir + "/theirs").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(prepare_layout(Layout{dir + "/theirs", dir + "/run2"}, daemon));
}

TEST_F(SupervisorTest, DaemonIdentityComesFromPasswd) {
  const std::string passwd = dir + "/passwd";
  EXPECT_EQ(daemon_identity(passwd).uid, kDaemonId);
  std::ofstream(passwd) << "root:x:0:0::/root:/bin/sh\nglovebox2:x:7:7::/:/\n"
                           "glovebox:x:998:997::/:/usr/sbin/nologin\n";
  EXPECT_EQ(daemon_identity(passwd).uid, 998U);
  EXPECT_EQ(daemon_identity(passwd).gid, 997U);
  std::ofstream(passwd) << "glovebox:x:0:0::/:/bin/sh\n";
  EXPECT_EQ(daemon_identity(passwd).uid, kDaemonId);
}

class FakeHost : public SupervisorTest {
 protected:
  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(dir + path).parent_path());
    std::ofstream(dir + path) << text;
  }
  Check find(const std::vector<Check>& checks, const std::string& id) {
    for (const Check& check : checks) {
      if (check.id == id) return check;
    }
    ADD_FAILURE() << "no check " << id;
    return {};
  }
  HostView host() { return HostView{dir, {"/bin"}}; }
};

TEST_F(FakeHost, DoctorTellsTheCgroupVersions) {
  put("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  EXPECT_EQ(find(check_cgroups(host()), "cgroup-controllers").verdict, Verdict::kOk);
  EXPECT_EQ(find(check_cgroups(host()), "cgroup-freeze-kill").verdict, Verdict::kOk);

  put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  const Check missing = find(check_cgroups(host()), "cgroup-controllers");
  EXPECT_EQ(missing.verdict, Verdict::kMissing);
  EXPECT_TRUE(missing.needed);
  EXPECT_THAT(missing.found, HasSubstr("memory, pids"));

  put("/proc/self/mounts",
      "cgroup /c/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup /c/m cgroup rw,memory 0 0\n"
      "cgroup /c/p cgroup rw,pids 0 0\ncgroup /c/f cgroup rw,freezer 0 0\n");
  EXPECT_EQ(find(check_cgroups(host()), "cgroup-controllers").verdict, Verdict::kOk);
  EXPECT_EQ(find(check_cgroups(host()), "cgroup-freeze-kill").verdict, Verdict::kWarn);

  put("/proc/self/mounts", "");
  EXPECT_EQ(find(check_cgroups(host()), "cgroup-freeze-kill").verdict, Verdict::kMissing);
}

TEST_F(FakeHost, DoctorSeesAClashOfUserIds) {
  put("/etc/subuid", "a:100000:65536\n");
  EXPECT_EQ(find(check_resources(host()), "user-ids").verdict, Verdict::kOk);
  put("/etc/subgid", "a:100000:65536\nb:1879000000:100000\n");
  const Check clash = find(check_resources(host()), "user-ids");
  EXPECT_EQ(clash.verdict, Verdict::kWarn);
  EXPECT_THAT(clash.found, HasSubstr("/etc/subgid: b:1879000000:100000"));
}

TEST_F(FakeHost, DoctorSaysHowToGetWhatIsMissing) {
  put("/proc/self/status", "CapEff:\t0000000000000000\n");
  for (const Check& check : check_resources(host())) {
    EXPECT_EQ(check.verdict == Verdict::kOk, check.remedy.empty()) << check.id;
    EXPECT_FALSE(check.meaning.empty()) << check.id;
  }
  EXPECT_EQ(find(check_resources(host()), "privileges").verdict, Verdict::kMissing);
}

}  // namespace
}  // namespace glovebox::cli
