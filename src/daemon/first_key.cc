#include "daemon/first_key.h"

#include <fcntl.h>

#include "daemon/process.h"
#include "os/files.h"

namespace glovebox::daemon {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Result<void> ensure_key_file(sandbox::ApiKeys& keys, const std::string& path) {
  const Result<std::string> text = os::read_file(AT_FDCWD, path);
  if (!text && text.error().code() != Errc::kNotFound) return text.error();
  if (text && keys.verify(trimmed(text.value()))) return {};
  GB_TRY_ASSIGN(const auto created, keys.create("first key"));
  return write_private_file(path, created.secret + "\n");
}

}  // namespace glovebox::daemon
