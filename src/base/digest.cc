#include "base/digest.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace glovebox {

std::string sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace glovebox
