#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/transport.h"

namespace hvd {

// The ranks of an MPI communicator. Uses a duplicate of it, and shared windows for the ranks of a host; which ranks
// share a host is asked of MPI_Comm_split_type; `pretended_ranks_per_host` overrides it for tests, unless empty.
// Messages of more than `max_count` bytes are cut into several; 0 stands for the most that MPI takes, INT_MAX.
// Collective over the communicator; throws StallError when a rank does not come within the limit, and
// InvalidArgumentError when the ranks give unlike settings.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator, std::span<const int> pretended_ranks_per_host,
                                              std::chrono::duration<double> limit, std::int64_t max_count = 0);

}  // namespace hvd
