#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "api/native/native.h"
#include "api/native/routes.h"

namespace glovebox::api::native {
namespace {

// Enough of YAML for our own file: a path is a key with two spaces before it, a method one with
// four.
std::set<std::string> described_routes() {
  std::set<std::string> routes;
  std::istringstream file{std::string(openapi_yaml())};
  std::string path;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("components:")) break;
    if (line.starts_with("  /") && line.ends_with(":")) path = line.substr(2, line.size() - 3);
    for (const char* method : {"get", "put", "post", "delete", "patch", "head", "options"}) {
      if (line != "    " + std::string(method) + ":") continue;
      std::string name(method);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
      routes.insert(name + " " + path);
    }
  }
  return routes;
}

TEST(OpenApi, DescribesEveryRouteAndNoOther) {
  std::set<std::string> served;
  for (const RouteEntry& entry : routes()) {
    served.insert(std::string(entry.spec.method) + " " + std::string(entry.spec.pattern));
  }
  served.insert("GET /sandboxes/{id}/proxy/{port}/{path}");  // The gateway's.
  EXPECT_EQ(described_routes(), served);
}

}  // namespace
}  // namespace glovebox::api::native
