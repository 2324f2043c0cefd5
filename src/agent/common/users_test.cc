#include "agent/common/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace glovebox::agent {
namespace {

class UsersTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/users_test_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name) << text;
  }
  Users users() { return Users(dir_ + "/passwd", dir_ + "/group"); }

  std::string dir_;
};

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "user:x:1000:1000::/home/user:/bin/zsh\n"
    "broken line\n"
    "evil:x:-1:0::/:/bin/sh\n"
    "huge:x:4294967295:0::/:/bin/sh\n"
    "rel:x:7:7::home:sh\n";
constexpr char kGroup[] = "root:x:0:\nuser:x:1000:\ndocker:x:50:root,user\nwheel:x:51:user2\n";

TEST_F(UsersTest, FindsByNameAndByNumber) {
  write("passwd", kPasswd);
  write("group", kGroup);
  Users all = users();
  auto user = all.find("user");
  ASSERT_TRUE(user);
  EXPECT_EQ(user->uid, 1000U);
  EXPECT_EQ(user->home, "/home/user");
  EXPECT_THAT(user->groups, testing::ElementsAre(50));
  EXPECT_EQ(all.find("1000")->name, "user");
  EXPECT_EQ(all.find("1000:0")->gid, 0U);
  auto unlisted = all.find("4321");
  ASSERT_TRUE(unlisted);
  EXPECT_EQ(unlisted->gid, 4321U);
  EXPECT_EQ(unlisted->home, "/");
  EXPECT_EQ(all.find("rel")->home, "/") << "a relative home is none";
}

TEST_F(UsersTest, RefusesWhoIsNobody) {
  write("passwd", kPasswd);
  write("group", kGroup);
  Users all = users();
  for (const char* who : {"", "nobody2", "evil", "huge", "-1", "4294967295", "0x10",
                          "1000:", "1000:x", "1:2:3", "user:0", "root:x"}) {
    const auto found = all.find(who);
    ASSERT_FALSE(found) << who;
    EXPECT_EQ(found.error().code(), Errc::kInvalid);
  }
}

TEST_F(UsersTest, SeesChanges) {
  write("passwd", kPasswd);
  Users all = users();
  ASSERT_FALSE(all.find("late"));
  write("passwd", "late:x:5:5::/:/bin/sh\n");
  EXPECT_TRUE(all.find("late"));
}

TEST_F(UsersTest, DoesNotHangOnAFifo) {
  ASSERT_EQ(::mkfifo((dir_ + "/passwd").c_str(), 0644), 0);
  EXPECT_FALSE(users().find("user"));
  EXPECT_TRUE(users().find("0"));
}

}  // namespace
}  // namespace glovebox::agent
