// Replies that every API of ours makes alike: JSON, and errors as {code, message, details}.

#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/http.h"

namespace glovebox::api {

int http_status(Errc code) noexcept;

net::Response json_response(int status, std::string body);

// `retry_after` of 0 sends no Retry-After.
net::Response error_response(const Error& error, std::chrono::seconds retry_after = {});
// For what is decided by HTTP and not by the domain. `details` is a JSON object.
net::Response error_response(int status, std::string_view code, std::string_view message,
                             std::string_view details = "{}");

}  // namespace glovebox::api
