#include "gateway/destination.h"

#include <algorithm>
#include <cctype>

#include "api/common/routes.h"
#include "base/text.h"

namespace glovebox::gateway {
namespace {

constexpr std::string_view kIdHeader = "Glovebox-Sandbox-Id";
constexpr std::string_view kPortHeader = "Glovebox-Sandbox-Port";
constexpr std::string_view kRoot = "/sandboxes/";
constexpr std::string_view kProxy = "/proxy/";

struct PathParts {
  std::string_view id;
  std::string_view port;
  std::string_view prefix;
  std::string_view rest;  // From the slash or '?' after the port.
};

std::optional<PathParts> split_path(std::string_view target) {
  if (!target.starts_with(kRoot)) return std::nullopt;
  std::string_view after = target.substr(kRoot.size());
  const std::size_t id_size = after.find_first_of("/?");
  if (id_size == std::string_view::npos) return std::nullopt;
  const std::string_view id = after.substr(0, id_size);
  after.remove_prefix(id_size);
  if (!after.starts_with(kProxy)) return std::nullopt;
  after.remove_prefix(kProxy.size());
  const std::size_t port_size = std::min(after.find_first_of("/?"), after.size());
  const std::string_view port = after.substr(0, port_size);
  const std::string_view rest = after.substr(port_size);
  return PathParts{id, port, target.substr(0, target.size() - rest.size()), rest};
}

struct HostParts {
  SandboxId id;
  std::uint16_t port;
};

std::string_view host_without_port(std::string_view host) {
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

std::optional<HostParts> split_host(std::string_view host, const Domains& domains) {
  host = host_without_port(host);
  // "1-sb-" and 20 more; most hosts end here.
  const std::size_t dot = host.find('.');
  if (dot == std::string_view::npos || dot < 25) return std::nullopt;
  const std::string_view domain = host.substr(dot + 1);
  if (std::ranges::none_of(domains, [&](const auto& d) { return iequals(d, domain); })) {
    return std::nullopt;
  }
  std::string label(host.substr(0, dot));
  std::ranges::transform(label, label.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t dash = label.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto port = api::parse_port(std::string_view(label).substr(0, dash));
  auto id = api::parse_sandbox_id(std::string_view(label).substr(dash + 1));
  if (!port || !id) return std::nullopt;
  return HostParts{*std::move(id), *port};
}

// The only header of that name, or nothing.
std::optional<std::string_view> single(const net::Headers& headers, std::string_view name) {
  std::optional<std::string_view> value;
  for (const net::Header& header : headers) {
    if (!iequals(header.name, name)) continue;
    if (value) return std::nullopt;
    value = header.value;
  }
  return value;
}

Result<Destination> from_headers(const net::RequestHead& head) {
  const auto id_text = single(head.headers, kIdHeader);
  const auto port_text = single(head.headers, kPortHeader);
  if (!id_text || !port_text) {
    return Error(Errc::kInvalid,
                 "Glovebox-Sandbox-Id and Glovebox-Sandbox-Port must both be there, once each");
  }
  auto id = api::parse_sandbox_id(*id_text);
  if (!id) return Error(Errc::kInvalid, "Glovebox-Sandbox-Id is not the id of a sandbox");
  const auto port = api::parse_port(*port_text);
  if (!port) return Error(Errc::kInvalid, "Glovebox-Sandbox-Port must be 1 to 65535");
  return Destination{*std::move(id), *port, head.target, {}};
}

}  // namespace

bool claims(const net::RequestHead& head, const Domains& domains) {
  if (split_path(head.target)) return true;
  if (head.headers.has(kIdHeader) || head.headers.has(kPortHeader)) return true;
  return split_host(head.headers.get("Host"), domains).has_value();
}

Result<Destination> find(const net::RequestHead& head, const Domains& domains) {
  if (head.headers.has(kIdHeader) || head.headers.has(kPortHeader)) return from_headers(head);
  if (auto host = split_host(head.headers.get("Host"), domains)) {
    return Destination{std::move(host->id), host->port, head.target, {}};
  }
  if (const auto path = split_path(head.target)) {
    auto id = api::parse_sandbox_id(path->id);
    const auto port = api::parse_port(path->port);
    if (id && port) return Destination{*std::move(id), *port, path->rest, path->prefix};
  }
  return Error(Errc::kNotFound, "no such sandbox");
}

}  // namespace glovebox::gateway
