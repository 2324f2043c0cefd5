// Router answers every request to the agent: docs/api/contract.md, "Served by the agent".

#pragma once

#include "agent/common/users.h"
#include "agent/exec/exec_routes.h"
#include "agent/exec/process_table.h"
#include "agent/files/file_routes.h"
#include "async/task.h"
#include "net/server.h"
#include "net/url.h"

namespace glovebox::agent {

class Router {
 public:
  // Borrows both.
  Router(ProcessTable& processes, Users& users) : exec_(processes), files_(users) {}

  // Never throws; an Error becomes a reply, or cuts off one that has begun.
  Task<void> handle(net::Exchange& exchange);

 private:
  Task<Result<void>> route(net::Exchange& exchange);
  Task<Result<void>> dispatch(net::Exchange& exchange, net::Target target);
  Task<Result<void>> dispatch_process(net::Exchange& exchange, pid_t pid, net::Target target);
  Task<Result<void>> dispatch_file(net::Exchange& exchange, net::Target target);

  ExecRoutes exec_;
  FileRoutes files_;
};

}  // namespace glovebox::agent
