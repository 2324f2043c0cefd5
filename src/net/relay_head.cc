#include "net/relay_head.h"

#include <algorithm>
#include <array>

#include "net/serialize.h"
#include "net/text.h"

namespace glovebox::net {
namespace {

// Message framing is each connection's own, so that Content-Length is in the list as well.
constexpr std::array<std::string_view, 10> kHopByHop = {
    "Connection", "Content-Length",      "Keep-Alive", "Proxy-Connection",  "Proxy-Authenticate",
    "TE",         "Proxy-Authorization", "Trailer",    "Transfer-Encoding", "Upgrade"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view other) { return equal_ignoring_case(name, other); });
}

// Names in a Connection field are hop-by-hop too, but none of those by which a request is routed
// or framed: a client could make the next hop see another request.
bool is_named_in_connection(const Headers& headers, std::string_view name) {
  if (equal_ignoring_case(name, "Host")) return false;
  for (const Header& header : headers) {
    if (equal_ignoring_case(header.name, "Connection") && list_has(header.value, name)) {
      return true;
    }
  }
  return false;
}

bool has_unusual_connection(const Headers& headers) {
  for (const Header& header : headers) {
    if (!equal_ignoring_case(header.name, "Connection")) continue;
    const bool usual = equal_ignoring_case(header.value, "keep-alive") ||
                       equal_ignoring_case(header.value, "close") ||
                       equal_ignoring_case(header.value, "upgrade");
    if (!usual) return true;
  }
  return false;
}

bool is_dropped(const RelayOptions& options, std::string_view name) {
  if (equal_ignoring_case(name, "Expect")) return true;  // Answered here.
  const auto same = [name](std::string_view other) { return equal_ignoring_case(name, other); };
  return std::any_of(options.drop_headers.begin(), options.drop_headers.end(), same) ||
         options.add_headers.has(name);
}

void append_checked(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string_view wanted_upgrade(const RequestHead& head) {
  if (!head.upgrade || head.http_1_0 || head.has_body()) return {};
  const std::string_view protocol = head.headers.get("Upgrade");
  // h2c is not passed on: what follows would be requests that nobody has looked at.
  if (!is_field_name(protocol) || equal_ignoring_case(protocol, "h2c")) return {};
  return protocol;
}

Result<std::string> upstream_head(const RequestHead& head, const RelayOptions& options) {
  const std::string& target = options.target;
  if (target.empty() || !is_field_value(target) || target.find_first_of(" \t") != target.npos) {
    return Error(Errc::kInternal, "relay to a target with characters not allowed");
  }
  std::string out;
  out.reserve(512);
  out.append(head.method).append(" ").append(target).append(" HTTP/1.1\r\n");
  const bool unusual = has_unusual_connection(head.headers);
  for (const Header& header : head.headers) {
    if (is_one_of(kHopByHop, header.name) || is_dropped(options, header.name)) continue;
    if (unusual && is_named_in_connection(head.headers, header.name)) continue;
    append_checked(out, header.name, header.value);
  }
  for (const Header& header : options.add_headers) {
    if (!append_field(out, header.name, header.value)) {
      return Error(Errc::kInternal, "relay adds a header with characters not allowed");
    }
  }
  const std::string_view upgrade = wanted_upgrade(head);
  if (!upgrade.empty()) {
    out.append("Connection: Upgrade\r\n");
    append_checked(out, "Upgrade", upgrade);
  }
  if (head.chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else if (head.content_length) {
    out.append("Content-Length: ");
    append_number(out, *head.content_length);
    out.append("\r\n");
  }
  out.append("\r\n");
  return out;
}

void append_reply_fields(std::string& out, const ResponseHead& head) {
  constexpr std::array<std::string_view, 2> kOurs = {"Date", "X-Request-ID"};
  const bool unusual = has_unusual_connection(head.headers);
  for (const Header& header : head.headers) {
    if (is_one_of(kHopByHop, header.name) || is_one_of(kOurs, header.name)) continue;
    if (unusual && is_named_in_connection(head.headers, header.name)) continue;
    append_checked(out, header.name, header.value);
  }
}

}  // namespace glovebox::net
