#include "cli/path_spec.h"

#include <gtest/gtest.h>

namespace glovebox::cli {
namespace {

TEST(PathSpec, TellsLocalFromRemote) {
  struct Case {
    const char* text;
    PathSpec::Kind kind;
    const char* sandbox;
    const char* path;
  };
  using K = PathSpec::Kind;
  const Case cases[] = {
      {"file", K::kLocal, "", "file"},
      {"./a:b", K::kLocal, "", "./a:b"},
      {"/tmp/a:b", K::kLocal, "", "/tmp/a:b"},
      {"-", K::kStandard, "", ""},
      {"box:/etc/passwd", K::kRemote, "box", "/etc/passwd"},
      {"box:rel/x:y", K::kRemote, "box", "rel/x:y"},
      {"box:", K::kRemote, "box", "."},
  };
  for (const Case& c : cases) {
    const Result<PathSpec> spec = parse_path_spec(c.text);
    ASSERT_TRUE(spec) << c.text;
    EXPECT_EQ(spec->kind, c.kind) << c.text;
    EXPECT_EQ(spec->sandbox, c.sandbox) << c.text;
    EXPECT_EQ(spec->path, c.path) << c.text;
  }
  EXPECT_FALSE(parse_path_spec(""));
  EXPECT_FALSE(parse_path_spec(":/x"));
  EXPECT_FALSE(parse_path_spec(std::string_view("a\0b", 3)));
}

TEST(BaseName, IsEmptyForWhatNamesNoEntry) {
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("a/b/"), "b");
  for (const char* path : {"", "/", "//", ".", "..", "a/..", "a/.", "../"}) {
    EXPECT_EQ(base_name(path), "") << path;
  }
}

TEST(IsPlainName, RefusesWhatWouldLeaveADirectory) {
  for (const char* name : {"a", "...", ".hidden", "a b", "-rf", "\x1b[2J", "\xff"}) {
    EXPECT_TRUE(is_plain_name(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/"),
        std::string("../x"), std::string("/etc/passwd"), std::string("a\0b", 3),
        std::string(256, 'x')}) {
    EXPECT_FALSE(is_plain_name(name)) << name;
  }
}

}  // namespace
}  // namespace glovebox::cli
