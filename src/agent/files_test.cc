// Files, end to end: a real agent, a scratch directory, and a user who is not root.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "agent/agent_harness.h"
#include "net/url.h"

namespace glovebox::agent {
namespace {

using harness::AgentProcess;
using harness::Cgroups;
using harness::Connection;
using harness::Event;
using harness::eventually;
using harness::member;
using harness::quote;
using harness::Reply;
using harness::slurp;
using testing::HasSubstr;

constexpr uid_t kUser = 4321;

class FilesTest : public testing::Test {
 protected:
  FilesTest() : agent_(Cgroups::kNo) {
    ::mkdir(path("box").c_str(), 0755);
    if (::chown(path("box").c_str(), kUser, kUser) != 0) std::abort();
  }

  std::string path(const std::string& name) const { return agent_.dir() + "/" + name; }
  // "?path=...&user=4321" and more.
  std::string query(const std::string& file, const std::string& more = {}) const {
    return "?user=4321&path=" + net::percent_encode(file) + more;
  }
  Reply get(const std::string& file, const std::map<std::string, std::string>& headers = {}) {
    return agent_.call("GET", "/v1/files" + query(file), "", headers);
  }
  Reply put(const std::string& file, const std::string& body, const std::string& more = {}) {
    return agent_.call("PUT", "/v1/files" + query(file, more), body);
  }
  Reply post(const std::string& verb, const std::string& json, const std::string& more = {}) {
    return agent_.call("POST", "/v1/files/" + verb + "?user=4321" + more, json);
  }
  Reply list(const std::string& dir, const std::string& more = {}) {
    return agent_.call("GET", "/v1/files/list" + query(dir, more));
  }
  // Names that no test made: drafts that were left.
  int leftovers(const std::string& dir) {
    const std::string out =
        member(agent_.exec("ls -A " + dir + " | grep -c glovebox-draft").body, "stdout");
    return std::stoi(out);
  }

  AgentProcess agent_;
};

// C25
TEST_F(FilesTest, BytesComeBackAsTheyWere) {
  const std::string contents[] = {std::string("\x89PNG\r\n\x1a\n\0", 9), "", "\xff",
                                  std::string("\xff\xfeh\0i\0", 6), std::string(3'000'000, 'x')};
  for (const std::string& content : contents) {
    const Reply written = put(path("box/file"), content);
    ASSERT_EQ(written.status, 200) << written.body;
    EXPECT_EQ(member(written.body, "size"), std::to_string(content.size()));
    EXPECT_EQ(member(written.body, "uid"), "4321");
    EXPECT_EQ(member(written.body, "mode"), "0644");
    const Reply read = get(path("box/file"));
    EXPECT_EQ(read.status, 200);
    EXPECT_TRUE(read.whole);
    EXPECT_EQ(read.body, content);
  }
  EXPECT_EQ(leftovers(path("box")), 0);
}

TEST_F(FilesTest, ReadsRangesHeadsAndWhatIsUnchanged) {
  ASSERT_EQ(put(path("box/f"), "0123456789").status, 200);
  const Reply range = get(path("box/f"), {{"Range", "bytes=2-4"}});
  EXPECT_EQ(range.status, 206);
  EXPECT_EQ(range.body, "234");
  EXPECT_EQ(range.headers.at("content-range"), "bytes 2-4/10");
  EXPECT_EQ(get(path("box/f"), {{"Range", "bytes=10-"}}).status, 416);
  const Reply head = agent_.call("HEAD", "/v1/files" + query(path("box/f")));
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "10");
  const std::string etag = head.headers.at("etag");
  EXPECT_EQ(get(path("box/f"), {{"If-None-Match", etag}}).status, 304);
  EXPECT_EQ(get(path("box/f"), {{"Range", "bytes=0-0"}, {"If-Range", "\"other\""}}).status, 200);
  ASSERT_EQ(put(path("box/f"), "abcdefghij").status, 200);
  EXPECT_EQ(get(path("box/f"), {{"If-None-Match", etag}}).status, 200);
}

TEST_F(FilesTest, ReadsKernelFilesThatSayTheyAreEmpty) {
  const Reply reply = get("/proc/meminfo");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("MemTotal"));
}

