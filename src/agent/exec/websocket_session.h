// One command over one WebSocket: the first message is its ExecRequest, then frames as
// docs/api/contract.md describes them, both ways at once.

#pragma once

#include <memory>

#include "agent/exec/exec_request.h"
#include "agent/exec/process_table.h"
#include "async/task.h"
#include "net/websocket.h"

namespace glovebox::agent {

Task<void> run_websocket_session(ProcessTable& table, std::unique_ptr<net::WebSocket> socket,
                                 EnvList sandbox_env);

}  // namespace glovebox::agent
