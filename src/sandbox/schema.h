// The tables of the domain, as migrations. One list for the whole database, so that numbers are
// unique; a later feature appends.

#pragma once

#include <span>

#include "store/migrate.h"

namespace glovebox::sandbox {

std::span<const store::Migration> migrations();

}  // namespace glovebox::sandbox
