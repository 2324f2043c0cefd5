#include "sandbox/keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

class KeysTest : public testing::Test {
 protected:
  KeysTest() : db_(open_db(dir_.file("t.db"))), time_(io_) {}
  ApiKeys load() {
    auto keys = ApiKeys::load(db_, time_);
    EXPECT_TRUE(keys);
    return std::move(keys).value();
  }
  TempDir dir_;
  store::Database db_;
  boost::asio::io_context io_;
  async::FakeTime time_;
};

TEST_F(KeysTest, AKeyOpensUntilItIsRevoked) {
  ApiKeys keys = load();
  const auto made = *keys.create("laptop");
  EXPECT_EQ(made.secret.size(), 47U);
  EXPECT_TRUE(made.secret.starts_with("gbx_"));
  auto verified = keys.verify(made.secret);
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->id, made.key.id);
  EXPECT_EQ(verified->name, "laptop");
  EXPECT_TRUE(keys.revoke(made.key.id));
  EXPECT_TRUE(keys.revoke(made.key.id));
  EXPECT_EQ(keys.verify(made.secret).error().code(), Errc::kUnauthorized);
  EXPECT_EQ(keys.revoke("key-x").error().code(), Errc::kNotFound);
  EXPECT_TRUE(keys.list()[0].revoked_at);
}

TEST_F(KeysTest, KeysAndRevocationsSurviveARestart) {
  std::string kept;
  std::string revoked;
  {
    ApiKeys keys = load();
    kept = (*keys.create("kept")).secret;
    const auto made = *keys.create("revoked");
    revoked = made.secret;
    ASSERT_TRUE(keys.revoke(made.key.id));
  }
  ApiKeys keys = load();
  EXPECT_TRUE(keys.verify(kept));
  EXPECT_FALSE(keys.verify(revoked));
  ASSERT_EQ(keys.list().size(), 2U);
  EXPECT_EQ(keys.list()[0].name, "kept");
}

TEST_F(KeysTest, RefusesEverythingElseInTheSameWords) {
  ApiKeys keys = load();
  const std::string secret = (*keys.create("x")).secret;
  std::string wrong = secret;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  for (const std::string& presented :
       {std::string(), std::string("gbx_"), wrong, secret + "A", secret.substr(1),
        "GBX_" + secret.substr(4), std::string(47, '\0'), std::string(100'000, 'g')}) {
    const auto refused = keys.verify(presented);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::kUnauthorized);
    EXPECT_EQ(refused.error().text(), "no valid API key");
  }
}

TEST_F(KeysTest, TheFilesDoNotHoldTheKey) {
  ApiKeys keys = load();
  const std::string secret = (*keys.create("x")).secret;
  ASSERT_TRUE(keys.verify(secret));
  for (const char* name : {"t.db", "t.db-wal"}) {
    std::stringstream bytes;
    bytes << std::ifstream(dir_.file(name), std::ios::binary).rdbuf();
    EXPECT_EQ(bytes.str().find(secret.substr(4, 20)), std::string::npos) << name;
  }
}

TEST_F(KeysTest, NotesTheLastUseOnceAMinute) {
  ApiKeys keys = load();
  const std::string secret = (*keys.create("x")).secret;
  EXPECT_FALSE(keys.list()[0].last_used_at);
  ASSERT_TRUE(keys.verify(secret));
  const WallTime first = time_.wall();
  time_.advance(59s);
  ASSERT_TRUE(keys.verify(secret));
  EXPECT_EQ(load().list()[0].last_used_at, first);
  time_.advance(1s);
  ASSERT_TRUE(keys.verify(secret));
  EXPECT_EQ(load().list()[0].last_used_at, time_.wall());
}

TEST_F(KeysTest, AStoreThatTakesNoWritesLocksNobodyOut) {
  ApiKeys keys = load();
  const std::string secret = (*keys.create("x")).secret;
  ASSERT_TRUE(db_.run_script("PRAGMA query_only = ON"));
  EXPECT_TRUE(keys.verify(secret));
  EXPECT_FALSE(keys.create("y"));
  EXPECT_EQ(keys.list().size(), 1U);
}

TEST_F(KeysTest, NamesAreText) {
  ApiKeys keys = load();
  for (const std::string& name :
       {std::string(), std::string(129, 'x'), std::string("\xff"), std::string("a\nb")}) {
    EXPECT_EQ(keys.create(name).error().code(), Errc::kInvalid);
  }
}

}  // namespace
}  // namespace glovebox::sandbox
