#include "api/common/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace glovebox::api {

void JsonWriter::comma() {
  if (!first_ && !after_key_) out_ += ',';
  first_ = false;
  after_key_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  comma();
  out_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  comma();
  append_json_string(out_, name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  comma();
  append_json_string(out_, value);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  comma();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  comma();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  comma();
  char digits[32];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::text_map(const std::map<std::string, std::string>& map) {
  begin_object();
  for (const auto& [name, value] : map) key(name).text(value);
  return end_object();
}

}  // namespace glovebox::api
