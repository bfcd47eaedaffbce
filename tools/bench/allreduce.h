#pragma once

#include <cstddef>
#include <vector>

#include "session.h"

namespace hvd::bench {

// Blocking sums of one tensor, by size and dtype: hvd, MPI_Allreduce in place and not, and the limits. Collective.
void run_allreduce(Session& session, const std::vector<std::size_t>& sizes, const std::vector<DataType>& dtypes);

}  // namespace hvd::bench
