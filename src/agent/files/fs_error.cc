#include "agent/files/fs_error.h"

#include <cerrno>
#include <string>

namespace glovebox::agent {

Error fs_error(int err, std::string_view path) {
  const auto say = [&](Errc code, std::string_view what) {
    return Error(code, std::string(path) + ": " + std::string(what));
  };
  switch (err) {
    case EISDIR: return say(Errc::kInvalid, "is a directory");
    case ENXIO:
    case ENODEV: return say(Errc::kInvalid, "is not a regular file");
    case ELOOP: return say(Errc::kInvalid, "too many links, or one into /proc/*/fd");
    case EXDEV: return say(Errc::kDenied, "leads out of \"root\"");
    case EFBIG: return say(Errc::kTooLarge, "file too large");
    case ETXTBSY: return say(Errc::kConflict, "is a program that runs");
    case EOPNOTSUPP: return say(Errc::kInvalid, "this file system cannot do that");
    default: return Error::from_errno(err, path);
  }
}

}  // namespace glovebox::agent
