// Destination: which port of which sandbox a request is for. Three ways say it (headers, host name,
// path) and all end here, so that there is one place where it is decided and checked.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "net/http.h"

namespace glovebox::gateway {

struct Destination {
  SandboxId id;
  std::uint16_t port = 0;
  std::string_view target;  // What the program inside is asked for. Borrows from the head.
  std::string_view prefix;  // What was taken off the path: "/sandboxes/sb-…/proxy/80"; or empty.
};

// Domains whose names PORT-ID.DOMAIN lead to sandboxes; lower case, no dot at the ends.
using Domains = std::vector<std::string>;

// Whether the request is meant for a sandbox's port. True also when it says so wrongly: it must not
// reach another API then.
bool claims(const net::RequestHead& head, const Domains& domains);

// For what claims() is true of. In this order:
//   headers  Glovebox-Sandbox-Id and Glovebox-Sandbox-Port
//   host     PORT-ID.DOMAIN, any case, with or without a port or one dot at the end
//   path     /sandboxes/ID/proxy/PORT/…  exactly so: no escapes, no empty or dot segments before …
// The rest of the target goes on byte for byte. kInvalid for headers that make no sense; kNotFound
// for a path whose id or port has not the form of one, as for a sandbox that is not there.
Result<Destination> find(const net::RequestHead& head, const Domains& domains);

}  // namespace glovebox::gateway
