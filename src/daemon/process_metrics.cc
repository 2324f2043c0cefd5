#include "daemon/process_metrics.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "os/files.h"

namespace glovebox::daemon {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

}  // namespace

void write_process_metrics(metrics::Writer& out) {
  out.gauges("glovebox_build_info", "1, with the version.", "version", {{GLOVEBOX_VERSION, 1}});
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    out.counter("process_cpu_seconds_total", "CPU time, user and system.",
                seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  if (const auto fds = os::list_dir(AT_FDCWD, "/proc/self/fd")) {
    // One of them is the listing's own.
    out.gauge("process_open_fds", "Open descriptors.", static_cast<double>(fds.value().size()) - 1);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    out.gauge("process_max_fds", "Most descriptors.", static_cast<double>(limit.rlim_cur));
  }
  // proc(5): the second number is the resident pages.
  if (const auto statm = os::read_file(AT_FDCWD, "/proc/self/statm")) {
    unsigned long size = 0;
    unsigned long resident = 0;
    if (std::sscanf(statm.value().c_str(), "%lu %lu", &size, &resident) == 2) {
      const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
      out.gauge("process_resident_memory_bytes", "Memory in RAM.",
                static_cast<double>(resident) * page);
    }
  }
}

}  // namespace glovebox::daemon
