#include "api/common/reply.h"

#include "base/text.h"

namespace glovebox::api {

int http_status(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalid: return 400;
    case Errc::kUnauthorized: return 401;
    case Errc::kDenied: return 403;
    case Errc::kNotFound: return 404;
    case Errc::kConflict: return 409;
    case Errc::kTooLarge: return 413;
    case Errc::kExhausted: return 429;
    case Errc::kInternal: return 500;
    case Errc::kUnavailable: return 503;
    case Errc::kTimeout: return 504;
  }
  return 500;
}

net::Response json_response(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response error_response(int status, std::string_view code, std::string_view message,
                             std::string_view details) {
  std::string body = R"({"code":)";
  append_json_string(body, code);
  body += R"(,"message":)";
  append_json_string(body, message);
  body.append(R"(,"details":)").append(details).append("}\n");
  net::Response response = json_response(status, std::move(body));
  // RFC 9110, 11.6.1: a 401 names what would be accepted.
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer realm=\"glovebox\"");
  return response;
}

net::Response error_response(const Error& error, std::chrono::seconds retry_after) {
  const std::string seconds = std::to_string(retry_after.count());
  const bool retry = retry_after.count() > 0;
  net::Response response =
      error_response(http_status(error.code()), to_string(error.code()), error.text(),
                     retry ? R"({"retry_after_s":)" + seconds + "}" : "{}");
  if (retry) response.headers.add("Retry-After", seconds);
  return response;
}

}  // namespace glovebox::api
