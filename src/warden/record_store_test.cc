#include "warden/record_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"
#include "testing/temp_dir.h"

namespace glovebox::warden {
namespace {

Record record(const std::string& instance, const std::string& name) {
  Record r;
  r.state = RecordState::kRunning;
  r.name = name;
  r.box = {instance, 1, 42, 4711, {}};
  return r;
}

class RecordStoreTest : public ::testing::Test {
 protected:
  RecordStore open() {
    auto store = RecordStore::open(dir_.path());
    EXPECT_TRUE(store) << store.error().text();
    return *std::move(store);
  }
  void write(const std::string& file, std::string_view bytes) {
    ASSERT_TRUE(os::put_file(AT_FDCWD, dir_ / ("records/" + file), bytes, 0600));
  }
  std::vector<std::string> files(const std::string& in) {
    return *os::list_dir(AT_FDCWD, dir_ / in);
  }

  testing::TempDir dir_;
};

TEST_F(RecordStoreTest, KeepsWhatWasPutLast) {
  {
    RecordStore store = open();
    ASSERT_TRUE(store.put(record("a", "a-long-name")));
    ASSERT_TRUE(store.put(record("a", "two")));
    ASSERT_TRUE(store.put(record("b", "three")));
    ASSERT_TRUE(store.remove("b"));
    ASSERT_TRUE(store.remove("b"));
  }
  auto loaded = open().load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->records.size(), 1U);
  EXPECT_EQ(loaded->records[0], record("a", "two"));
  EXPECT_TRUE(loaded->damaged.empty());
}

TEST_F(RecordStoreTest, WhatWasNeverWrittenIsNoDamage) {
  RecordStore store = open();
  write("a", "");
  auto loaded = store.load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->records.empty());
  EXPECT_TRUE(loaded->damaged.empty());
  EXPECT_TRUE(files("records").empty());
}

TEST_F(RecordStoreTest, DamagedOnesAreMovedAsideAndNamed) {
  struct Case {
    std::string file;
    std::string bytes;
    std::string instance;
  };
  std::string flipped = encode_record(record("flipped", "x"));
  flipped[10] = static_cast<char>(flipped[10] ^ 1);
  const std::string good = encode_record(record("other", "x"));
  const Case cases[] = {{"torn", good.substr(0, 100) + flipped.substr(100), "torn"},
                        {"garbage", std::string(200, '\xff'), "garbage"},
                        {"flipped", flipped, "flipped"},
                        {"cut", good.substr(0, good.size() / 2), "cut"},
                        {"long", std::string(kRecordBytes * 4, 'a'), "long"},
                        {"renamed", good, "renamed"},
                        {"No Name!", good, ""},
                        {"a.tmp", good, ""},
                        {"No Name either!", "", ""}};
  RecordStore store = open();
  ASSERT_TRUE(store.put(record("fine", "fine")));
  for (const Case& c : cases) write(c.file, c.bytes);

  auto loaded = store.load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->records.size(), 1U);
  EXPECT_EQ(loaded->records[0].name, "fine");
  ASSERT_EQ(loaded->damaged.size(), std::size(cases));
  for (const Case& c : cases) {
    const bool told = std::any_of(loaded->damaged.begin(), loaded->damaged.end(),
                                  [&](const auto& d) { return d.instance == c.instance; });
    EXPECT_TRUE(told) << c.file;
  }
  EXPECT_EQ(files("damaged-records").size(), std::size(cases));
  EXPECT_EQ(files("records").size(), 1U);
  EXPECT_TRUE(store.load()->damaged.empty());
}

TEST_F(RecordStoreTest, ADirectoryInTheWayIsDamageToo) {
  RecordStore store = open();
  ASSERT_EQ(::mkdir((dir_ / "records/dir").c_str(), 0700), 0);
  auto loaded = store.load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->damaged.size(), 1U);
  EXPECT_EQ(loaded->damaged[0].instance, "dir");
}

TEST_F(RecordStoreTest, IsClosedToOthers) {
  (void)open();
  for (const char* sub : {"records", "damaged-records"}) {
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / sub).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0700U);
  }
}

}  // namespace
}  // namespace glovebox::warden
