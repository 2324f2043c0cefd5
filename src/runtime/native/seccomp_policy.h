// The system calls a sandbox may make, compiled to BPF once and loaded into each first process.
//
// An allow list (libseccomp). What is on neither list is ENOSYS, which is what a program sees on an
// older kernel and is ready for; what is refused on purpose is EPERM; what no program in a
// sandbox has a reason to try ends the process. docs/threat-model.md gives the reasons in words.

#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"

namespace glovebox::native {

Result<std::vector<sock_filter>> compile_seccomp_policy();

}  // namespace glovebox::native
