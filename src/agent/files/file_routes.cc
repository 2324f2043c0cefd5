#include "agent/files/file_routes.h"

#include <utility>

#include "agent/common/event.h"
#include "agent/common/json_fields.h"
#include "agent/common/json_writer.h"
#include "agent/common/reply.h"
#include "agent/files/changes.h"
#include "agent/files/download.h"
#include "agent/files/entry.h"
#include "agent/files/file_call.h"
#include "agent/files/listing.h"
#include "agent/files/removal.h"
#include "agent/files/upload.h"
#include "agent/files/watch_stream.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kBodyMax = 64 << 10;

Task<Result<void>> answer(net::Exchange& exchange, std::string json) {
  net::Response reply = json_reply(200, std::move(json));
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<JsonFields>> read_fields(net::Exchange& exchange) {
  Result<std::string> body = co_await read_json_body(exchange, kBodyMax);
  if (!body) co_return std::move(body).error();
  co_return JsonFields::parse(*body);
}

Result<mode_t> mode_member(JsonFields& json, mode_t otherwise) {
  const auto text = json.text("mode");
  if (!text) return otherwise;
  return parse_mode(*text);
}

template <class Id, class Find>
Result<std::optional<Id>> id_member(JsonFields& json, const std::string& name, Find find) {
  std::optional<Id> id;
  const bool is_text = json.is_text(name);
  const auto number = is_text ? std::nullopt : json.integer(name);
  const auto text = is_text ? json.text(name) : std::nullopt;
  if (number && (*number < 0 || *number >= 0xffffffff)) {
    return Error(Errc::kInvalid, "\"" + name + "\" is no id");
  }
  if (number) id = static_cast<Id>(*number);
  if (text) {
    id = find(*text);
    if (!id) return Error(Errc::kInvalid, "\"" + name + "\": there is no \"" + *text + "\"");
  }
  return id;
}

Result<std::string> stat_json(FileCall& call, Users& users, const std::string& path) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  GB_TRY_ASSIGN(const Place place, call.tree().locate(path));
  return entry_json(users, place);
}

Result<Place> locate(FileCall& call, const std::string& path) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  return call.tree().locate(path);
}

}  // namespace

Task<Result<void>> FileRoutes::read(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(std::string path, path_param(target, "path"));
  Result<void> sent = co_await download(exchange, std::move(call), std::move(path));
  co_return sent;
}

Task<Result<void>> FileRoutes::write(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(std::string path, path_param(target, "path"));
  UploadOptions options;
  GB_CO_TRY_ASSIGN(options.parents, flag_param(target, "parents", false));
  if (const auto mode = target.param("mode")) {
    GB_CO_TRY_ASSIGN(options.mode, parse_mode(*mode));
  }
  Result<void> sent = co_await upload(exchange, users_, std::move(call), std::move(path), options);
  co_return sent;
}

Task<Result<void>> FileRoutes::remove(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(const std::string path, path_param(target, "path"));
  GB_CO_TRY_ASSIGN(const bool all, flag_param(target, "recursive", false));
  GB_CO_TRY_ASSIGN(Place place, locate(call, path));
  const Recursive recursive = all ? Recursive::kYes : Recursive::kNo;
  Result<void> removed = co_await agent::remove(call, std::move(place), recursive);
  if (!removed) co_return removed;
  net::Response reply = no_content();
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> FileRoutes::stat(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(const std::string path, path_param(target, "path"));
  GB_CO_TRY_ASSIGN(std::string json, stat_json(call, users_, path));
  Result<void> sent = co_await answer(exchange, std::move(json));
  co_return sent;
}

Task<Result<void>> FileRoutes::list(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(std::string path, path_param(target, "path"));
  ListOptions options;
  GB_CO_TRY_ASSIGN(options.depth, number_param(target, "depth", 1, 1, kListDepthMax));
  GB_CO_TRY_ASSIGN(options.limit, number_param(target, "limit", kListLimitMax, 1, kListLimitMax));
  options.cursor = target.param("cursor").value_or("");
  Result<std::string> json =
      co_await list_directory(call, users_, std::move(path), std::move(options));
  if (!json) co_return std::move(json).error();
  Result<void> sent = co_await answer(exchange, std::move(*json));
  co_return sent;
}

Task<Result<void>> FileRoutes::mkdir(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  Result<JsonFields> json = co_await read_fields(exchange);
  if (!json) co_return std::move(json).error();
  GB_CO_TRY_ASSIGN(const std::string path, path_member(*json, "path"));
  GB_CO_TRY_ASSIGN(const mode_t mode, mode_member(*json, 0755));
  const bool parents = json->boolean("parents").value_or(false);
  GB_CO_TRY(json->finish());
  GB_CO_TRY_ASSIGN(std::string entry, make_directory(call, users_, path, mode, parents));
  Result<void> sent = co_await answer(exchange, std::move(entry));
  co_return sent;
}

Task<Result<void>> FileRoutes::move(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  Result<JsonFields> json = co_await read_fields(exchange);
  if (!json) co_return std::move(json).error();
  GB_CO_TRY_ASSIGN(const std::string from, path_member(*json, "from"));
  GB_CO_TRY_ASSIGN(const std::string to, path_member(*json, "to"));
  const bool replace = json->boolean("replace").value_or(true);
  GB_CO_TRY(json->finish());
  GB_CO_TRY_ASSIGN(std::string entry, move_file(call, users_, from, to, replace));
  Result<void> sent = co_await answer(exchange, std::move(entry));
  co_return sent;
}

Task<Result<void>> FileRoutes::chmod(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  Result<JsonFields> json = co_await read_fields(exchange);
  if (!json) co_return std::move(json).error();
  GB_CO_TRY_ASSIGN(const std::string path, path_member(*json, "path"));
  Ownership wanted;
  if (const auto mode = json->text("mode")) {
    GB_CO_TRY_ASSIGN(wanted.mode, parse_mode(*mode));
  }
  const auto find_user = [this](const std::string& name) { return users_.uid_of(name); };
  const auto find_group = [this](const std::string& name) { return users_.gid_of(name); };
  GB_CO_TRY_ASSIGN(wanted.owner, id_member<uid_t>(*json, "owner", find_user));
  GB_CO_TRY_ASSIGN(wanted.group, id_member<gid_t>(*json, "group", find_group));
  GB_CO_TRY(json->finish());
  GB_CO_TRY_ASSIGN(std::string entry, change_ownership(call, users_, path, wanted));
  Result<void> sent = co_await answer(exchange, std::move(entry));
  co_return sent;
}

Task<Result<void>> FileRoutes::watch(net::Exchange& exchange, net::Target target) {
  GB_CO_TRY_ASSIGN(FileCall call, FileCall::from_query(users_, target));
  GB_CO_TRY_ASSIGN(std::string path, path_param(target, "path"));
  GB_CO_TRY_ASSIGN(const bool recursive, flag_param(target, "recursive", false));
  Result<void> sent =
      co_await stream_changes(exchange, std::move(call), std::move(path), recursive);
  co_return sent;
}

}  // namespace glovebox::agent
