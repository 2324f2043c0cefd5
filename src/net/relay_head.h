// What of a head goes past a relay.

#pragma once

#include <string>

#include "net/head.h"
#include "net/http.h"
#include "net/relay.h"

namespace glovebox::net {

// The request as the upstream gets it, with its empty line, in place of what `out` holds.
// Hop-by-hop fields stay here (RFC 9110, 7.6.1), as do those that `options` drops or replaces.
Result<void> upstream_head(std::string& out, const RequestHead& head, const RelayOptions& options);

// The protocol that the client asks to switch to, if we pass such a wish on; else empty.
std::string_view wanted_upgrade(const RequestHead& head);

// Appends the fields of a reply that go on to the client. Framing and Date are not among them.
void append_reply_fields(std::string& out, const ResponseView& head);

}  // namespace glovebox::net
