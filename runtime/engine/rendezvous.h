#pragma once

#include <hvd/config.h>

#include <string>

#include "transport/transport.h"

namespace hvd::detail {

// The first thing that the ranks of a new world do together: they compare what must agree, and learn what has gone
// wrong on any of them (`trouble`, empty if nothing has), so that all of them start or none. Returns a random token,
// the same on all ranks, that tells this world from others. Throws InvalidArgumentError, with the values by rank, on
// every rank.
std::string agree_on_start(Transport& transport, const Config& config, const std::string& trouble);

// All ranks tell what has gone wrong on them, empty if nothing has; throws InvalidArgumentError on all of them if
// anything has on any.
void require_no_trouble(Transport& transport, const Config& config, const std::string& trouble);

}  // namespace hvd::detail
