#include "net/relay_head.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "net/serialize.h"
#include "net/text.h"

namespace glovebox::net {
namespace {

// Message framing is each connection's own, so that Content-Length is in the list as well.
constexpr std::array<std::string_view, 10> kHopByHop = {
    "Connection", "Content-Length",      "Keep-Alive", "Proxy-Connection",  "Proxy-Authenticate",
    "TE",         "Proxy-Authorization", "Trailer",    "Transfer-Encoding", "Upgrade"};

constexpr std::array<std::string_view, 2> kOursInReplies = {"Date", "X-Request-ID"};

// Which lengths occur: most fields are told apart by that alone.
constexpr std::uint32_t lengths_of(std::span<const std::string_view> names) {
  std::uint32_t out = 0;
  for (const std::string_view name : names) out |= 1U << name.size();
  return out;
}

bool is_one_of(std::span<const std::string_view> names, std::uint32_t lengths,
               std::string_view name) {
  if (name.size() > 31 || (lengths >> name.size() & 1) == 0) return false;
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view other) { return equal_ignoring_case(name, other); });
}

bool is_hop_by_hop(std::string_view name) {
  constexpr std::uint32_t kLengths = lengths_of(kHopByHop);
  return is_one_of(kHopByHop, kLengths, name);
}

bool is_ours_in_replies(std::string_view name) {
  constexpr std::uint32_t kLengths = lengths_of(kOursInReplies);
  return is_one_of(kOursInReplies, kLengths, name);
}

// Names in a Connection field are hop-by-hop too, but not the one by which a request is routed:
// a client could make the next hop see another request.
template <class Fields>
bool is_named_in_connection(const Fields& fields, std::string_view name) {
  if (equal_ignoring_case(name, "Host")) return false;
  for (const auto& field : fields) {
    if (equal_ignoring_case(field.name, "Connection") && list_has(field.value, name)) return true;
  }
  return false;
}

template <class Fields>
bool has_unusual_connection(const Fields& fields) {
  for (const auto& field : fields) {
    if (!equal_ignoring_case(field.name, "Connection")) continue;
    const bool usual = equal_ignoring_case(field.value, "keep-alive") ||
                       equal_ignoring_case(field.value, "close") ||
                       equal_ignoring_case(field.value, "upgrade");
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

Result<void> upstream_head(std::string& out, const RequestHead& head, const RelayOptions& options) {
  const std::string& target = options.target;
  if (target.empty() || !is_field_value(target) || target.find_first_of(" \t") != target.npos) {
    return Error(Errc::kInternal, "relay to a target with characters not allowed");
  }
  out.clear();
  out.append(head.method).append(" ").append(target).append(" HTTP/1.1\r\n");
  const bool unusual = has_unusual_connection(head.headers);
  for (const Header& header : head.headers) {
    if (is_hop_by_hop(header.name) || is_dropped(options, header.name)) continue;
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
  return {};
}

void append_reply_fields(std::string& out, const ResponseView& head) {
  const bool unusual = has_unusual_connection(head.fields);
  for (const FieldView& field : head.fields) {
    if (is_hop_by_hop(field.name) || is_ours_in_replies(field.name)) continue;
    if (unusual && is_named_in_connection(head.fields, field.name)) continue;
    append_checked(out, field.name, field.value);
  }
}

}  // namespace glovebox::net
