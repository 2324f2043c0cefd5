#include "warden/names.h"

#include <sys/random.h>

#include <cerrno>

namespace glovebox::warden {

bool valid_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 64) return false;
  for (const char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (!ok) return false;
  }
  return true;
}

Result<std::string> make_instance_name() {
  // 32 letters, so that each byte gives one without bias.
  constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";
  static_assert(kLetters.size() == 32);
  unsigned char bytes[12];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    return Error::from_errno(errno, "getrandom");
  }
  std::string name;
  for (const unsigned char b : bytes) name.push_back(kLetters[b % 32]);
  return name;
}

}  // namespace glovebox::warden
