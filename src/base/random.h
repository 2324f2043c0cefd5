// Randomness from the kernel, for secrets and names.

#pragma once

#include <cstddef>
#include <string>

namespace glovebox {

// Blocks only in the first moments after boot; aborts if the kernel gives none, since anything
// made without it would be guessable.
std::string random_bytes(std::size_t n);

// `n` characters of [a-z0-9], each equally likely.
std::string random_name(std::size_t n);

}  // namespace glovebox
