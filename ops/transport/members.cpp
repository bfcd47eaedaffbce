#include "transport/members.h"

#include <algorithm>
#include <numeric>

namespace hvd {

Members make_members(const Topology& world, std::vector<int> ranks, int channel) {
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(world.host_of(rank));
  const auto position = std::ranges::lower_bound(ranks, world.rank()) - ranks.begin();
  return {Topology(static_cast<int>(position), hosts), std::move(ranks), channel};
}

Members all_members(const Topology& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_members(world, std::move(ranks), 0);
}

}  // namespace hvd
