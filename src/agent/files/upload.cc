#include "agent/files/upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/common/reply.h"
#include "agent/files/entry.h"
#include "agent/files/fs_error.h"
#include "agent/files/temporary_name.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr std::size_t kUnknownLengthBytes = 64 << 10;

// A file under construction. Gone with this object, unless commit() was called.
class Draft {
 public:
  Draft(FileCall& call, Place place) : call_(call), place_(std::move(place)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!fd_ || committed_) return;
    const auto rights = call_.act();
    if (rights) ::unlinkat(place_.dir.get(), temporary_.c_str(), 0);
  }

  // Needs the caller's rights.
  Result<void> begin() {
    exists_ = ::fstatat(place_.dir.get(), place_.name.c_str(), &old_, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists_ && S_ISDIR(old_.st_mode)) return fs_error(EISDIR, place_.path);
    if (exists_ && !S_ISREG(old_.st_mode)) return fs_error(ENXIO, place_.path);
    temporary_ = temporary_name();
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    fd_.reset(::openat(place_.dir.get(), temporary_.c_str(), kFlags, 0600));
    if (!fd_) return fs_error(errno, place_.path);
    return {};
  }

  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno != EINTR) return fs_error(errno, place_.path);
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<void> commit(std::optional<mode_t> mode) {
    GB_TRY_ASSIGN(const ActingAs rights, call_.act());
    // Only root can keep another's file another's.
    if (exists_ && call_.user().uid == 0 && (old_.st_uid != 0 || old_.st_gid != 0)) {
      if (::fchown(fd_.get(), old_.st_uid, old_.st_gid) != 0) return fs_error(errno, place_.path);
    }
    const mode_t bits = mode.value_or(exists_ ? old_.st_mode & 07777 : 0644);
    if (::fchmod(fd_.get(), bits) != 0) return fs_error(errno, place_.path);
    if (::renameat(place_.dir.get(), temporary_.c_str(), place_.dir.get(), place_.name.c_str()) !=
        0) {
      return fs_error(errno, place_.path);
    }
    committed_ = true;
    return {};
  }

  const Place& place() const noexcept { return place_; }

 private:
  FileCall& call_;
  Place place_;
  std::string temporary_;
  UniqueFd fd_;
  struct stat old_{};
  bool exists_ = false;
  bool committed_ = false;
};

Result<Place> find_target(FileCall& call, const std::string& path, bool parents) {
  if (path.ends_with('/')) return fs_error(EISDIR, path);
  if (parents) GB_TRY(call.tree().make_parents(path));
  GB_TRY_ASSIGN(Place place, call.tree().locate_target(path));
  if (place.name == ".") return fs_error(EISDIR, place.path);
  return place;
}

Task<Result<void>> receive(net::Exchange& exchange, Draft& draft) {
  const std::uint64_t expected = exchange.head().content_length.value_or(kUnknownLengthBytes);
  std::string buffer(std::clamp<std::uint64_t>(expected, 1, kBufferBytes), '\0');
  for (;;) {
    Result<std::size_t> n = co_await exchange.read_body(buffer);
    if (!n) co_return std::move(n).error();
    if (*n == 0) co_return Result<void>();
    GB_CO_TRY(draft.write({buffer.data(), *n}));
  }
}

}  // namespace

Task<Result<void>> upload(net::Exchange& exchange, Users& users, FileCall call, std::string path,
                          UploadOptions options) {
  std::optional<Draft> draft;
  {
    GB_CO_TRY_ASSIGN(const ActingAs rights, call.act());
    GB_CO_TRY_ASSIGN(Place place, find_target(call, path, options.parents));
    draft.emplace(call, std::move(place));
    GB_CO_TRY(draft->begin());
  }
  Result<void> received = co_await receive(exchange, *draft);
  if (!received) co_return received;
  GB_CO_TRY(draft->commit(options.mode));
  std::string json;
  {
    GB_CO_TRY_ASSIGN(const ActingAs rights, call.act());
    GB_CO_TRY_ASSIGN(json, entry_json(users, draft->place()));
  }
  net::Response reply = json_reply(200, std::move(json));
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

}  // namespace glovebox::agent
