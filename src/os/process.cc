#include "os/process.h"

#include <fcntl.h>

#include <cstdlib>

#include "os/files.h"

namespace glovebox::os {

Result<std::uint64_t> process_start_time(pid_t pid) {
  GB_TRY_ASSIGN(const std::string stat,
                read_file(AT_FDCWD, "/proc/" + std::to_string(pid) + "/stat"));
  // The name (field 2) may hold anything, also ") "; the last parenthesis ends it.
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return Error(Errc::kInternal, "stat of a process: too few fields");
  return std::strtoull(stat.c_str() + at, nullptr, 10);
}

}  // namespace glovebox::os
