#include "agent/common/json_fields.h"

#include <algorithm>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <set>

namespace glovebox::agent {
namespace {

namespace json = boost::json;

constexpr std::size_t kDepthMax = 16;

// Boost.JSON keeps the last of two equal keys; two readers that differ there can be played
// against each other, so this pass over the text finds them first.
class DuplicateKeys {
 public:
  constexpr static std::size_t max_object_size = std::size_t(-1);
  constexpr static std::size_t max_array_size = std::size_t(-1);
  constexpr static std::size_t max_key_size = std::size_t(-1);
  constexpr static std::size_t max_string_size = std::size_t(-1);
  using Code = json::error_code;

  const std::string& duplicate() const { return duplicate_; }

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Code&) {
    keys_.pop_back();
    return true;
  }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_key_part(json::string_view part, std::size_t, Code&) {
    key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, Code& ec) {
    key_.append(part.data(), part.size());
    const bool fresh = keys_.back().insert(key_).second;
    if (!fresh) {
      duplicate_ = key_;
      ec = json::error::syntax;
    }
    key_.clear();
    return fresh;
  }
  bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_string(json::string_view, std::size_t, Code&) { return true; }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
  bool on_double(double, json::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string key_;
  std::string duplicate_;
};

json::parse_options options() {
  json::parse_options opt;
  opt.max_depth = kDepthMax;
  return opt;
}

Result<void> check_keys(std::string_view text) {
  json::basic_parser<DuplicateKeys> parser(options());
  json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!parser.handler().duplicate().empty()) {
    return Error(Errc::kInvalid, "\"" + parser.handler().duplicate() + "\" is there twice");
  }
  if (ec) return Error(Errc::kInvalid, "the body is not JSON: " + ec.message());
  if (used != text.size()) return Error(Errc::kInvalid, "the body is more than one JSON value");
  return {};
}

std::string to_string(const json::string& text) { return {text.data(), text.size()}; }

}  // namespace

struct JsonFields::Impl {
  json::object object;
  std::set<std::string, std::less<>> asked;
  std::optional<Error> fault;

  const json::value* find(std::string_view name) {
    asked.insert(std::string(name));
    return peek(name);
  }
  const json::value* peek(std::string_view name) const {
    const json::value* value = object.if_contains(json::string_view(name.data(), name.size()));
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  void fail(std::string_view name, std::string_view what) {
    if (fault) return;
    fault = Error(Errc::kInvalid, "\"" + std::string(name) + "\" " + std::string(what));
  }
};

JsonFields::JsonFields(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JsonFields::JsonFields(JsonFields&&) noexcept = default;
JsonFields& JsonFields::operator=(JsonFields&&) noexcept = default;
JsonFields::~JsonFields() = default;

Result<JsonFields> JsonFields::parse(std::string_view text) {
  GB_TRY(check_keys(text));
  json::error_code ec;
  json::value value = json::parse(json::string_view(text.data(), text.size()), ec, {}, options());
  if (ec) return Error(Errc::kInvalid, "the body is not JSON: " + ec.message());
  if (!value.is_object()) return Error(Errc::kInvalid, "the body must be a JSON object");
  auto impl = std::make_unique<Impl>();
  impl->object = std::move(value.get_object());
  return JsonFields(std::move(impl));
}

bool JsonFields::has(std::string_view name) const { return impl_->peek(name) != nullptr; }

bool JsonFields::is_text(std::string_view name) const {
  const json::value* value = impl_->peek(name);
  return value != nullptr && value->is_string();
}

bool JsonFields::is_boolean(std::string_view name) const {
  const json::value* value = impl_->peek(name);
  return value != nullptr && value->is_bool();
}

std::optional<std::string> JsonFields::any_text(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return to_string(value->get_string());
  impl_->fail(name, "must be a string");
  return std::nullopt;
}

std::optional<std::string> JsonFields::text(std::string_view name) {
  std::optional<std::string> text = any_text(name);
  if (text && text->find('\0') != std::string::npos) {
    impl_->fail(name, "must not contain NUL");
    return std::nullopt;
  }
  return text;
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  impl_->fail(name, "must be true or false");
  return std::nullopt;
}

std::optional<double> JsonFields::number(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->to_number<double>();
    if (std::isfinite(number)) return number;
  }
  impl_->fail(name, "must be a number");
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  impl_->fail(name, "must be an integer");
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonFields::texts(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> list;
  const json::array* array = value->if_array();
  if (array != nullptr) {
    list.reserve(array->size());
    for (const json::value& item : *array) {
      const json::string* text = item.if_string();
      if (text == nullptr) break;
      if (text->find('\0') != json::string::npos) {
        impl_->fail(name, "must not contain NUL");
        return std::nullopt;
      }
      list.push_back(to_string(*text));
    }
  }
  if (array != nullptr && list.size() == array->size()) return list;
  impl_->fail(name, "must be an array of strings");
  return std::nullopt;
}

std::optional<std::vector<std::pair<std::string, std::string>>> JsonFields::text_map(
    std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> map;
  const json::object* object = value->if_object();
  if (object != nullptr) {
    map.reserve(object->size());
    for (const json::key_value_pair& member : *object) {
      const json::string* text = member.value().if_string();
      if (text == nullptr) break;
      map.emplace_back(std::string(member.key()), to_string(*text));
    }
  }
  if (object != nullptr && map.size() == object->size()) return map;
  impl_->fail(name, "must be an object of strings");
  return std::nullopt;
}

std::optional<JsonFields> JsonFields::object(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) {
    auto impl = std::make_unique<Impl>();
    impl->object = value->get_object();
    return JsonFields(std::move(impl));
  }
  impl_->fail(name, "must be an object");
  return std::nullopt;
}

void JsonFields::fail(std::string_view name, std::string_view what) { impl_->fail(name, what); }

Result<void> JsonFields::finish() {
  if (impl_->fault) return *impl_->fault;
  for (const json::key_value_pair& member : impl_->object) {
    const std::string name(member.key());
    if (!impl_->asked.contains(name)) {
      return Error(Errc::kInvalid, "\"" + name + "\" is not a field of this request");
    }
  }
  return {};
}

}  // namespace glovebox::agent
