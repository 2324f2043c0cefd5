#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/base64.h"
#include "cli/fake_daemon.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string read(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    out.push_back(fs::relative(entry.path(), dir).string());
  }
  return out;
}

CopyOptions copy(std::vector<std::string> paths) {
  CopyOptions options;
  options.paths = std::move(paths);
  return options;
}

std::string in_box(const std::string& path) { return std::string(kFakeId) + ":" + path; }

std::string entry(const std::string& name, const std::string& type) {
  boost::json::object out;
  out["path"] = "/d/" + name;
  out["name"] = name;
  out["type"] = type;
  out["size"] = 1;
  out["mode"] = "7777";
  return to_text(out);
}

class Cp : public ::testing::Test {
 protected:
  Cp() {
    fs::create_directory(fs::path(t.dir()) / "here");
    here = t.dir() + "/here";
  }
  CommandTest t;
  std::string here;
};

TEST_F(Cp, TakesAFileOutWithItsMode) {
  t.daemon().files["/data/a.bin"] = {"file", std::string("\0\xff\n", 3), "0754"};
  EXPECT_EQ(t.run(copy({in_box("/data/a.bin"), here})).code, 0);
  EXPECT_EQ(read(here + "/a.bin"), std::string("\0\xff\n", 3));
  struct stat status{};
  ASSERT_EQ(::stat((here + "/a.bin").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0754U & ~022U);
}

TEST_F(Cp, RenamesWhenTheDestinationIsNew) {
  t.daemon().files["/data/a"] = {"file", "x", "0644"};
  EXPECT_EQ(t.run(copy({in_box("/data/a"), here + "/b"})).code, 0);
  EXPECT_EQ(read(here + "/b"), "x");
  EXPECT_EQ(t.run(copy({in_box("/data/a"), here + "/new/"})).code, 1);
}

TEST_F(Cp, TakesADirectoryOut) {
  t.daemon().files["/p"] = {"dir", "", "0755"};
  t.daemon().files["/p/."] = {"dir", "", "0755"};
  t.daemon().files["/p/a"] = {"file", "1", "0644"};
  t.daemon().files["/p/s"] = {"dir", "", "0755"};
  t.daemon().files["/p/s/b"] = {"file", "2", "0644"};
  t.daemon().files["/p/link"] = {"symlink", "", "0777"};
  t.daemon().files["/p/fifo"] = {"fifo", "", "0644"};
  const Ran ran = t.run(copy({in_box("/p"), here}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(names_in(here), UnorderedElementsAre("p", "p/a", "p/s", "p/s/b"));
  EXPECT_THAT(ran.err, HasSubstr("skipped /p/link: it is a symbolic link"));
  EXPECT_THAT(ran.err, HasSubstr("skipped /p/fifo"));
}

// What a sandbox says about its files is made up by an attacker here.
TEST_F(Cp, WritesNothingOutsideWhateverNamesItIsGiven) {
  t.daemon().files["/d"] = {"dir", "", "0755"};
  for (const char* name : {"evil", "../evil", "/evil", "etc", "ok", "x"}) {
    t.daemon().files[fs::path("/d/" + std::string(name)).lexically_normal().string()] = {
        "file", "EVIL", "0644"};
  }
  std::string listing;
  for (const char* name : {"..", ".", "", "../evil", "../../evil", "/evil", "a/../../evil", "ok"}) {
    listing += (listing.empty() ? "" : ",") + entry(name, "file") + "," + entry(name, "dir");
  }
  for (const std::string& path :
       {std::string("/d/.."), std::string("../../evil\xff/.."), std::string("/d/ev\0il", 8)}) {
    listing +=
        R"(,{"path":"?","name":"fine","type":"file","path_b64":")" + to_base64(path) + R"("})";
  }
  t.daemon().listings = {R"({"entries":[)" + listing + "]}", R"({"entries":[]})"};
  const Ran ran = t.run(copy({in_box("/d"), here}));
  static_cast<void>(ran);  // "ok" comes as a file and a directory: one of them fails.
  EXPECT_THAT(names_in(here), UnorderedElementsAre("d", "d/ok"));
  EXPECT_FALSE(fs::exists(t.dir() + "/evil"));
  EXPECT_FALSE(fs::exists("/evil"));
}

TEST_F(Cp, FollowsNoLinkThatWasThereBefore) {
  fs::create_directory(t.dir() + "/outside");
  std::ofstream(t.dir() + "/secret") << "keep";
  fs::create_directory(here + "/d");
  fs::create_symlink(t.dir() + "/outside", here + "/d/sub");
  fs::create_symlink(t.dir() + "/secret", here + "/d/file");
  t.daemon().files["/d"] = {"dir", "", "0755"};
  t.daemon().files["/d/file"] = {"file", "new", "0644"};
  t.daemon().files["/d/sub"] = {"dir", "", "0755"};
  t.daemon().files["/d/sub/x"] = {"file", "EVIL", "0644"};
  const Ran ran = t.run(copy({in_box("/d"), here}));
  EXPECT_EQ(ran.code, 1);  // The directory is refused…
  EXPECT_THAT(names_in(t.dir() + "/outside"), IsEmpty());
  EXPECT_EQ(read(t.dir() + "/secret"), "keep");  // …and a link is replaced, not followed.
  EXPECT_FALSE(fs::is_symlink(here + "/d/file"));
}

TEST_F(Cp, StopsAtADepthNoTreeHas) {
  t.daemon().files["/d"] = {"dir", "", "0755"};
  for (int i = 0; i < 300; ++i) {
    t.daemon().listings.push_back(R"({"entries":[)" + entry("d", "dir") + "]}");
  }
  const Ran ran = t.run(copy({in_box("/d"), here}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("nested too deeply"));
}

TEST_F(Cp, ShowsNoControlByteOfAName) {
  t.daemon().files["/d"] = {"dir", "", "0755"};
  t.daemon().listings = {R"({"entries":[)" + entry("\x1b]0;title\x07\n", "symlink") + "]}"};
  const Ran ran = t.run(copy({in_box("/d"), here}));
  EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(ran.err.find('\x07'), std::string::npos);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
}

TEST_F(Cp, LeavesNothingOfAFileThatDidNotCome) {
  t.daemon().files["/d"] = {"dir", "", "0755"};
  t.daemon().listings = {R"({"entries":[)" + entry("gone", "file") + "]}"};
  const Ran ran = t.run(copy({in_box("/d"), here}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(names_in(here), UnorderedElementsAre("d"));
}

TEST_F(Cp, PutsADirectoryInWithoutItsLinks) {
  fs::create_directories(here + "/p/s");
  std::ofstream(here + "/p/a") << "1";
  std::ofstream(here + "/p/s/b") << "2";
  ::chmod((here + "/p/a").c_str(), 04755);
  fs::create_symlink("/etc/passwd", here + "/p/link");
  ASSERT_EQ(::mkfifo((here + "/p/fifo").c_str(), 0600), 0);
  const Ran ran = t.run(copy({here + "/p", in_box("/x")}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(t.daemon().files.size(), 4U);
  EXPECT_EQ(t.daemon().files.at("/x/a").bytes, "1");
  EXPECT_EQ(t.daemon().files.at("/x/a").mode, "0755");
  EXPECT_EQ(t.daemon().files.at("/x/s/b").bytes, "2");
  EXPECT_THAT(ran.err, HasSubstr("symbolic link"));
}

TEST_F(Cp, MakesTheDirectoryThatTheDestinationNames) {
  std::ofstream(here + "/a") << "1";
  EXPECT_EQ(t.run(copy({here + "/a", in_box("new/")})).code, 0);
  EXPECT_EQ(t.daemon().files.at("/home/user/new/a").bytes, "1");
  EXPECT_EQ(t.run(copy({here + "/a", in_box("other")})).code, 0);
  EXPECT_EQ(t.daemon().files.at("/home/user/other").bytes, "1");
}

TEST_F(Cp, PutsNamesInThatAreNotUtf8) {
  fs::create_directories(here + "/p");
  std::ofstream(here + "/p/\xff\xfe") << "1";
  EXPECT_EQ(t.run(copy({here + "/p", in_box("/x")})).code, 0);
  EXPECT_EQ(t.daemon().files.at("/x/\xff\xfe").bytes, "1");
}

TEST_F(Cp, UsesStandardStreams) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  ASSERT_EQ(::write(fds[1], "\0x", 2), 2);
  ::close(fds[1]);
  t.input.reset(fds[0]);
  EXPECT_EQ(t.run(copy({"-", in_box("/x")})).code, 0);
  EXPECT_EQ(t.daemon().files.at("/x").bytes, std::string("\0x", 2));
  const Ran ran = t.run(copy({in_box("/x"), "-"}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, std::string("\0x", 2));
}

TEST_F(Cp, CountsForJson) {
  t.daemon().files["/a"] = {"file", "12345", "0644"};
  t.globals.json = true;
  EXPECT_EQ(t.run(copy({in_box("/a"), here})).out, "{\"files\":1,\"bytes\":5,\"skipped\":0}\n");
}

TEST_F(Cp, RefusesTwoSidesOfAKind) {
  EXPECT_THAT(t.run(copy({here, "/tmp/x"})).err, HasSubstr("one side must be in a sandbox"));
  EXPECT_THAT(t.run(copy({in_box("/a"), in_box("/b")})).err, HasSubstr("one sandbox to another"));
  EXPECT_THAT(t.run(copy({in_box("/a"), in_box("/b"), here + "/no"})).err,
              HasSubstr("several sources"));
}

}  // namespace
}  // namespace glovebox::cli
