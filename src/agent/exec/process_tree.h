// Finds and kills what a command started where there is no cgroup to ask: by session and by
// parentage. A process that left both (setsid after a double fork) is missed: that is what
// cgroups are for.

#pragma once

#include <sys/types.h>

namespace glovebox::agent {

// SIGKILL to `root`, its descendants and the members of its session, until no new one turns up.
void kill_process_tree(pid_t root);

}  // namespace glovebox::agent
