// The HTTP calls about files. Each handler either answers or returns an error for the router.

#pragma once

#include "agent/common/users.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"
#include "net/url.h"

namespace glovebox::agent {

class FileRoutes {
 public:
  // Borrows `users`.
  explicit FileRoutes(Users& users) : users_(users) {}

  Task<Result<void>> read(net::Exchange& exchange, net::Target target);  // GET and HEAD
  Task<Result<void>> write(net::Exchange& exchange, net::Target target);
  Task<Result<void>> remove(net::Exchange& exchange, net::Target target);
  Task<Result<void>> stat(net::Exchange& exchange, net::Target target);
  Task<Result<void>> list(net::Exchange& exchange, net::Target target);
  Task<Result<void>> mkdir(net::Exchange& exchange, net::Target target);
  Task<Result<void>> move(net::Exchange& exchange, net::Target target);
  Task<Result<void>> chmod(net::Exchange& exchange, net::Target target);
  Task<Result<void>> watch(net::Exchange& exchange, net::Target target);

 private:
  Users& users_;
};

}  // namespace glovebox::agent
