// JsonWriter builds a JSON text front to back. It checks nothing: the caller keeps the grammar.
//
//   JsonWriter json;
//   json.begin('{').key("pid").number(7).key("tag").string(tag).end('}');

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glovebox::agent {

class JsonWriter {
 public:
  JsonWriter& begin(char bracket);  // '{' or '['
  JsonWriter& end(char bracket);
  JsonWriter& key(std::string_view name);     // `name` needs no escaping.
  JsonWriter& string(std::string_view text);  // Bytes that are not UTF-8 become U+FFFD.
  JsonWriter& base64(std::string_view bytes);
  JsonWriter& number(std::int64_t value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // A whole value, written as it is.

  const std::string& text() const noexcept { return out_; }
  std::string take() && { return std::move(out_); }

 private:
  void separate();

  std::string out_;
  bool comma_ = false;
};

}  // namespace glovebox::agent
