#include "warden/requests.h"

#include <string_view>

#include "warden/names.h"

namespace glovebox::warden {
namespace {

constexpr std::string_view kTemplates[] = {"host"};

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kTiB = 1ULL << 40;

Result<void> check_range(std::string_view field, std::uint64_t value, std::uint64_t min,
                         std::uint64_t max) {
  if (value >= min && value <= max) return {};
  return Error(Errc::kInvalid, std::string(field) + " must be " + std::to_string(min) + " to " +
                                   std::to_string(max) + ", not " + std::to_string(value));
}

}  // namespace

Result<void> check_name(const std::string& name) {
  if (valid_name(name)) return {};
  return Error(Errc::kInvalid, "a sandbox's name must be 1 to 64 characters of a-z, 0-9 and -");
}

Result<native::Limits> check_create(const CreateRequest& r) {
  GB_TRY(check_name(r.name));
  bool known = false;
  for (const std::string_view t : kTemplates) known = known || t == r.template_id;
  if (!known) return Error(Errc::kInvalid, "no such template; this warden has: host");
  GB_TRY(check_range("memory_bytes", r.memory_bytes, 16 * kMiB, 16 * kTiB));
  GB_TRY(check_range("disk_bytes", r.disk_bytes, 16 * kMiB, 16 * kTiB));
  GB_TRY(check_range("cpu_millis", r.cpu_millis, 10, 1'024'000));
  // The agent's threads count too; with fewer it could not start a command.
  GB_TRY(check_range("pids", r.pids, 16, 4'194'304));
  return native::Limits{r.memory_bytes, r.disk_bytes, r.cpu_millis, r.pids};
}

Result<void> check_sockets(const SocketsRequest& r) {
  GB_TRY(check_name(r.name));
  return check_range("count", r.count, 1, kSocketsMax);
}

}  // namespace glovebox::warden
