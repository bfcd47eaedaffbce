#pragma once

#include <cstddef>
#include <vector>

#include "session.h"

namespace hvd::bench {

// allgather, broadcast, alltoall and reduce-scatter of float32, beside MPI's. A size is the greater of input and output
// on each rank, a multiple of the ranks' number of elements. Collective.
void run_others(Session& session, const std::vector<std::size_t>& sizes);

}  // namespace hvd::bench
