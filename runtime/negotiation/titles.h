#pragma once

#include <string>

#include "negotiation/messages.h"
#include "negotiation/operation_ids.h"

namespace hvd {

// "allreduce 'w' process set 3": how messages begin. Without the operation where the ranks' operations differ.
std::string title(const OperationState& state);

// "rank 2 has left: called shutdown()", "rank 2 (host h, pid 7) left: ValueError: boom"
std::string departure(int rank, const Leave& leave);

}  // namespace hvd
