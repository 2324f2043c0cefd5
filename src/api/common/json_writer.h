// JsonWriter builds JSON text. Every string is checked and escaped, so that what a sandbox or a
// client chose can never break the document or a terminal that shows it.

#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace glovebox::api {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);  // The next call writes its value.

  JsonWriter& text(std::string_view value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& real(double value);  // Infinities and NaN become null.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonWriter& integer(T value) {
    comma();
    out_ += std::to_string(value);
    return *this;
  }
  JsonWriter& text_map(const std::map<std::string, std::string>& map);

  std::string take() && { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void comma();

  std::string out_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace glovebox::api
