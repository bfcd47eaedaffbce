#pragma once

#include <cstdint>
#include <vector>

#include "negotiation/messages.h"
#include "negotiation/operation_ids.h"

namespace hvd {

// What later code relies on in a report, which comes from another rank. Throw InternalError that names the rank.

// What the rank has sent.
Report read_report(int rank, BytesView bytes);
// Of a description that travels: whom and what it is about.
void check_described(int rank, int size, const Ready& ready);
// Of the numbers that come with it; the state's participants are known.
void check_extents(int rank, const OperationState& state, const Request& request,
                   const std::vector<std::int64_t>& extents);

}  // namespace hvd
