// Needs Asio: only for .cc files.

#pragma once

#include "net/connection.h"

namespace glovebox::net {

struct Connection::Cancel {
  boost::asio::cancellation_signal signal;
};

}  // namespace glovebox::net
