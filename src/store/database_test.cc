#include "store/database.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "store/migrate.h"

namespace glovebox::store {
namespace {

class StoreTest : public testing::Test {
 public:
  ~StoreTest() override { std::filesystem::remove_all(dir_); }

 protected:
  StoreTest() : dir_(testing::TempDir() + "store-" + random_name(10)) {
    std::filesystem::create_directory(dir_);
  }

  std::string path() const { return dir_ + "/t.db"; }
  Database open() {
    auto db = Database::open(path(), {});
    EXPECT_TRUE(db) << (db ? "" : db.error().text());
    return std::move(db).value();
  }
  static std::int64_t count(Database& db) {
    auto rows = db.query("SELECT count(*) FROM t");
    EXPECT_TRUE(rows);
    EXPECT_TRUE(rows->next());
    return rows->integer(0);
  }

  const std::string dir_;
};

const Migration kOne[] = {{1, "first", "CREATE TABLE t (n INTEGER, x TEXT, b BLOB) STRICT"}};
const Migration kTwo[] = {kOne[0], {2, "second", "ALTER TABLE t ADD COLUMN y INTEGER"}};

TEST_F(StoreTest, GivesBackEveryKindOfValue) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  const std::string odd("a\0b\xff", 4);
  ASSERT_TRUE(db.run("INSERT INTO t VALUES (?1, ?2, ?3)", {INT64_MIN, "", Blob{odd}}));
  ASSERT_TRUE(db.run("INSERT INTO t VALUES (?1, ?2, ?3)",
                     {std::optional<Millis>(), std::optional<std::string>(), Blob{""}}));
  auto rows = db.query("SELECT n, x, b FROM t ORDER BY rowid");
  ASSERT_TRUE(rows);
  ASSERT_TRUE(rows->next());
  EXPECT_EQ(rows->integer(0), INT64_MIN);
  EXPECT_FALSE(rows->is_null(1));
  EXPECT_EQ(rows->text(1), "");
  EXPECT_EQ(rows->text(2), odd);
  ASSERT_TRUE(rows->next());
  EXPECT_TRUE(rows->is_null(0));
  EXPECT_FALSE(rows->maybe_duration(0));
  EXPECT_TRUE(rows->is_null(1));
  EXPECT_FALSE(rows->is_null(2));
  EXPECT_FALSE(rows->next());
  EXPECT_FALSE(rows->next()) << "the end stays the end";
  EXPECT_TRUE(rows->done());
}

TEST_F(StoreTest, TablesAreStrict) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  const auto wrong = db.run("INSERT INTO t (n) VALUES (?1)", {"text"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Errc::kConflict);
}

TEST_F(StoreTest, TheSameQueryMayRunInsideItself) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(db.run("INSERT INTO t (n) VALUES (?1)", {i}));
  int seen = 0;
  auto outer = db.query("SELECT n FROM t");
  ASSERT_TRUE(outer);
  while (outer->next()) {
    auto inner = db.query("SELECT n FROM t");
    ASSERT_TRUE(inner);
    while (inner->next()) ++seen;
  }
  EXPECT_EQ(seen, 9);
}

TEST_F(StoreTest, ATransactionThatIsNotCommittedLeavesNothing) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  {
    auto t = Transaction::begin(db);
    ASSERT_TRUE(t);
    ASSERT_TRUE(db.run("INSERT INTO t (n) VALUES (1)"));
  }
  EXPECT_EQ(count(db), 0);
  auto t = Transaction::begin(db);
  ASSERT_TRUE(t);
  ASSERT_TRUE(db.run("INSERT INTO t (n) VALUES (1)"));
  ASSERT_TRUE(t->commit());
  EXPECT_EQ(count(db), 1);
}

TEST_F(StoreTest, SeveralStatementsAreNotOne) {
  Database db = open();
  EXPECT_FALSE(db.run("SELECT 1; SELECT 2"));
  EXPECT_FALSE(db.run(""));
  EXPECT_FALSE(db.run("SELEKT"));
}

TEST_F(StoreTest, OnlyOneOpensItAtATime) {
  auto first = std::make_unique<Database>(open());
  const auto second = Database::open(path(), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kConflict);
  first.reset();
  EXPECT_TRUE(Database::open(path(), {}));
}

TEST_F(StoreTest, FilesAreForTheOwnerOnly) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  for (const auto& file : std::filesystem::directory_iterator(dir_)) {
    struct ::stat st{};
    ASSERT_EQ(::stat(file.path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U) << file.path();
  }
}

