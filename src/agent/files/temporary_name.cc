#include "agent/files/temporary_name.h"

#include "base/random.h"

namespace glovebox::agent {
namespace {

constexpr std::string_view kPrefix = ".glovebox-draft-";
constexpr std::size_t kRandom = 16;

}  // namespace

std::string temporary_name() { return std::string(kPrefix) + random_name(kRandom); }

bool is_temporary_name(std::string_view name) noexcept {
  return name.size() == kPrefix.size() + kRandom && name.starts_with(kPrefix);
}

}  // namespace glovebox::agent
