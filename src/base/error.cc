#include "base/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace glovebox {
namespace {

Errc code_for(int err) {
  switch (err) {
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case ELOOP: return Errc::kInvalid;
    case ENOENT:
    case ESRCH: return Errc::kNotFound;
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY: return Errc::kConflict;
    case EPERM:
    case EACCES:
    case EROFS: return Errc::kDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Errc::kExhausted;
    case EAGAIN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE: return Errc::kUnavailable;
    case ETIMEDOUT: return Errc::kTimeout;
    default: return Errc::kInternal;
  }
}

}  // namespace

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalid: return "invalid";
    case Errc::kNotFound: return "not_found";
    case Errc::kConflict: return "conflict";
    case Errc::kUnauthorized: return "unauthorized";
    case Errc::kDenied: return "denied";
    case Errc::kTooLarge: return "too_large";
    case Errc::kExhausted: return "exhausted";
    case Errc::kUnavailable: return "unavailable";
    case Errc::kTimeout: return "timeout";
    case Errc::kInternal: return "internal";
  }
  return "internal";
}

Error Error::from_errno(int err, std::string_view what) {
  Error error(code_for(err), std::string(what) + ": " + std::generic_category().message(err));
  error.errno_ = err;
  return error;
}

Error Error::context(std::string_view what) && {
  text_.insert(0, ": ").insert(0, what);
  return std::move(*this);
}

}  // namespace glovebox
