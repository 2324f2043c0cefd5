// The headers with which a request goes on into a sandbox.

#pragma once

#include <string>
#include <vector>

#include "api/common/auth.h"
#include "gateway/destination.h"
#include "net/server.h"

namespace glovebox::gateway {

struct ForwardedHeaders {
  std::vector<std::string> drop;
  net::Headers add;
};

// Takes off API keys and every Glovebox-* header; adds X-Forwarded-For (appended to what is there),
// -Proto, -Host, -Prefix and X-Request-ID. Host stays, so that what compares it with Origin works.
ForwardedHeaders forwarded_headers(const net::Exchange& exchange, const Destination& to,
                                   api::Caller::By by);

// The target in origin form: "" and "?x" get the slash that they lack.
std::string forwarded_target(std::string_view target);

}  // namespace glovebox::gateway
