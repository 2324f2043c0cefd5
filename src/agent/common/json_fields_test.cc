#include "agent/common/json_fields.h"

#include <gtest/gtest.h>

namespace glovebox::agent {
namespace {

std::string parse_error(std::string_view text) {
  const auto fields = JsonFields::parse(text);
  return fields ? "" : fields.error().text();
}

TEST(JsonFields, RefusesWhatIsNotOneObject) {
  for (const char* text : {"", "{", "[]", "1", "null", "{} {}", "{\"a\":1,}", "{'a':1}", "\xff",
                           "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}"}) {
    EXPECT_NE(parse_error(text), "") << text;
  }
}

TEST(JsonFields, RefusesAKeyThatIsThereTwiceAtAnyDepth) {
  EXPECT_EQ(parse_error(R"({"a":1,"a":2})"), "\"a\" is there twice");
  EXPECT_EQ(parse_error(R"({"e":{"k":"1","k":"2"}})"), "\"k\" is there twice");
  EXPECT_EQ(parse_error(R"({"a":1,"\u0061":2})"), "\"a\" is there twice");
  EXPECT_EQ(parse_error(R"({"a":{"x":1},"b":{"x":1}})"), "");
}

TEST(JsonFields, RefusesDeepNesting) {
  EXPECT_NE(parse_error("{\"a\":" + std::string(10'000, '[') + std::string(10'000, ']') + "}"), "");
}

TEST(JsonFields, NamesTheFieldAtFault) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {R"({"t":1})", "\"t\" must be a string"},
      {R"({"t":"a\u0000b"})", "\"t\" must not contain NUL"},
      {R"({"b":"yes"})", "\"b\" must be true or false"},
      {R"({"n":"1"})", "\"n\" must be a number"},
      {R"({"i":1.5})", "\"i\" must be an integer"},
      {R"({"i":1e99})", "\"i\" must be an integer"},
      {R"({"l":["a",1]})", "\"l\" must be an array of strings"},
      {R"({"m":{"a":1}})", "\"m\" must be an object of strings"},
      {R"({"o":[]})", "\"o\" must be an object"},
      {R"({"other":1})", "\"other\" is not a field of this request"},
  };
  for (const Case& c : cases) {
    auto fields = JsonFields::parse(c.text);
    ASSERT_TRUE(fields) << c.text;
    fields->text("t");
    fields->boolean("b");
    fields->number("n");
    fields->integer("i");
    fields->texts("l");
    fields->text_map("m");
    fields->object("o");
    const Result<void> end = fields->finish();
    ASSERT_FALSE(end) << c.text;
    EXPECT_EQ(end.error().text(), c.message);
  }
}

TEST(JsonFields, TakesNullForAbsent) {
  auto fields = JsonFields::parse(R"({"t":null})");
  ASSERT_TRUE(fields);
  EXPECT_FALSE(fields->text("t"));
  EXPECT_TRUE(fields->finish());
}

}  // namespace
}  // namespace glovebox::agent
