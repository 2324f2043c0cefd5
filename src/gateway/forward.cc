#include "gateway/forward.h"

#include "base/text.h"

namespace glovebox::gateway {
namespace {

constexpr std::string_view kOurPrefix = "Glovebox-";

// "127.0.0.1:5123" without the port; "[::1]:5123" without port and brackets.
std::string_view address_only(std::string_view peer) {
  const std::size_t colon = peer.rfind(':');
  std::string_view host = peer.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

}  // namespace

ForwardedHeaders forwarded_headers(const net::Exchange& exchange, const Destination& to,
                                   api::Caller::By by) {
  const net::RequestHead& head = exchange.head();
  ForwardedHeaders out;
  out.drop = api::key_headers(head, by);
  std::string forwarded_for;
  for (const net::Header& header : head.headers) {
    if (istarts_with(header.name, kOurPrefix)) {
      out.drop.push_back(header.name);
    } else if (iequals(header.name, "X-Forwarded-For")) {
      if (!forwarded_for.empty()) forwarded_for += ", ";
      forwarded_for += header.value;
    }
  }
  for (const char* name : {"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
                           "X-Forwarded-Prefix", "X-Request-ID"}) {
    out.drop.emplace_back(name);
  }
  if (!exchange.peer().local) {
    if (!forwarded_for.empty()) forwarded_for += ", ";
    forwarded_for += address_only(exchange.peer().address);
  }
  if (!forwarded_for.empty()) out.add.add("X-Forwarded-For", std::move(forwarded_for));

  // Of a proxy in front of us, which alone knows them. Nothing here trusts them.
  const std::string_view host = head.headers.has("X-Forwarded-Host")
                                    ? head.headers.get("X-Forwarded-Host")
                                    : head.headers.get("Host");
  if (!host.empty()) out.add.add("X-Forwarded-Host", std::string(host));
  const std::string_view proto = head.headers.get("X-Forwarded-Proto");
  out.add.add("X-Forwarded-Proto", proto.empty() ? "http" : std::string(proto));
  if (!to.prefix.empty()) out.add.add("X-Forwarded-Prefix", std::string(to.prefix));
  out.add.add("X-Request-ID", exchange.request_id());
  return out;
}

std::string forwarded_target(std::string_view target) {
  std::string out;
  if (!target.starts_with('/') && target != "*") out += '/';
  return out.append(target);
}

}  // namespace glovebox::gateway
