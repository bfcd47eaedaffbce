#pragma once

#include <vector>

#include "transport/topology.h"

namespace hvd {

// A process set as one of its members sees it.
struct Members {
  static constexpr int channels = 1024;

  Topology topology;       // ranks are positions in the set
  std::vector<int> ranks;  // of the world, by position
  int channel = 0;         // tells the set's messages from those of others: 0 is the world's, then up to channels - 1
};

// `ranks` is sorted and holds the world's own rank. `channel` is the same on all members.
Members make_members(const Topology& world, std::vector<int> ranks, int channel);

// The set of all ranks.
Members all_members(const Topology& world);

}  // namespace hvd
