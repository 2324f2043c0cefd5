// Replies of the agent: JSON, and errors in the form all of Glovebox uses.

#pragma once

#include <string>
#include <string_view>

#include "async/task.h"
#include "base/error.h"
#include "base/result.h"
#include "net/http.h"
#include "net/server.h"

namespace glovebox::agent {

net::Response json_reply(int status, std::string json);
net::Response no_content();

// The status is the code's, but a full disk is 507.
net::Response error_reply(const Error& error);
int http_status(const Error& error) noexcept;
std::string error_json(const Error& error);

// The whole body of a request; kTooLarge when it is longer.
Task<Result<std::string>> read_json_body(net::Exchange& exchange, std::size_t bytes_max);

}  // namespace glovebox::agent
