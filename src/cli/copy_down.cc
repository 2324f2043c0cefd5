#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <utility>

#include "async/coro.h"
#include "base/base64.h"
#include "base/random.h"
#include "cli/copy.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/path_spec.h"
#include "cli/stdio.h"
#include "net/url.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kEntriesMax = 5'000'000;

// A new file under a name of its own, which takes the real name when it is whole.
class NewFile {
 public:
  static Result<NewFile> create(int dir_fd, std::string name, unsigned mode) {
    NewFile file;
    file.dir_fd_ = dir_fd;
    file.name_ = std::move(name);
    file.temporary_ = ".glovebox-" + random_name(16);
    // O_EXCL follows no link: open(2).
    GB_TRY_ASSIGN(file.fd_, os::openat(dir_fd, file.temporary_, O_WRONLY | O_CREAT | O_EXCL,
                                       mode & 0777, os::Resolve::kBeneath));
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : dir_fd_(other.dir_fd_),
        fd_(std::move(other.fd_)),
        name_(std::move(other.name_)),
        temporary_(std::exchange(other.temporary_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (!temporary_.empty()) ::unlinkat(dir_fd_, temporary_.c_str(), 0);
  }

  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      GB_TRY_ASSIGN(const ssize_t n, os::retry("write", name_, [&] {
                      return ::write(fd_.get(), bytes.data(), bytes.size());
                    }));
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }
  // Replaces a file or a link of that name; a directory is refused.
  Result<void> finish() {
    GB_TRY(os::retry("rename to", name_, [&] {
      return ::renameat(dir_fd_, temporary_.c_str(), dir_fd_, name_.c_str());
    }));
    temporary_.clear();
    return {};
  }

 private:
  NewFile() = default;
  int dir_fd_ = -1;  // Borrowed.
  UniqueFd fd_;
  std::string name_;
  std::string temporary_;  // Empty when there is none to remove.
};

struct Entry {
  std::string name;
  std::string type;
  std::uint64_t size = 0;
  unsigned mode = 0644;
};

// What the sandbox says about a file: any of it may be made up.
Entry entry_of(const json::object& object) {
  Entry entry;
  entry.name = text_at(object, "name");
  const std::string exact = text_at(object, "path_b64");
  if (!exact.empty()) entry.name = base_name(from_base64(exact).value_or(""));
  entry.type = text_at(object, "type");
  const double size = number_at(object, "size");
  entry.size = size > 0 && size < 1e18 ? static_cast<std::uint64_t>(size) : 0;
  unsigned mode = 0;
  for (const char c : text_at(object, "mode")) mode = (mode << 3) | (static_cast<unsigned>(c) & 7);
  entry.mode = mode & 0777;
  return entry;
}

Task<Result<void>> get_file(CopyContext& context, RemotePath from, int dir_fd, std::string name,
                            Entry entry) {
  GB_CO_TRY_ASSIGN(NewFile file, NewFile::create(dir_fd, std::move(name), entry.mode | 0600));
  context.progress.begin(from.path, entry.size);
  const Sink sink = [&](std::string_view bytes) -> Task<Result<void>> {
    context.progress.add(bytes.size());
    co_return file.write(bytes);
  };
  const std::string path = from.path;
  Result<void> got = co_await download(context.shell.api(), std::move(from), sink);
  if (got) got = file.finish();
  if (!got) co_return std::move(got).context("copy " + path).error();
  ++context.count.files;
  co_return Result<void>();
}

struct Page {
  std::vector<Entry> entries;
  std::string next;
};

Task<Result<Page>> list_page(Api& api, const RemotePath& at, const std::string& cursor) {
  std::string rest = "files/list?depth=1&limit=1000&" + path_query(at);
  if (!cursor.empty()) rest += "&cursor=" + net::percent_encode(cursor);
  Result<std::string> reply = co_await api.call("GET", sandbox_target(at.sandbox, rest));
  if (!reply) co_return std::move(reply).context("list " + at.path).error();
  GB_CO_TRY_ASSIGN(const json::object object, parse_object(*reply));
  Page page;
  for (const json::value& value : array_at(object, "entries")) {
    if (value.is_object()) page.entries.push_back(entry_of(value.get_object()));
  }
  page.next = text_at(object, "next_cursor");
  co_return page;
}

Result<UniqueFd> make_and_open_dir(int dir_fd, const std::string& name, unsigned mode) {
  if (::mkdirat(dir_fd, name.c_str(), (mode & 0777) | 0700) != 0 && errno != EEXIST) {
    return Error::from_errno(errno, "make directory " + name);
  }
  // A link of that name that was here before is not followed.
  return os::openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, os::Resolve::kBeneath);
}

Task<Result<void>> get_dir(CopyContext& context, RemotePath from, int dir_fd, int depth);

