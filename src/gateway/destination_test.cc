#include "gateway/destination.h"

#include <gtest/gtest.h>

namespace glovebox::gateway {
namespace {

#define ID "sb-0123456789abcdefghij"

const Domains kDomains{"localhost", "sb.example.org"};

net::RequestHead head(std::string target, net::Headers headers) {
  net::RequestHead out;
  out.method = "GET";
  out.target = std::move(target);
  out.headers = std::move(headers);
  return out;
}

struct GoodCase {
  const char* name;
  net::RequestHead head;
  std::uint16_t port;
  const char* target;
  const char* prefix;
};

const GoodCase kGood[] = {
    {"path", head("/sandboxes/" ID "/proxy/80/a/b?x=1", {}), 80, "/a/b?x=1",
     "/sandboxes/" ID "/proxy/80"},
    {"path without a slash", head("/sandboxes/" ID "/proxy/8080", {}), 8080, "",
     "/sandboxes/" ID "/proxy/8080"},
    {"path with a query only", head("/sandboxes/" ID "/proxy/80?x", {}), 80, "?x",
     "/sandboxes/" ID "/proxy/80"},
    // What the program inside makes of its part of the path is its own business.
    {"the rest is passed on as it is", head("/sandboxes/" ID "/proxy/80//%2e%2e/../%2F;a/%00", {}),
     80, "//%2e%2e/../%2F;a/%00", "/sandboxes/" ID "/proxy/80"},
    {"headers", head("/x", {{"glovebox-sandbox-id", ID}, {"Glovebox-Sandbox-Port", "81"}}), 81,
     "/x", ""},
    {"headers over host",
     head("/x", {{"Host", "9-" ID ".localhost"},
                 {"Glovebox-Sandbox-Id", ID},
                 {"Glovebox-Sandbox-Port", "81"}}),
     81, "/x", ""},
    {"host", head("/x", {{"Host", "82-" ID ".localhost:7070"}}), 82, "/x", ""},
    {"host of the domain", head("/x", {{"Host", "82-" ID ".sb.example.org"}}), 82, "/x", ""},
    {"host in capitals with a dot", head("/x", {{"Host", "82-SB-0123456789ABCDEFGHIJ.LOCALHOST."}}),
     82, "/x", ""},
    {"host and an API path", head("/api/v1/sandboxes", {{"Host", "82-" ID ".localhost"}}), 82,
     "/api/v1/sandboxes", ""},
};

TEST(Destination, IsFoundByEachOfThreeWays) {
  for (const GoodCase& good : kGood) {
    EXPECT_TRUE(claims(good.head, kDomains)) << good.name;
    const Result<Destination> to = find(good.head, kDomains);
    ASSERT_TRUE(to) << good.name << ": " << to.error().text();
    EXPECT_EQ(to.value().id.str(), ID) << good.name;
    EXPECT_EQ(to.value().port, good.port) << good.name;
    EXPECT_EQ(to.value().target, good.target) << good.name;
    EXPECT_EQ(to.value().prefix, good.prefix) << good.name;
  }
}

struct BadCase {
  net::RequestHead head;
  Errc code;
};

const BadCase kClaimedButWrong[] = {
    {head("/sandboxes/sb-x/proxy/80/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "%2F..%2Fsb-aaaaaaaaaaaaaaaaaaaa/proxy/80/", {}), Errc::kNotFound},
    {head("/sandboxes/%73b-0123456789abcdefghij/proxy/80/", {}), Errc::kNotFound},
    {head("/sandboxes//proxy/80/", {}), Errc::kNotFound},
    {head("/sandboxes/../proxy/80/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/0/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/080/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/%38%30/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/80;x/", {}), Errc::kNotFound},
    {head("/sandboxes/" ID "/proxy/99999/", {}), Errc::kNotFound},
    {head("/", {{"Glovebox-Sandbox-Id", ID}}), Errc::kInvalid},
    {head("/", {{"Glovebox-Sandbox-Port", "80"}}), Errc::kInvalid},
    {head("/", {{"Glovebox-Sandbox-Id", "x"}, {"Glovebox-Sandbox-Port", "80"}}), Errc::kInvalid},
    {head("/", {{"Glovebox-Sandbox-Id", ID}, {"Glovebox-Sandbox-Port", "0"}}), Errc::kInvalid},
    {head("/", {{"Glovebox-Sandbox-Id", ID},
                {"Glovebox-Sandbox-Id", "sb-aaaaaaaaaaaaaaaaaaaa"},
                {"Glovebox-Sandbox-Port", "80"}}),
     Errc::kInvalid},
};

TEST(Destination, AWrongOneIsRefusedAndReachesNoOtherApi) {
  for (const BadCase& bad : kClaimedButWrong) {
    EXPECT_TRUE(claims(bad.head, kDomains)) << bad.head.target;
    const Result<Destination> to = find(bad.head, kDomains);
    ASSERT_FALSE(to) << bad.head.target;
    EXPECT_EQ(to.error().code(), bad.code) << bad.head.target;
  }
}

TEST(Destination, OtherRequestsAreNotClaimed) {
  const net::RequestHead others[] = {
      head("/api/v1/sandboxes/" ID, {}),
      head("/sandboxes/" ID, {}),
      head("/sandboxes/" ID "/files", {}),
      head("/sandboxes/" ID "/Proxy/80/", {}),
      head("/Sandboxes/" ID "/proxy/80/", {}),
      head("//sandboxes/" ID "/proxy/80/", {}),
      head("/x/../sandboxes/" ID "/proxy/80/", {}),
      head("/sandboxes/" ID "//proxy/80/", {}),
      head("/sandboxes/" ID "?x=/proxy/80/", {}),
      head("/", {{"Host", "localhost:7070"}}),
      head("/", {{"Host", ID ".localhost"}}),
      head("/", {{"Host", "0-" ID ".localhost"}}),
      head("/", {{"Host", "80-" ID ".localhost.evil.example"}}),
      head("/", {{"Host", "80-" ID ".example.org"}}),
      head("/", {{"Host", "80-" ID "localhost"}}),
      head("/", {{"Host", "80-" ID ".localhost.."}}),
      head("/", {{"X-Forwarded-Host", "80-" ID ".localhost"}}),
  };
  for (const net::RequestHead& other : others) {
    EXPECT_FALSE(claims(other, kDomains)) << other.target << " " << other.headers.get("Host");
  }
}

}  // namespace
}  // namespace glovebox::gateway
