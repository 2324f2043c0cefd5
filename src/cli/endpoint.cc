#include "cli/endpoint.h"

#include <charconv>

#include "cli/path_spec.h"

namespace glovebox::cli {
namespace {

Error invalid(std::string_view url, std::string_view why) {
  return Error(Errc::kInvalid, std::string("URL '").append(url).append("': ").append(why));
}

bool has_control_or_space(std::string_view text) noexcept {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F) return true;
  }
  return false;
}

}  // namespace

std::string Endpoint::describe() const {
  if (!unix_path.empty()) return "unix://" + unix_path;
  return "http://" + host_header() + prefix;
}

std::string Endpoint::host_header() const {
  if (!unix_path.empty()) return "localhost";
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return name + ":" + std::to_string(port);
}

Result<Endpoint> parse_endpoint(std::string_view url) {
  Endpoint endpoint;
  if (has_control_or_space(url)) return invalid(url, "holds a space or a control character");
  constexpr std::string_view kUnix = "unix://";
  constexpr std::string_view kHttp = "http://";
  if (url.starts_with(kUnix)) {
    endpoint.unix_path = url.substr(kUnix.size());
    if (!endpoint.unix_path.starts_with('/')) return invalid(url, "expected unix:///PATH");
    // sun_path holds 108 bytes with the closing NUL: unix(7).
    if (endpoint.unix_path.size() > 107)
      return invalid(url, "a socket's path has at most 107 bytes");
    return endpoint;
  }
  if (url.starts_with("https://")) {
    return invalid(url,
                   "this command does not speak TLS; use an SSH tunnel "
                   "(ssh -L 7070:127.0.0.1:7070 HOST) and http://127.0.0.1:7070");
  }
  if (!url.starts_with(kHttp)) return invalid(url, "expected http://HOST:PORT or unix:///PATH");
  std::string_view rest = url.substr(kHttp.size());
  if (rest.find_first_of("?#@") != std::string_view::npos) {
    return invalid(url, "user, query and fragment are not supported");
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    endpoint.prefix = rest.substr(slash);
    while (endpoint.prefix.ends_with('/')) endpoint.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return invalid(url, "'[' without ']'");
    endpoint.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const std::size_t colon = rest.find(':');
    endpoint.host = rest.substr(0, colon);
    if (colon != std::string_view::npos) port = rest.substr(colon);
  }
  if (endpoint.host.empty()) return invalid(url, "names no host");
  if (port.empty()) {
    endpoint.port = 80;
    return endpoint;
  }
  const char* end = port.data() + port.size();
  const auto [parsed, error] = std::from_chars(port.data() + 1, end, endpoint.port);
  if (port.front() != ':' || error != std::errc() || parsed != end || endpoint.port == 0) {
    return invalid(url, "its port is not a number from 1 to 65535");
  }
  return endpoint;
}

std::vector<Endpoint> default_endpoints() {
  std::vector<Endpoint> out;
  for (const std::string_view dir : {kDefaultRunDir, kDefaultDataDir}) {
    Endpoint& endpoint = out.emplace_back();
    endpoint.unix_path = join_path(dir, kSocketName);
  }
  out.push_back(parse_endpoint(kDefaultUrl).value());
  return out;
}

}  // namespace glovebox::cli
