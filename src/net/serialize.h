// Writing heads: one flat string, since a head is a few hundred bytes and one send is the goal.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace glovebox::net {

// A name or value that would not be one field on the wire: a handler's mistake, or an attempt to
// split the reply.
bool is_field_name(std::string_view name) noexcept;
bool is_field_value(std::string_view value) noexcept;

void append_number(std::string& out, std::uint64_t number);
void append_status_line(std::string& out, int status);
// False, and nothing appended, when it is not one.
bool append_field(std::string& out, std::string_view name, std::string_view value);

// "1a\r\n"
std::string_view chunk_header(std::size_t size, char (&space)[24]) noexcept;

// A 128-bit random number in hexadecimal. Unique, not secret.
std::string make_request_id();
// What we take from a client: [A-Za-z0-9._-]{1,128}.
bool is_request_id(std::string_view id) noexcept;

// {"code":…,"message":…,"details":{}}. `message` is ours: printable ASCII, else replaced by '?'.
std::string error_body(std::string_view code, std::string_view message);
std::string_view error_code_for(int status) noexcept;

}  // namespace glovebox::net
