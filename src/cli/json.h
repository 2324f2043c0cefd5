// Reading what the daemon answers, without trusting its shape, and writing JSON for people's tools.

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace glovebox::cli {

// kInternal, with the beginning of the text, when it is not a JSON object.
Result<boost::json::object> parse_object(std::string_view text);

// Of another type or absent: "", 0, false.
std::string text_at(const boost::json::object& object, std::string_view key);
double number_at(const boost::json::object& object, std::string_view key);
bool flag_at(const boost::json::object& object, std::string_view key);
// Empty when it is not an array or object.
const boost::json::array& array_at(const boost::json::object& object, std::string_view key);
const boost::json::object& object_at(const boost::json::object& object, std::string_view key);

// Compact, on one line, with every control character escaped (also those beyond ASCII, which
// Boost's own serializer passes on to the terminal).
std::string to_text(const boost::json::value& value);

// {"code": …, "message": …}, as the daemon's own errors are.
std::string error_json(const Error& error);

}  // namespace glovebox::cli
