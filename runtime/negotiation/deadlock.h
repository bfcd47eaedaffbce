#pragma once

#include <optional>
#include <string>
#include <vector>

#include "negotiation/stall.h"

namespace hvd {

// A rank, a thread of which does nothing but wait for an operation that waits for other ranks.
struct BlockedRank {
  int rank = 0;
  const WaitingTensor* in = nullptr;
};

// Ranks that wait for each other in a circle: each is blocked in an operation that lacks the next one. Empty when there
// is none.
std::vector<BlockedRank> find_deadlock(const std::vector<BlockedRank>& blocked);

// "rank 0 waits in 'a' for [1]; rank 1 waits in 'b' for [0]"
std::string describe_deadlock(const std::vector<BlockedRank>& circle);

}  // namespace hvd
