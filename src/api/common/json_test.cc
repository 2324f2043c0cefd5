#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "api/common/json_reader.h"
#include "api/common/json_writer.h"

namespace glovebox::api {
namespace {

using testing::HasSubstr;

struct BadDocument {
  const char* text;
  const char* error;
};

const BadDocument kBadDocuments[] = {
    {"", "body: not JSON: incomplete JSON"},
    {"{", "incomplete JSON"},
    {"{} x", "body: not JSON"},
    {"{}{}", "body: not JSON"},
    {"{'a':1}", "body: not JSON"},
    {"{\"a\":1,}", "body: not JSON"},
    {"// c\n{}", "body: not JSON"},
    {"{\"a\":01}", "body: not JSON"},
    {"{\"a\":NaN}", "body: not JSON"},
    {"{\"a\":\"\xFF\"}", "body: not JSON"},
    {"{\"a\":\"\\ud800\"}", "body: not JSON"},
    {"{\"a\":\"\n\"}", "body: not JSON"},
    {"\xEF\xBB\xBF{}", "body: not JSON"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "body: has the field a twice"},
    {"{\"x\":{\"a\":1,\"a\":1}}", "body: has the field a twice"},
    {"{\"\\u0061\":1,\"a\":1}", "body: has the field a twice"},
    {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "body: not JSON"},
};

TEST(ParseJson, RefusesWhatIsNotStrictJson) {
  for (const BadDocument& bad : kBadDocuments) {
    const auto value = parse_json(bad.text);
    ASSERT_FALSE(value) << bad.text;
    EXPECT_EQ(value.error().code(), Errc::kInvalid);
    EXPECT_THAT(value.error().text(), HasSubstr(bad.error)) << bad.text;
  }
}

TEST(ParseJson, TheSameNameInDifferentObjectsIsFine) {
  EXPECT_TRUE(parse_json(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})"));
}

TEST(ParseJson, LongNamesAreComparedWhole) {
  const std::string name(5000, 'n');
  EXPECT_TRUE(parse_json("{\"" + name + "x\":1,\"" + name + "y\":1}"));
  EXPECT_FALSE(parse_json("{\"" + name + "\":1,\"" + name + "\":1}"));
}

struct Fields {
  std::optional<std::string> name;
  std::optional<std::uint64_t> count;
  std::optional<double> share;
  std::optional<Millis> timeout;
  std::optional<Millis> idle;
  std::map<std::string, std::string> labels;
};

Result<Fields> read(std::string_view text) {
  GB_TRY_ASSIGN(const boost::json::value value, parse_json(text));
  Fields f;
  ObjectReader in(value, "x");
  in.text("name", f.name).whole_number("count", f.count).real("share", f.share);
  in.seconds("timeout_s", f.timeout).nullable_seconds("idle_s", f.idle);
  in.text_map("labels", f.labels);
  GB_TRY(in.finish());
  return f;
}

TEST(ObjectReader, ReadsWhatIsThere) {
  Result<Fields> f = read(R"({"name":"n","count":18446744073709551615,"share":2,"timeout_s":0.0015,
                              "idle_s":null,"labels":{"k":"v"}})");
  ASSERT_TRUE(f) << f.error().text();
  EXPECT_EQ(f->name, "n");
  EXPECT_EQ(f->count, UINT64_MAX);
  EXPECT_EQ(f->share, 2.0);
  EXPECT_EQ(f->timeout, Millis(2));
  EXPECT_FALSE(f->idle);
  EXPECT_EQ(f->labels.at("k"), "v");
  EXPECT_FALSE(read("{}").value().name);
}

const BadDocument kBadFields[] = {
    {"[]", "x: must be an object"},
    {"null", "x: must be an object"},
    {R"({"nam":"n"})", "x.nam: is not a known field"},
    {R"({"\u001b[2J":"n"})", "\"x.\\u001b[2J\": is not a known field"},
    {R"({"":1})", "x.: is not a known field"},
    {R"({"name":1})", "x.name: must be a string"},
    {R"({"name":null})", "x.name: must be a string"},
    {R"({"count":-1})", "x.count: must be a whole number"},
    {R"({"count":1.0})", "x.count: must be a whole number"},
    {R"({"count":1e2})", "x.count: must be a whole number"},
    {R"({"count":"1"})", "x.count: must be a whole number"},
    {R"({"count":18446744073709551616})", "x.count: must be a whole number"},
    {R"({"share":true})", "x.share: must be a number"},
    {R"({"share":1e999})", "x.share: is too large"},
    {R"({"share":0e2222})", "x.share: is too large"},  // Boost 1.81 makes it NaN.
    {R"({"timeout_s":0e2222})", "x.timeout_s: is too large"},
    {R"({"timeout_s":-1})", "x.timeout_s: must be a number of seconds"},
    {R"({"timeout_s":1e300})", "x.timeout_s: must be a number of seconds"},
    {R"({"timeout_s":null})", "x.timeout_s: must be a number"},
    {R"({"labels":[]})", "x.labels: must be an object of strings"},
    {R"({"labels":{"k":1}})", "x.labels.k: must be a string"},
};

TEST(ObjectReader, NamesTheFieldThatIsWrong) {
  for (const BadDocument& bad : kBadFields) {
    const Result<Fields> f = read(bad.text);
    ASSERT_FALSE(f) << bad.text;
    EXPECT_THAT(f.error().text(), HasSubstr(bad.error)) << bad.text;
  }
}

TEST(JsonWriter, WritesWhatBoostReads) {
  JsonWriter out;
  out.begin_object()
      .key("a")
      .begin_array()
      .integer(1)
      .null()
      .boolean(true)
      .text("\x1b\"")
      .end_array();
  out.key("b").begin_object().end_object().key("c").real(0.5).key("d").text_map({{"k", "v"}});
  out.key("e").real(1.0 / 0.0).end_object();
  const std::string text = std::move(out).take();
  EXPECT_EQ(text, R"({"a":[1,null,true,"\u001b\""],"b":{},"c":0.5,"d":{"k":"v"},"e":null})");
  EXPECT_TRUE(parse_json(text));
}

}  // namespace
}  // namespace glovebox::api
