#include "cli/endpoint.h"

#include <gtest/gtest.h>

namespace glovebox::cli {
namespace {

TEST(Endpoint, TakesHttpAndUnix) {
  struct Case {
    const char* url;
    const char* shown;
    const char* host_header;
  };
  for (const Case& c : {Case{"http://127.0.0.1:7070", "http://127.0.0.1:7070", "127.0.0.1:7070"},
                        {"http://box.example", "http://box.example:80", "box.example:80"},
                        {"http://[::1]:7070/", "http://[::1]:7070", "[::1]:7070"},
                        {"http://h:1/a/b/", "http://h:1/a/b", "h:1"},
                        {"unix:///run/x.sock", "unix:///run/x.sock", "localhost"}}) {
    const Result<Endpoint> endpoint = parse_endpoint(c.url);
    ASSERT_TRUE(endpoint) << c.url << endpoint.error().text();
    EXPECT_EQ(endpoint->describe(), c.shown);
    EXPECT_EQ(endpoint->host_header(), c.host_header);
    EXPECT_EQ(parse_endpoint(endpoint->describe())->describe(), c.shown);
  }
}

TEST(Endpoint, RefusesWhatItCannotReach) {
  for (const std::string& url :
       {std::string(), std::string("127.0.0.1:7070"), std::string("https://h"),
        std::string("http://"), std::string("http://:1"), std::string("http://h:"),
        std::string("http://h:0"), std::string("http://h:65536"), std::string("http://h:1x"),
        std::string("http://u:p@h"), std::string("http://h?x"), std::string("http://[::1"),
        std::string("http://h:1/a b"), std::string("http://h\r\nX: y"), std::string("unix://rel"),
        "unix:///" + std::string(200, 'x')}) {
    EXPECT_FALSE(parse_endpoint(url)) << url;
  }
}

TEST(Endpoint, TriesTheSocketBeforeThePort) {
  const std::vector<Endpoint> all = default_endpoints();
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(all.front().unix_path, "/run/glovebox/glovebox.sock");
  EXPECT_EQ(all.back().describe(), kDefaultUrl);
}

}  // namespace
}  // namespace glovebox::cli
