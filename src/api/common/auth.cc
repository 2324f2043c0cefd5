#include "api/common/auth.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace glovebox::api {
namespace {

constexpr std::string_view kKeyPrefix = "gbx_";

// RFC 9110, 11.1: the scheme's name is case-insensitive, and one or more spaces follow.
std::optional<std::string_view> bearer(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!istarts_with(authorization, kScheme)) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  const std::size_t begin = authorization.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  return authorization.substr(begin);
}

}  // namespace

Authenticator::Authenticator(sandbox::ApiKeys& keys, std::vector<std::uint32_t> socket_uids)
    : keys_(keys), socket_uids_(std::move(socket_uids)) {
  socket_uids_.push_back(0);
  socket_uids_.push_back(::geteuid());
}

Result<Caller> Authenticator::check(const net::RequestHead& head, const net::Peer& peer) const {
  if (peer.local) {
    if (std::ranges::find(socket_uids_, peer.uid) == socket_uids_.end()) {
      return Error(Errc::kDenied, "this user may not use the socket; see socket_uids");
    }
    return Caller{"uid " + std::to_string(peer.uid), Caller::By::kSocket};
  }
  if (head.headers.has("X-API-Key")) {
    GB_TRY_ASSIGN(const sandbox::ApiKey key, keys_.verify(head.headers.get("X-API-Key")));
    return Caller{key.id, Caller::By::kApiKeyHeader};
  }
  const auto token = bearer(head.headers.get("Authorization"));
  if (!token) {
    return Error(Errc::kUnauthorized,
                 "an API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY");
  }
  GB_TRY_ASSIGN(const sandbox::ApiKey key, keys_.verify(*token));
  return Caller{key.id, Caller::By::kBearer};
}

std::vector<std::string> key_headers(const net::RequestHead& head, Caller::By by) {
  std::vector<std::string> names;
  if (head.headers.has("X-API-Key")) names.emplace_back("X-API-Key");
  for (const net::Header& header : head.headers) {
    if (!iequals(header.name, "Authorization")) continue;
    const auto token = bearer(header.value);
    if (by == Caller::By::kBearer || (token && token->starts_with(kKeyPrefix))) {
      names.emplace_back("Authorization");
      break;
    }
  }
  return names;
}

}  // namespace glovebox::api
