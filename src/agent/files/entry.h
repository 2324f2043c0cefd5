// Entry: what the API tells about one file. Of a link, it is about the link itself.

#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "agent/common/json_writer.h"
#include "agent/common/users.h"
#include "agent/files/tree.h"
#include "base/result.h"

namespace glovebox::agent {

void write_entry(JsonWriter& json, Users& users, const std::string& path, const struct stat& st,
                 std::string_view link_target);

// Stats what is at `place` and writes it. Needs the caller's rights (ActingAs).
Result<void> write_entry_at(JsonWriter& json, Users& users, const Place& place);
Result<std::string> entry_json(Users& users, const Place& place);

// "0644" to its bits; kInvalid for anything but one to four octal digits (five with a leading 0).
Result<mode_t> parse_mode(std::string_view text);

}  // namespace glovebox::agent
