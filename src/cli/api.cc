#include "cli/api.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "async/coro.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

constexpr std::chrono::seconds kConnectTimeout{10};
constexpr std::size_t kReplyBytesMax = 64 << 20;  // A ls of a thousand with large labels.

// Blocks, which is fine: a command does nothing else meanwhile.
Result<std::vector<std::string>> resolve(const std::string& host) {
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  ::addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failed != 0) {
    return Error(Errc::kUnavailable, "look up '" + host + "': " + ::gai_strerror(failed));
  }
  std::vector<std::string> out;
  for (const ::addrinfo* a = list; a != nullptr; a = a->ai_next) {
    std::array<char, 64> text{};
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      out.emplace_back(text.data());
    }
  }
  ::freeaddrinfo(list);
  return out;
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

Task<Result<net::Stream>> connect_to(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) {
    co_return co_await net::Stream::connect_unix(endpoint.unix_path, after(kConnectTimeout));
  }
  std::vector<std::string> addresses{endpoint.host};
  if (endpoint.host == "localhost") {
    // Not by the resolver: it may be missing where the network is.
    addresses = {"127.0.0.1", "::1"};
  } else if (!is_numeric(endpoint.host)) {
    GB_CO_TRY_ASSIGN(addresses, resolve(endpoint.host));
  }
  Result<net::Stream> stream = Error(Errc::kUnavailable, "no address for " + endpoint.host);
  for (const std::string& address : addresses) {
    stream = co_await net::Stream::connect_tcp(address, endpoint.port, after(kConnectTimeout));
    if (stream) break;
  }
  if (stream) {
    const int on = 1;
    // A vanished host must not leave an attached command waiting for ever.
    ::setsockopt(stream->fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    const int idle_s = 30;
    ::setsockopt(stream->fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  }
  co_return stream;
}

Errc code_of_status(int status) noexcept {
  switch (status) {
    case 401: return Errc::kUnauthorized;
    case 403: return Errc::kDenied;
    case 404: return Errc::kNotFound;
    case 409: return Errc::kConflict;
    case 413: return Errc::kTooLarge;
    case 429: return Errc::kExhausted;
    case 502:
    case 503: return Errc::kUnavailable;
    case 408:
    case 504: return Errc::kTimeout;
    default: return status >= 500 ? Errc::kInternal : Errc::kInvalid;
  }
}

Error not_running(const std::vector<Endpoint>& endpoints, const Error& last, bool denied) {
  std::string where;
  for (const Endpoint& endpoint : endpoints) {
    where += (where.empty() ? "" : " or ") + endpoint.describe();
  }
  if (denied) {
    return Error(Errc::kDenied, "Glovebox's socket is there but this user may not use it (" +
                                    where +
                                    "): run as root, add your user id to socket_uids, or use --url "
                                    "http://127.0.0.1:7070 with GLOVEBOX_API_KEY");
  }
  return Error(Errc::kUnavailable, "Glovebox is not running at " + where +
                                       ": start it with `sudo glovebox up`, or name another "
                                       "address with --url or GLOVEBOX_URL (" +
                                       last.text() + ")");
}

}  // namespace

Error error_of_reply(int status, std::string_view body) {
  std::string message;
  const Result<boost::json::object> object = parse_object(body);
  if (object) message = text_at(*object, "message");
  if (message.empty()) message = "HTTP status " + std::to_string(status);
  if (status == 401) {
    message += "; give the key with GLOVEBOX_API_KEY or --api-key (`glovebox up` prints it)";
  }
  return Error(code_of_status(status), std::move(message));
}

Api::Api(std::vector<Endpoint> endpoints, Redacted key, Interrupt& interrupt)
    : endpoints_(std::move(endpoints)), key_(std::move(key)), interrupt_(interrupt) {}

Api::~Api() = default;

Task<Result<net::Stream>> Api::dial() {
  if (chosen_) {
    const Endpoint endpoint = *chosen_;
    co_return co_await connect_to(endpoint);
  }
  Error last(Errc::kUnavailable, "no address");
  bool denied = false;
  for (const Endpoint& endpoint : endpoints_) {
    Result<net::Stream> stream = co_await connect_to(endpoint);
    if (stream) {
      chosen_ = endpoint;
      co_return stream;
    }
    denied = denied || stream.error().code() == Errc::kDenied;
    last = std::move(stream).error();
  }
  co_return not_running(endpoints_, last, denied);
}

net::Headers Api::headers() const {
  net::Headers headers;
  headers.add("Host", host());
  headers.add("User-Agent", "glovebox/" GLOVEBOX_VERSION);
  if (!key_.empty()) headers.add("Authorization", "Bearer " + key_.reveal());
  return headers;
}

std::string Api::host() const { return (chosen_ ? *chosen_ : endpoints_.front()).host_header(); }

std::string Api::full_target(std::string_view target) const {
  return (chosen_ ? *chosen_ : endpoints_.front()).prefix + std::string(target);
}

std::string Api::address() const { return (chosen_ ? *chosen_ : endpoints_.front()).describe(); }

Task<Result<void>> Api::ensure_connected() {
  if (connection_ && connection_->reusable() && !connection_->stream().peer_gone()) {
    co_return Result<void>();
  }
  connection_.reset();
  Result<net::Stream> stream = co_await dial();
  if (!stream) co_return std::move(stream).error();
  connection_ = std::make_unique<net::ClientConnection>(std::move(*stream));
  co_return Result<void>();
}

Task<Result<std::string>> Api::call(std::string method, std::string target, std::string body,
                                    Clock::duration timeout) {
  net::Headers none;
  co_return co_await call_with(std::move(method), std::move(target), std::move(none),
                               std::move(body), timeout);
}

Task<Result<std::string>> Api::call_with(std::string method, std::string target, net::Headers more,
                                         std::string body, Clock::duration timeout) {
  const Result<void> connected = co_await ensure_connected();
  if (!connected) co_return connected.error();
  net::Headers all = headers();
  for (const net::Header& h : more) all.add(h.name, h.value);
  if (!body.empty()) all.add("Content-Type", "application/json");
  const std::string where = full_target(target);
  Result<net::Response> reply;
  {
    const Interrupt::Hook hook(interrupt_, [this] { connection_->stream().close(); });
    reply = co_await net::request(*connection_, method, where, all, body, kReplyBytesMax,
                                  after(timeout));
  }
  if (!reply) {
    connection_.reset();
    co_return std::move(reply).context(method + " " + target).error();
  }
  if (reply->status / 100 != 2) co_return error_of_reply(reply->status, reply->body);
  co_return std::move(reply->body);
}

}  // namespace glovebox::cli