Task<Result<void>> get_entry(CopyContext& context, RemotePath from, int dir_fd, Entry entry,
                             int depth) {
  if (entry.type == "dir") {
    GB_CO_TRY_ASSIGN(const UniqueFd below, make_and_open_dir(dir_fd, entry.name, entry.mode));
    co_return co_await get_dir(context, std::move(from), below.get(), depth + 1);
  }
  if (entry.type == "file") {
    std::string name = entry.name;
    co_return co_await get_file(context, std::move(from), dir_fd, std::move(name),
                                std::move(entry));
  }
  context.skip(from.path, entry.type == "symlink" ? "it is a symbolic link"
                                                  : "it is neither a file nor a directory");
  co_return Result<void>();
}

Task<Result<void>> get_dir(CopyContext& context, RemotePath from, int dir_fd, int depth) {
  if (depth > kCopyDepthMax) {
    co_return Error(Errc::kInvalid, from.path + ": directories are nested too deeply");
  }
  std::string cursor;
  std::uint64_t seen = 0;
  do {
    Result<Page> page = co_await list_page(context.shell.api(), from, cursor);
    if (!page) co_return std::move(page).error();
    for (Entry& entry : page->entries) {
      if (!is_plain_name(entry.name)) {
        context.skip(join_path(from.path, entry.name), "its name is not that of a file");
        continue;
      }
      RemotePath below{from.sandbox, join_path(from.path, entry.name), from.user};
      Result<void> done =
          co_await get_entry(context, std::move(below), dir_fd, std::move(entry), depth);
      if (!done) co_return done;
    }
    seen += page->entries.size();
    if (page->entries.empty()) break;
    cursor = page->next;
  } while (!cursor.empty() && seen < kEntriesMax);
  co_return Result<void>();
}

Task<Result<void>> to_standard_output(CopyContext& context, RemotePath from) {
  StandardStream out(context.shell.executor(), context.shell.streams().out, Direction::kWrite);
  const Sink sink = [&](std::string_view bytes) -> Task<Result<void>> {
    context.progress.add(bytes.size());
    co_return co_await out.write_all(bytes);
  };
  context.progress.begin(from.path, std::nullopt);
  Result<void> got = co_await download(context.shell.api(), std::move(from), sink);
  if (got) ++context.count.files;
  co_return got;
}

Task<Result<Entry>> stat_remote(Api& api, const RemotePath& at) {
  Result<std::string> reply =
      co_await api.call("GET", sandbox_target(at.sandbox, "files/stat?" + path_query(at)));
  if (!reply) co_return std::move(reply).context(at.path).error();
  GB_CO_TRY_ASSIGN(const json::object object, parse_object(*reply));
  co_return entry_of(object);
}

}  // namespace

Task<Result<void>> copy_down(CopyContext& context, RemotePath from, std::string local) {
  if (local == "-") co_return co_await to_standard_output(context, std::move(from));
  Api& api = context.shell.api();
  Result<Entry> entry = co_await stat_remote(api, from);
  if (!entry) co_return std::move(entry).error();
  if (entry->type == "symlink") {
    const bool dir = co_await is_remote_dir(api, from);
    entry->type = dir ? "dir" : "file";
    entry->mode = dir ? 0755 : 0644;
    entry->size = 0;
  }
  // The parent is the user's own choice, links and all; from there on by plain names.
  entry->name = base_name(local);
  std::string parent = ".";
  const bool itself = entry->name.empty();  // ".", "..", "/": an existing directory.
  if (itself) {
    parent = local;
  } else {
    std::string trimmed = local;
    while (trimmed.ends_with('/')) trimmed.pop_back();
    const std::size_t slash = trimmed.rfind('/');
    if (slash != std::string::npos) parent = trimmed.substr(0, slash + 1);
  }
  GB_CO_TRY_ASSIGN(const UniqueFd dir,
                   os::openat(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0, os::Resolve::kAnywhere));
  if (itself && entry->type == "dir") {
    co_return co_await get_dir(context, std::move(from), dir.get(), 0);
  }
  if (itself) co_return Error(Errc::kInvalid, "'" + local + "' is a directory");
  if (entry->type == "dir") {
    struct stat status{};
    // An existing link to a directory was named by the user: it is followed, this once.
    if (::stat(local.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      GB_CO_TRY_ASSIGN(const UniqueFd there, os::openat(AT_FDCWD, local, O_RDONLY | O_DIRECTORY, 0,
                                                        os::Resolve::kAnywhere));
      co_return co_await get_dir(context, std::move(from), there.get(), 0);
    }
  }
  if (entry->type != "dir" && entry->type != "file") {
    co_return Error(Errc::kInvalid, from.path + " is neither a file nor a directory");
  }
  co_return co_await get_entry(context, std::move(from), dir.get(), std::move(*entry), 0);
}

}  // namespace glovebox::cli
