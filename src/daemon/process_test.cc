#include "daemon/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "async/coro.h"
#include "async/time_source.h"
#include "daemon/first_key.h"
#include "os/files.h"
#include "sandbox/schema.h"
#include "store/migrate.h"
#include "testing/temp_dir.h"

namespace glovebox::daemon {
namespace {

using ::testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(PrivateFile, ReplacesInOneStepAndIsOnlyOurs) {
  const testing::TempDir dir;
  const std::string path = dir / "key";
  ASSERT_TRUE(write_private_file(path, "one"));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(write_private_file(path, "two"));
  EXPECT_EQ(os::read_file(AT_FDCWD, path).value(), "two");
  EXPECT_EQ(mode_of(path), 0600U);
}

TEST(PrivateFile, IsNotLedAstrayByALink) {
  const testing::TempDir dir;
  ASSERT_TRUE(os::put_file(AT_FDCWD, dir / "victim", "safe", 0600));
  ASSERT_EQ(::symlink((dir / "victim").c_str(), (dir / "key").c_str()), 0);
  ASSERT_EQ(::symlink((dir / "victim").c_str(), (dir / "key.new").c_str()), 0);
  ASSERT_TRUE(write_private_file(dir / "key", "secret"));
  EXPECT_EQ(os::read_file(AT_FDCWD, dir / "victim").value(), "safe");
}

TEST(PrepareDir, MakesWhatIsNotThereAndLeavesWhatIs) {
  const testing::TempDir dir;
  ASSERT_TRUE(prepare_dir(dir / "a", 0700, std::nullopt));
  EXPECT_EQ(mode_of(dir / "a"), 0700U);
  ASSERT_TRUE(prepare_dir(dir / "a", 0755, std::nullopt));
  EXPECT_EQ(mode_of(dir / "a"), 0700U);
  const Result<void> foreign = prepare_dir(dir / "a", 0700, User{"nobody", 65534, 65534});
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().text(), HasSubstr("does not belong to nobody"));
  ASSERT_TRUE(os::put_file(AT_FDCWD, dir / "f", "", 0600));
  EXPECT_FALSE(prepare_dir(dir / "f", 0700, std::nullopt));
}

TEST(OpenFiles, AreRaisedToTheHardLimit) {
  const auto now = raise_open_files();
  ASSERT_TRUE(now);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
  EXPECT_EQ(now.value(), limit.rlim_max);
}

TEST(FindUser, ReadsPasswd) {
  const auto root = find_user("root");
  ASSERT_TRUE(root);
  EXPECT_EQ(root.value().uid, 0U);
  const auto nobody = find_user("no-such-user-here");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::kNotFound);
}

TEST(Listeners, OfAnotherProcessAreNotTaken) {
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDS", "2", 1);
  EXPECT_TRUE(inherited_listeners().empty());
  EXPECT_EQ(::getenv("LISTEN_FDS"), nullptr);
}

TEST(Notify, ReachesTheSupervisor) {
  const testing::TempDir dir;
  const std::string path = dir / "notify";
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  notify_supervisor("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
  char buffer[32];
  const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  ASSERT_GT(n, 0);
  EXPECT_EQ(std::string_view(buffer, static_cast<std::size_t>(n)), "READY=1");
  notify_supervisor("READY=1");  // Nobody is there: nothing happens.
}

TEST(FirstKey, TheFileHoldsAKeyThatWorks) {
  const testing::TempDir dir;
  boost::asio::io_context io(1);
  async::SystemTime time(io.get_executor());
  auto db = store::Database::open(dir / "t.db", {.check_integrity = false});
  ASSERT_TRUE(db);
  ASSERT_TRUE(store::migrate(*db, sandbox::migrations()));
  auto keys = sandbox::ApiKeys::load(*db, time);
  ASSERT_TRUE(keys);
  const std::string path = dir / "key";
  const auto secret = [&] {
    std::string text = os::read_file(AT_FDCWD, path).value();
    text.pop_back();
    return text;
  };

  ASSERT_TRUE(ensure_key_file(*keys, path));
  EXPECT_EQ(mode_of(path), 0600U);
  const std::string first = secret();
  EXPECT_TRUE(keys->verify(first));

  ASSERT_TRUE(ensure_key_file(*keys, path));  // Nothing to do.
  EXPECT_EQ(secret(), first);
  EXPECT_EQ(keys->list().size(), 1U);

  ASSERT_TRUE(keys->revoke(keys->list()[0].id));
  ASSERT_TRUE(ensure_key_file(*keys, path));
  EXPECT_NE(secret(), first);
  EXPECT_TRUE(keys->verify(secret()));
}

}  // namespace
}  // namespace glovebox::daemon
