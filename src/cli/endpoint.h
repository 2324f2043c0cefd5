// Where the daemon is: an HTTP URL or a Unix socket.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace glovebox::cli {

struct Endpoint {
  std::string unix_path;  // Set for a Unix socket; then host and port are not used.
  std::string host;       // A name or a numeric address, without brackets.
  std::uint16_t port = 0;
  std::string prefix;  // Of the path, for a daemon behind a proxy: "" or "/glovebox".

  std::string describe() const;     // "http://127.0.0.1:7070", "unix:///run/…"
  std::string host_header() const;  // "127.0.0.1:7070", "[::1]:7070", "localhost" for a socket.
};

// "http://HOST[:PORT][/PREFIX]" or "unix:///PATH". https is refused with advice: TLS is for the
// proxy in front.
Result<Endpoint> parse_endpoint(std::string_view url);

inline constexpr std::string_view kDefaultUrl = "http://127.0.0.1:7070";
inline constexpr std::string_view kDefaultRunDir = "/run/glovebox";
inline constexpr std::string_view kDefaultDataDir = "/var/lib/glovebox";
inline constexpr std::string_view kSocketName = "glovebox.sock";

// Where to look when no URL was given, in this order.
std::vector<Endpoint> default_endpoints();

}  // namespace glovebox::cli
