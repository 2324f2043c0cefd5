#include "agent/common/reply.h"

#include <cerrno>

#include "agent/common/json_writer.h"
#include "async/coro.h"

namespace glovebox::agent {

int http_status(const Error& error) noexcept {
  switch (error.code()) {
    case Errc::kInvalid: return 400;
    case Errc::kUnauthorized: return 401;
    case Errc::kTooLarge: return 413;
    case Errc::kDenied: return 403;
    case Errc::kNotFound: return 404;
    case Errc::kConflict: return 409;
    case Errc::kExhausted:
      if (error.sys_errno() == ENOSPC || error.sys_errno() == EDQUOT) return 507;
      return 429;
    case Errc::kInternal: return 500;
    case Errc::kUnavailable: return 503;
    case Errc::kTimeout: return 504;
  }
  return 500;
}

std::string error_json(const Error& error) {
  JsonWriter json;
  json.begin('{').key("code").string(to_string(error.code()));
  json.key("message").string(error.text()).key("details").begin('{').end('}').end('}');
  return std::move(json).take();
}

net::Response json_reply(int status, std::string json) {
  net::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(json);
  return response;
}

net::Response no_content() {
  net::Response response;
  response.status = 204;
  return response;
}

net::Response error_reply(const Error& error) {
  net::Response response = json_reply(http_status(error), error_json(error));
  if (response.status == 429 || response.status == 503) response.headers.add("Retry-After", "1");
  return response;
}

Task<Result<std::string>> read_json_body(net::Exchange& exchange, std::size_t bytes_max) {
  Result<std::string> body = co_await exchange.read_whole_body(bytes_max);
  if (!body && body.error().code() == Errc::kExhausted) {
    co_return Error(Errc::kTooLarge,
                    "the body may have " + std::to_string(bytes_max) + " bytes at most");
  }
  co_return body;
}

}  // namespace glovebox::agent
