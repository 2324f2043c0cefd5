// The HTTP calls about commands: exec, processes and what can be done to them. Each handler either
// answers or returns an error for the router to answer with.

#pragma once

#include <sys/types.h>

#include <memory>

#include "agent/exec/process_table.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"
#include "net/url.h"

namespace glovebox::agent {

class ExecRoutes {
 public:
  // Borrows `table`.
  explicit ExecRoutes(ProcessTable& table) : table_(table) {}

  Task<Result<void>> exec(net::Exchange& exchange);
  Task<Result<void>> exec_websocket(net::Exchange& exchange);
  Task<Result<void>> list(net::Exchange& exchange);
  Task<Result<void>> get(net::Exchange& exchange, pid_t pid);
  Task<Result<void>> output(net::Exchange& exchange, pid_t pid, net::Target target);
  Task<Result<void>> write_stdin(net::Exchange& exchange, pid_t pid, net::Target target);
  Task<Result<void>> signal(net::Exchange& exchange, pid_t pid);
  Task<Result<void>> resize(net::Exchange& exchange, pid_t pid);

 private:
  Task<Result<void>> answer_whole(net::Exchange& exchange, std::shared_ptr<Process> process);

  ProcessTable& table_;
  std::size_t tail_bytes_ = 0;  // Of all answers being gathered.
};

}  // namespace glovebox::agent
