// Strict reading of JSON bodies. A client's typing error must come back as an error that names the
// field, never be ignored: unknown fields, wrong types, duplicate names and broken UTF-8 are
// refused.

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace glovebox::api {

// One JSON document by RFC 8259, at most 16 levels deep, no duplicate names in an object.
// kInvalid says where it is wrong.
Result<boost::json::value> parse_json(std::string_view text);

// Takes one object apart. Each call reads the field of that name if it is there, and remembers the
// first fault; finish() returns it, or complains of fields that no call asked for.
class ObjectReader {
 public:
  // Borrows `value`. `path` names the object in errors: "" for the body, "limits" for a field's.
  explicit ObjectReader(const boost::json::value& value, std::string path = "");

  ObjectReader& text(std::string_view name, std::optional<std::string>& to);
  ObjectReader& whole_number(std::string_view name, std::optional<std::uint64_t>& to);
  ObjectReader& real(std::string_view name, std::optional<double>& to);
  // Seconds, which may be fractional; rounded to milliseconds.
  ObjectReader& seconds(std::string_view name, std::optional<Millis>& to);
  ObjectReader& nullable_seconds(std::string_view name, std::optional<Millis>& to);
  ObjectReader& text_map(std::string_view name, std::map<std::string, std::string>& to);
  // A nested object, or null when it is not there; read it with a reader of its own.
  const boost::json::value* object(std::string_view name);

  // What the caller finds wrong itself.
  void fail(std::string_view name, std::string_view why);
  std::string path_of(std::string_view name) const;

  Result<void> finish();

 private:
  const boost::json::value* find(std::string_view name);

  const boost::json::object* object_ = nullptr;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> fault_;
};

}  // namespace glovebox::api
