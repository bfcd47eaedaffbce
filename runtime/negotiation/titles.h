#pragma once

#include <string>

#include "negotiation/operation_ids.h"

namespace hvd {

// "allreduce 'w' process set 3": how messages begin. Without the operation where the ranks' operations differ.
std::string title(const OperationState& state);

}  // namespace hvd
