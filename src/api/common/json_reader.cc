#include "api/common/json_reader.h"

#include <algorithm>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/text.h"

namespace glovebox::api {
namespace {

namespace json = boost::json;

constexpr std::size_t kDepthMax = 16;

// Builds the value as json::parser does, and looks at the names on the way: the ready-made parser
// silently keeps the last of two equal ones.
class Handler {
 public:
  static constexpr std::size_t max_object_size = 100'000;
  static constexpr std::size_t max_array_size = 100'000;
  static constexpr std::size_t max_key_size = 1 << 20;
  static constexpr std::size_t max_string_size = 64 << 20;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    names_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t n, json::error_code&) {
    names_.pop_back();
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view s, std::size_t, json::error_code&) {
    key_.append(s.data(), s.size());
    stack_.push_chars(s);
    return true;
  }
  bool on_key(json::string_view s, std::size_t, json::error_code& ec) {
    key_.append(s.data(), s.size());
    if (!names_.back().insert(key_).second) {
      duplicate_ = key_;
      ec = json::error::exception;
      return false;
    }
    key_.clear();
    stack_.push_key(s);
    return true;
  }
  bool on_string_part(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_string(s);
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t i, json::string_view, json::error_code&) {
    stack_.push_int64(i);
    return true;
  }
  bool on_uint64(std::uint64_t u, json::string_view, json::error_code&) {
    stack_.push_uint64(u);
    return true;
  }
  bool on_double(double d, json::string_view, json::error_code&) {
    stack_.push_double(d);
    return true;
  }
  bool on_bool(bool b, json::error_code&) {
    stack_.push_bool(b);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  void reset() { stack_.reset(); }
  json::value release() { return stack_.release(); }
  const std::optional<std::string>& duplicate() const { return duplicate_; }

 private:
  json::value_stack stack_;
  std::vector<std::set<std::string>> names_;
  std::string key_;
  std::optional<std::string> duplicate_;
};

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 128;
  std::string out;
  append_json_string(out, text.substr(0, kShown));
  return out;
}

// A field's name as it is when it is an ordinary one.
std::string shown(std::string_view name) {
  const bool plain = name.size() <= 128 && std::ranges::all_of(name, [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
                     });
  return plain && !name.empty() ? std::string(name) : quoted(name);
}

}  // namespace

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<Handler> parser(options);
  parser.handler().reset();
  json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (const auto& name = parser.handler().duplicate()) {
    return Error(Errc::kInvalid, "body: has the field " + shown(*name) + " twice");
  }
  if (!ec && used < text.size()) ec = json::error::extra_data;
  if (ec) {
    return Error(Errc::kInvalid,
                 "body: not JSON: " + ec.message() + " at byte " + std::to_string(used));
  }
  return parser.handler().release();
}

ObjectReader::ObjectReader(const json::value& value, std::string path)
    : object_(value.if_object()), path_(std::move(path)) {
  if (object_ == nullptr) {
    fault_.emplace(Errc::kInvalid, (path_.empty() ? "body" : path_) + ": must be an object");
  }
}

std::string ObjectReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void ObjectReader::fail(std::string_view name, std::string_view why) {
  if (fault_) return;
  fault_.emplace(Errc::kInvalid, shown(path_of(name)) + ": " + std::string(why));
}

const json::value* ObjectReader::find(std::string_view name) {
  asked_.emplace(name);
  if (object_ == nullptr) return nullptr;
  const auto it = object_->find(json::string_view(name.data(), name.size()));
  return it == object_->end() ? nullptr : &it->value();
}

ObjectReader& ObjectReader::text(std::string_view name, std::optional<std::string>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return *this;
  const json::string* string = value->if_string();
  if (string == nullptr) {
    fail(name, "must be a string");
  } else {
    to.emplace(string->data(), string->size());
  }
  return *this;
}

ObjectReader& ObjectReader::whole_number(std::string_view name, std::optional<std::uint64_t>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return *this;
  if (const std::uint64_t* u = value->if_uint64()) {
    to = *u;
  } else if (const std::int64_t* i = value->if_int64(); i != nullptr && *i >= 0) {
    to = static_cast<std::uint64_t>(*i);
  } else {
    fail(name, "must be a whole number, 0 or more");
  }
  return *this;
}

ObjectReader& ObjectReader::real(std::string_view name, std::optional<double>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return *this;
  if (!value->is_number()) {
    fail(name, "must be a number");
    return *this;
  }
  const double number = value->to_number<double>();
  if (std::isfinite(number)) {
    to = number;
  } else {
    fail(name, "is too large");
  }
  return *this;
}

ObjectReader& ObjectReader::seconds(std::string_view name, std::optional<Millis>& to) {
  std::optional<double> number;
  real(name, number);
  if (!number) return *this;
  // The limits that mean something are the domain's; these keep the arithmetic sound.
  constexpr double kMax = 1e12;
  if (*number < 0 || *number > kMax) {
    fail(name, "must be a number of seconds, 0 or more and not absurdly many");
  } else {
    to = Millis(std::llround(*number * 1000));
  }
  return *this;
}

ObjectReader& ObjectReader::nullable_seconds(std::string_view name, std::optional<Millis>& to) {
  const json::value* value = find(name);
  if (value == nullptr || value->is_null()) return *this;
  return seconds(name, to);
}

ObjectReader& ObjectReader::text_map(std::string_view name,
                                     std::map<std::string, std::string>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return *this;
  const json::object* object = value->if_object();
  if (object == nullptr) {
    fail(name, "must be an object of strings");
    return *this;
  }
  for (const auto& [key, each] : *object) {
    const std::string key_text(key.data(), key.size());
    const json::string* string = each.if_string();
    if (string == nullptr) {
      fail(std::string(name) + "." + key_text, "must be a string");
      return *this;
    }
    to.emplace(key_text, std::string(string->data(), string->size()));
  }
  return *this;
}

const json::value* ObjectReader::object(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    fail(name, "must be an object");
    return nullptr;
  }
  return value;
}

Result<void> ObjectReader::finish() {
  if (!fault_) {
    for (const auto& pair : *object_) {
      const std::string_view name(pair.key().data(), pair.key().size());
      if (!asked_.contains(name)) {
        fail(name, "is not a known field");
        break;
      }
    }
  }
  if (fault_) return *std::move(fault_);
  return {};
}

}  // namespace glovebox::api