TEST_F(FilesTest, AWriteKeepsTheModeAndTakesOneThatIsGiven) {
  ASSERT_EQ(put(path("box/s"), "1", "&mode=0750").status, 200);
  EXPECT_EQ(member(put(path("box/s"), "2").body, "mode"), "0750");
  EXPECT_EQ(put(path("box/s"), "3", "&mode=9").status, 400);
  EXPECT_EQ(slurp(path("box/s")), "2");
  EXPECT_EQ(put(path("box/a/b/c"), "x").status, 404);
  EXPECT_EQ(put(path("box/a/b/c"), "x", "&parents=1").status, 200);
}

TEST_F(FilesTest, ACutUploadLeavesTheOldFile) {
  ASSERT_EQ(put(path("box/f"), "old").status, 200);
  {
    Connection connection = agent_.connect();
    connection.send("PUT /v1/files" + query(path("box/f")) +
                    " HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nnew new new");
    ASSERT_TRUE(eventually([&] { return leftovers(path("box")) == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return leftovers(path("box")) == 0; }));
  EXPECT_EQ(slurp(path("box/f")), "old");
}

// C28
TEST_F(FilesTest, LinksGiveNoRightsThatTheUserLacks) {
  std::ofstream(path("secret")) << "root's";
  ::chmod(path("secret").c_str(), 0600);
  ASSERT_EQ(::symlink(path("secret").c_str(), path("box/notes").c_str()), 0);
  ASSERT_EQ(::symlink(path("new").c_str(), path("box/draft").c_str()), 0);
  ASSERT_EQ(::symlink("/", path("box/r").c_str()), 0);
  EXPECT_EQ(put(path("box/notes"), "X").status, 403);
  EXPECT_EQ(put(path("box/draft"), "X").status, 403);
  EXPECT_EQ(get(path("box/notes")).status, 403);
  EXPECT_EQ(get(path("box/r/proc/1/environ")).status, 403);
  EXPECT_EQ(slurp(path("secret")), "root's");
  EXPECT_NE(::access(path("new").c_str(), F_OK), 0);
}

TEST_F(FilesTest, AWriteThroughALinkReplacesItsTarget) {
  ASSERT_EQ(put(path("box/real"), "1").status, 200);
  ASSERT_EQ(::symlink("real", path("box/link").c_str()), 0);
  ASSERT_EQ(put(path("box/link"), "2").status, 200);
  EXPECT_EQ(slurp(path("box/real")), "2");
  EXPECT_EQ(member(agent_.call("GET", "/v1/files/stat" + query(path("box/link"))).body, "type"),
            "symlink");
}

// C28
TEST_F(FilesTest, ARootIsNeverLeft) {
  ASSERT_EQ(post("mkdir", R"({"path":)" + quote(path("box/in/sub")) + R"(,"parents":true})").status,
            200);
  ASSERT_EQ(put(path("box/outside"), "out").status, 200);
  ASSERT_EQ(put(path("box/in/inside"), "in").status, 200);
  ASSERT_EQ(::symlink(path("box/outside").c_str(), path("box/in/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("../outside", path("box/in/relative").c_str()), 0);
  ASSERT_EQ(::symlink("../inside", path("box/in/sub/fine").c_str()), 0);
  ASSERT_EQ(::symlink("../..", path("box/in/sub/up").c_str()), 0);
  const std::string root = "&root=" + net::percent_encode(path("box/in"));
  const auto read = [&](const std::string& file) {
    return agent_.call("GET", "/v1/files" + query(file, root)).status;
  };
  EXPECT_EQ(read("inside"), 200);
  EXPECT_EQ(read("sub/fine"), 200);
  EXPECT_EQ(read(path("box/in/inside")), 200);
  for (const char* out : {"absolute", "relative", "../outside", "sub/up/outside", "/etc/passwd"}) {
    EXPECT_EQ(read(out), 403) << out;
    EXPECT_EQ(put(out, "X", root).status, 403) << out;
  }
  EXPECT_EQ(slurp(path("box/outside")), "out");
  const std::string move = R"({"from":"inside","to":"../stolen"})";
  EXPECT_EQ(post("move", move, root).status, 403);
}

// C28: a link that is swapped all the time.
TEST_F(FilesTest, ARacingLinkNeverWins) {
  post("mkdir", R"({"path":)" + quote(path("box/in")) + "}");
  put(path("box/in/file"), "in");
  put(path("box/outside"), "out");
  const std::string racer = agent_.start(
      "cd box; ln -s ../outside a; ln in/file b; while :; do ln -sf ../outside in/x; "
      "ln -f b in/x; done");
  const std::string root = "&root=" + net::percent_encode(path("box/in"));
  for (int i = 0; i < 300; ++i) {
    const Reply reply = agent_.call("GET", "/v1/files" + query("x", root));
    if (reply.status == 200) ASSERT_NE(reply.body, "out");
    put("x", "mine", root);
    ASSERT_EQ(slurp(path("box/outside")), "out");
  }
  agent_.call("POST", "/v1/processes/" + racer + "/signal", R"({"signal":9})");
}

// C32
TEST_F(FilesTest, EachErrorHasItsKind) {
  ASSERT_EQ(put(path("box/f"), "x").status, 200);
  ASSERT_EQ(put(path("box/d/f"), "x", "&parents=1").status, 200);
  std::ofstream(path("rootfile")) << "x";
  ::chmod(path("rootfile").c_str(), 0600);
  const auto del = [&](const std::string& file, const std::string& more = {}) {
    return agent_.call("DELETE", "/v1/files" + query(file, more)).status;
  };
  EXPECT_EQ(get(path("box/none")).status, 404);
  EXPECT_EQ(get(path("box/f/below")).status, 400);
  EXPECT_EQ(get(path("box/d")).status, 400);
  EXPECT_EQ(get(path("rootfile")).status, 403);
  EXPECT_EQ(list(path("box/f")).status, 400);
  EXPECT_EQ(list(path("box/none")).status, 404);
  EXPECT_EQ(put(path("box/d"), "x").status, 400);
  EXPECT_EQ(put(path("mine"), "x").status, 403);
  EXPECT_EQ(post("mkdir", R"({"path":)" + quote(path("box/f")) + "}").status, 409);
  EXPECT_EQ(post("mkdir", R"({"path":)" + quote(path("box/d")) + "}").status, 200);
  EXPECT_EQ(post("mkdir", R"({"path":)" + quote(path("box/x/y")) + "}").status, 404);
  EXPECT_EQ(del(path("box/none")), 404);
  EXPECT_EQ(del(path("box/d")), 409);
  EXPECT_EQ(del(path("box/d"), "&recursive=1"), 204);
  EXPECT_EQ(del(path("rootfile")), 403);
  const std::string pair = R"("from":)" + quote(path("box/f")) + R"(,"to":)" + quote(path("box/g"));
  EXPECT_EQ(post("move", "{" + pair + "}").status, 200);
  EXPECT_EQ(post("move", "{" + pair + "}").status, 404);
  ASSERT_EQ(put(path("box/f"), "y").status, 200);
  EXPECT_EQ(post("move", "{" + pair + R"(,"replace":false})").status, 409);
  EXPECT_EQ(slurp(path("box/g")), "x");
  EXPECT_EQ(agent_.call("GET", "/v1/files?user=4321").status, 400);
  EXPECT_EQ(agent_.call("GET", "/v1/files?user=nobody_x&path=/").status, 400);
  EXPECT_EQ(get(std::string(5000, 'a')).status, 400);
  EXPECT_EQ(agent_.call("POST", "/v1/files?path=/x", "").status, 405);
  EXPECT_EQ(agent_.call("GET", "/v1/files/nope?path=/x").status, 404);
}

TEST_F(FilesTest, ChangesModeAndOwner) {
  ASSERT_EQ(put(path("box/f"), "x").status, 200);
  const std::string head = R"({"path":)" + quote(path("box/f"));
  EXPECT_EQ(member(post("chmod", head + R"(,"mode":"0600"})").body, "mode"), "0600");
  EXPECT_EQ(post("chmod", head + R"(,"owner":0})").status, 403);
  const Reply by_root = agent_.call("POST", "/v1/files/chmod?user=0", head + R"(,"owner":77})");
  EXPECT_EQ(member(by_root.body, "uid"), "77");
  EXPECT_EQ(post("chmod", head + R"(,"mode":"0644"})").status, 403);
  EXPECT_EQ(post("chmod", head + R"(,"owner":"nobody_x"})").status, 400);
}

// C35
TEST_F(FilesTest, AwkwardNamesWork) {
  const std::string names[] = {
      "new\nline", "-rf",       " lead and trail ",    "dot.",         "%2e%2e", "back\\slash",
      "é",         "e\xcc\x81", std::string(255, 'n'), "\xff\xfe raw", "\"q\""};
  for (const std::string& name : names) {
    const std::string file = path("box/") + name;
    const std::string by_b64 = "?user=4321&path_b64=" + net::percent_encode(to_base64(file));
    ASSERT_EQ(agent_.call("PUT", "/v1/files" + by_b64, "x").status, 200) << name;
    EXPECT_EQ(agent_.call("GET", "/v1/files" + by_b64).body, "x") << name;
    EXPECT_EQ(agent_.call("GET", "/v1/files/stat" + by_b64).status, 200) << name;
    EXPECT_EQ(slurp(file), "x");
  }
  const Reply listed = list(path("box"));
  EXPECT_THAT(listed.body, HasSubstr(R"("path_b64":")" + to_base64(path("box/") + "\xff\xfe raw")));
  for (const std::string& name : names) {
    const std::string by_b64 =
        "?user=4321&path_b64=" + net::percent_encode(to_base64(path("box/") + name));
    EXPECT_EQ(agent_.call("DELETE", "/v1/files" + by_b64).status, 204) << name;
  }
}

// C35
TEST_F(FilesTest, SpecialFilesDoNotHang) {
  ASSERT_EQ(::mkfifo(path("box/fifo").c_str(), 0666), 0);
  ::chmod(path("box/fifo").c_str(), 0666);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("box/sock").copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const char* special : {"box/fifo", "box/sock"}) {
    EXPECT_EQ(get(path(special)).status / 100, 4) << special;
    EXPECT_EQ(put(path(special), "x").status, 400) << special;
  }
  EXPECT_EQ(get("/dev/zero").status, 400);
  EXPECT_EQ(put("/dev/null", "x").status / 100, 4);
  ASSERT_EQ(::truncate((put(path("box/sparse"), ""), path("box/sparse")).c_str(), 1LL << 38), 0);
  const Reply end = get(path("box/sparse"), {{"Range", "bytes=-3"}});
  EXPECT_EQ(end.body, std::string(3, '\0'));
  EXPECT_EQ(member(agent_.call("GET", "/v1/files/stat" + query(path("box/fifo"))).body, "type"),
            "fifo");
}

std::vector<std::string> names_in(const std::string& json) {
  std::vector<std::string> names;
  for (std::size_t at = json.find("\"name\":"); at != std::string::npos;
       at = json.find("\"name\":", at + 1)) {
    names.push_back(member(json.substr(at, 300), "name"));
  }
  return names;
}

// C35
TEST_F(FilesTest, ListsInPagesAndNoDeeperThanAsked) {
  agent_.exec(
      "cd box; mkdir -p b/x/y c; touch a b/1 b/2 b/x/3 b/x/y/deep z; for i in $(seq 30); do "
      "touch c/f$i; done");
  EXPECT_THAT(names_in(list(path("box")).body), testing::ElementsAre("a", "b", "c", "z"));
  EXPECT_THAT(names_in(list(path("box/b"), "&depth=2").body),
              testing::ElementsAre("1", "2", "x", "3", "y"));
  const std::vector<std::string> whole = names_in(list(path("box"), "&depth=64").body);
  EXPECT_EQ(whole.size(), 40U);
  for (const char* limit : {"1", "3", "7", "39", "40"}) {
    std::vector<std::string> all;
    std::string cursor;
    for (int page = 0; page < 50; ++page) {
      const Reply reply = list(path("box"), "&depth=64&limit=" + std::string(limit) + cursor);
      ASSERT_EQ(reply.status, 200) << reply.body;
      for (std::string& name : names_in(reply.body)) all.push_back(std::move(name));
      const std::string next = member(reply.body, "next_cursor");
      if (next == "null") break;
      cursor = "&cursor=" + next;
    }
    EXPECT_EQ(all, whole) << limit;
  }
  for (const char* bad : {"&depth=0", "&depth=65", "&limit=0", "&limit=1001", "&cursor=%25"}) {
    EXPECT_EQ(list(path("box"), bad).status, 400) << bad;
  }
}

TEST_F(FilesTest, RemovesDeepTreesAndFollowsNoLink) {
  const Reply made = agent_.exec(
      "mkdir -p keep/precious; python3 -c \"import os\nos.chdir('box')\n"
      "for i in range(1500):\n os.mkdir('d'); open('f','w').close(); os.chdir('d')\n"
      "os.symlink('" +
      path("keep") + "','link')\"; chown -R 4321 box; echo ok");
  ASSERT_EQ(member(made.body, "stdout"), "ok\\n") << made.body;
  EXPECT_EQ(agent_.call("DELETE", "/v1/files" + query(path("box/d"), "&recursive=1")).status, 204);
  EXPECT_NE(::access(path("box/d").c_str(), F_OK), 0);
  EXPECT_EQ(::access(path("keep/precious").c_str(), F_OK), 0);
}

TEST_F(FilesTest, AWatchReportsChangesAlsoInNewDirectories) {
  Connection watch = agent_.connect();
  watch.send_request("GET", "/v1/files/watch" + query(path("box"), "&recursive=1"), "");
  ASSERT_EQ(watch.read_head().status, 200);
  const auto await = [&](const std::string& type, const std::string& file) {
    for (Event event = watch.next_event(); !event.name.empty(); event = watch.next_event()) {
      EXPECT_THAT(event.data, testing::Not(HasSubstr("glovebox-draft")));
      if (event.name == type && member(event.data, "path") == path(file)) return true;
    }
    return false;
  };
  put(path("box/f"), "1");
  EXPECT_TRUE(await("create", "box/f"));
  put(path("box/a/b/deep"), "1", "&parents=1");
  EXPECT_TRUE(await("create", "box/a/b/deep"));
  agent_.exec("echo more >> box/a/b/deep");
  EXPECT_TRUE(await("modify", "box/a/b/deep"));
  agent_.exec("chmod 600 box/a/b/deep");
  EXPECT_TRUE(await("attrib", "box/a/b/deep"));
  agent_.exec("mv box/f box/g");
  EXPECT_TRUE(await("rename", "box/f"));
  EXPECT_TRUE(await("create", "box/g"));
  agent_.exec("rm box/g");
  EXPECT_TRUE(await("remove", "box/g"));
  EXPECT_EQ(agent_.call("GET", "/v1/files/watch" + query(path("box/none"))).status, 404);
}

TEST_F(FilesTest, LargeTransfersTakeNoMemory) {
  const auto peak_kb = [&] {
    std::ifstream status("/proc/" + std::to_string(agent_.pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
    }
    return 0L;
  };
  const long before = peak_kb();
  const std::string chunk(1 << 20, 'x');
  Connection up = agent_.connect();
  up.send("PUT /v1/files" + query(path("box/big")) +
          " HTTP/1.1\r\nHost: a\r\nContent-Length: 134217728\r\n\r\n");
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(up.send(chunk));
  EXPECT_EQ(up.read_reply().status, 200);
  EXPECT_EQ(get(path("box/big")).body.size(), std::size_t{128} << 20);
  EXPECT_LT(peak_kb() - before, 16 << 10);  // Mostly pages of the program itself.
}

}  // namespace
}  // namespace glovebox::agent