TEST_F(StoreTest, MigratesForwardAndKeepsWhatIsThere) {
  {
    Database db = open();
    ASSERT_TRUE(migrate(db, kOne));
    ASSERT_TRUE(migrate(db, kOne));
    ASSERT_TRUE(db.run("INSERT INTO t (n) VALUES (7)"));
  }
  Database db = open();
  ASSERT_TRUE(migrate(db, kTwo));
  EXPECT_EQ(*schema_version(db), 2);
  EXPECT_TRUE(db.run("UPDATE t SET y = 8 WHERE n = 7"));
  EXPECT_EQ(count(db), 1);
}

TEST_F(StoreTest, RefusesASchemaThatIsNewer) {
  {
    Database db = open();
    ASSERT_TRUE(migrate(db, kTwo));
  }
  Database db = open();
  const auto r = migrate(db, kOne);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::kConflict);
  EXPECT_NE(r.error().text().find("has schema 2"), std::string::npos) << r.error().text();
}

TEST_F(StoreTest, AMigrationThatFailsChangesNothing) {
  const Migration bad[] = {kOne[0],
                           {2, "broken", "CREATE TABLE u (n INTEGER); CREATE TABLE t (n)"}};
  Database db = open();
  const auto r = migrate(db, bad);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().text().find("to 2 (broken)"), std::string::npos) << r.error().text();
  EXPECT_EQ(*schema_version(db), 1);
  EXPECT_FALSE(db.query("SELECT * FROM u"));
  EXPECT_TRUE(migrate(db, kTwo));
}

TEST_F(StoreTest, RefusesTheDatabaseOfAnotherProgram) {
  Database db = open();
  ASSERT_TRUE(db.run_script("CREATE TABLE theirs (n INTEGER)"));
  EXPECT_FALSE(migrate(db, kOne));
}

TEST_F(StoreTest, SaysThatAFileIsNoDatabase) {
  std::ofstream(path()) << std::string(8192, 'x');
  const auto db = Database::open(path(), {});
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code(), Errc::kInternal);
  EXPECT_NE(db.error().text().find(path()), std::string::npos);
}

TEST_F(StoreTest, FindsDamageInside) {
  {
    Database db = open();
    ASSERT_TRUE(migrate(db, kOne));
    const std::string filler(300, 'f');
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(db.run("INSERT INTO t (n, x) VALUES (?1, ?2)", {i, filler}));
    }
  }
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  for (int at = 8192; at < 200'000; at += 4096) {
    file.seekp(at);
    file << std::string(64, '\xee');
  }
  file.close();
  const auto db = Database::open(path(), {});
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code(), Errc::kInternal);
}

TEST_F(StoreTest, TheWalIsEmptiedBesideTheCommits) {
  Database db = open();
  ASSERT_TRUE(migrate(db, kOne));
  const std::string filler(3000, 'f');
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(db.run("INSERT INTO t (n, x) VALUES (?1, ?2)", {i, filler}));
  }
  // The database proper only grows by a checkpoint. That runs on its own thread and says nothing.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::filesystem::file_size(path()) < (8U << 20) &&
         std::chrono::steady_clock::now() < until) {
    ASSERT_TRUE(db.run("INSERT INTO t (n) VALUES (0)"));
    ::usleep(1000);
  }
  EXPECT_GT(std::filesystem::file_size(path()), 8U << 20);
  EXPECT_TRUE(db.check_integrity());
}

TEST_F(StoreTest, NeverFollowsALinkToItsFile) {
  std::ofstream(dir_ + "/victim") << "mine";
  std::filesystem::create_symlink(dir_ + "/victim", path());
  EXPECT_FALSE(Database::open(path(), {}));
}

TEST_F(StoreTest, WhatWasCommittedSurvivesSigkill) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto db = Database::open(path(), {});
    if (!db || !migrate(*db, kOne)) ::_exit(1);
    for (std::int32_t i = 0;; ++i) {
      if (!db->run("INSERT INTO t (n) VALUES (?1)", {i})) ::_exit(2);
      if (::write(pipe_fds[1], &i, sizeof i) != sizeof i) ::_exit(3);
    }
  }
  ::close(pipe_fds[1]);
  std::int32_t last = -1;
  std::int32_t n = 0;
  while (last < 500 && ::read(pipe_fds[0], &n, sizeof n) == sizeof n) last = n;
  ASSERT_EQ(last, 500);
  ::kill(child, SIGKILL);
  while (::read(pipe_fds[0], &n, sizeof n) == sizeof n) last = n;
  ::close(pipe_fds[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  Database db = open();
  EXPECT_GE(count(db), last + 1);
}

}  // namespace
}  // namespace glovebox::store
