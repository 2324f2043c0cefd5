#include "cli/json.h"

#include <array>
#include <boost/json.hpp>
#include <charconv>

#include "base/text.h"
#include "cli/display.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

void append(std::string& out, const json::value& value) {
  if (value.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.get_object()) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, key);
      out += ':';
      append(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const json::value& element : value.get_array()) {
      if (!first) out += ',';
      first = false;
      append(out, element);
    }
    out += ']';
  } else if (value.is_string()) {
    append_json_string(out, value.get_string());
  } else if (value.is_double()) {
    // Boost writes 1E0 for 1.
    std::array<char, 32> text{};
    const auto [end, error] =
        std::to_chars(text.data(), text.data() + text.size(), value.get_double());
    out.append(text.data(), error == std::errc() ? end : text.data());
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

Result<json::object> parse_object(std::string_view text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) {
    return Error(Errc::kInternal,
                 "the answer is not a JSON object; is this Glovebox's address? It begins: " +
                     safe_text(text.substr(0, 80)));
  }
  return std::move(value.get_object());
}

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return std::string(value->get_string());
}

double number_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return 0;
  return value->to_number<double>();
}

bool flag_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::array& array_at(const json::object& object, std::string_view key) {
  static const json::array kEmpty;
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_array() ? value->get_array() : kEmpty;
}

const json::object& object_at(const json::object& object, std::string_view key) {
  static const json::object kEmpty;
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? value->get_object() : kEmpty;
}

std::string to_text(const json::value& value) {
  std::string out;
  append(out, value);
  return out;
}

std::string error_json(const Error& error) {
  json::object object;
  object["code"] = to_string(error.code());
  object["message"] = error.text();
  return to_text(object);
}

}  // namespace glovebox::cli
