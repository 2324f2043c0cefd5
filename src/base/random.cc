#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace glovebox {

std::string random_bytes(std::size_t n) {
  std::string out(n, '\0');
  for (std::size_t have = 0; have < n;) {
    const ssize_t r = ::getrandom(out.data() + have, n - have, 0);
    if (r > 0) {
      have += static_cast<std::size_t>(r);
    } else if (errno != EINTR) {
      std::perror("getrandom");
      std::abort();
    }
  }
  return out;
}

std::string random_name(std::size_t n) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  // The largest multiple of 36 in a byte; what lies above would favour some characters.
  constexpr unsigned kFair = 256 - 256 % kAlphabet.size();
  std::string out;
  out.reserve(n);
  while (out.size() < n) {
    for (const char c : random_bytes(n - out.size() + 4)) {
      const unsigned byte = static_cast<unsigned char>(c);
      if (byte < kFair && out.size() < n) out.push_back(kAlphabet[byte % kAlphabet.size()]);
    }
  }
  return out;
}

}  // namespace glovebox
