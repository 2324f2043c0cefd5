// JsonFields reads the members of one JSON object, and refuses what nobody asked for.
//
// Getters return what is there, or nothing, and remember the first fault (a wrong type, a value
// out of range); finish() reports it, or else the first member that no getter named. A member
// that is null counts as absent.
//
//   GB_TRY_ASSIGN(auto json, JsonFields::parse(body));
//   const auto path = json.text("path");
//   GB_TRY(json.finish());

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace glovebox::agent {

class JsonFields {
 public:
  // kInvalid unless `text` is one JSON object in UTF-8, at most 16 levels deep, in which no object
  // has a key twice.
  static Result<JsonFields> parse(std::string_view text);

  JsonFields(JsonFields&&) noexcept;
  JsonFields& operator=(JsonFields&&) noexcept;
  ~JsonFields();

  bool has(std::string_view name) const;
  std::optional<std::string> text(std::string_view name);  // A string without NUL.
  std::optional<std::string> any_text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name);
  std::optional<std::vector<std::string>> texts(std::string_view name);  // An array of strings.
  // An object of strings.
  std::optional<std::vector<std::pair<std::string, std::string>>> text_map(std::string_view name);
  std::optional<JsonFields> object(std::string_view name);  // Its own finish() must be called.

  // For members that may have one of several types.
  bool is_text(std::string_view name) const;
  bool is_boolean(std::string_view name) const;

  void fail(std::string_view name, std::string_view what);  // `"name" what`
  Result<void> finish();

 private:
  struct Impl;
  explicit JsonFields(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::agent
