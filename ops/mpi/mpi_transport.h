#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <span>

#include "transport/transport.h"

namespace hvd {

// The ranks of an MPI communicator. Uses a duplicate of it, and shared windows for the ranks of a host; which ranks
// share a host is asked of MPI_Comm_split_type; `pretended_ranks_per_host` overrides it for tests, unless empty.
// Collective over the communicator; throws StallError when a rank does not come within the limit.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator, std::span<const int> pretended_ranks_per_host,
                                              std::chrono::duration<double> limit);

}  // namespace hvd
