#include "agent/files/file_call.h"

#include <charconv>

#include "base/base64.h"

namespace glovebox::agent {
namespace {

// Padded or for URLs: a '+' in a query string is a space, so both are in use.
std::optional<std::string> decode(const std::string& text) {
  std::optional<std::string> bytes = from_base64(text);
  return bytes ? std::move(bytes) : from_base64url(text);
}

Result<std::string> pick(std::string_view name, std::optional<std::string> plain,
                         std::optional<std::string> encoded) {
  if (plain && encoded) {
    return Error(Errc::kInvalid,
                 "give either \"" + std::string(name) + "\" or its _b64 form, not both");
  }
  if (plain) return std::move(*plain);
  if (!encoded) return Error(Errc::kInvalid, "\"" + std::string(name) + "\" is missing");
  std::optional<std::string> bytes = decode(*encoded);
  if (!bytes) return Error(Errc::kInvalid, "\"" + std::string(name) + "_b64\" is not base64");
  return std::move(*bytes);
}

}  // namespace

Result<FileCall> FileCall::from_query(Users& users, const net::Target& target) {
  FileCall call;
  const std::string user = target.param("user").value_or("user");
  GB_TRY_ASSIGN(call.user_, users.find(user).context("\"user\""));
  std::optional<std::string> root;
  if (target.param("root") || target.param("root_b64")) {
    GB_TRY_ASSIGN(root, path_param(target, "root"));
  }
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  GB_TRY_ASSIGN(call.tree_, Tree::open(call.user_, root).context("\"root\""));
  return call;
}

Result<std::string> path_param(const net::Target& target, std::string_view name) {
  return pick(name, target.param(name), target.param(std::string(name) + "_b64"));
}

Result<std::string> path_member(JsonFields& json, const std::string& name) {
  return pick(name, json.text(name), json.text(name + "_b64"));
}

Result<bool> flag_param(const net::Target& target, std::string_view name, bool otherwise) {
  const auto value = target.param(name);
  if (!value) return otherwise;
  if (*value == "1" || *value == "true") return true;
  if (*value == "0" || *value == "false") return false;
  return Error(Errc::kInvalid, "\"" + std::string(name) + "\" must be 0 or 1");
}

Result<std::uint64_t> number_param(const net::Target& target, std::string_view name,
                                   std::uint64_t otherwise, std::uint64_t least,
                                   std::uint64_t most) {
  const auto text = target.param(name);
  if (!text) return otherwise;
  std::uint64_t number = 0;
  const auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (ec != std::errc() || end != text->data() + text->size() || number < least || number > most) {
    return Error(Errc::kInvalid, "\"" + std::string(name) + "\" must be " + std::to_string(least) +
                                     " to " + std::to_string(most));
  }
  return number;
}

}  // namespace glovebox::agent
