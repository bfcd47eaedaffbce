#include "negotiation/deadlock.h"

#include <fmt/format.h>

#include <algorithm>

#include "negotiation/rank_groups.h"

namespace hvd {

namespace {

// Extends the path from its last rank to ranks that this one waits for; true once it has come back to a rank on it,
// from where on the path is the circle. `seen`, by entry: leads nowhere, or is on the path.
bool close_circle(const std::vector<BlockedRank>& blocked, std::vector<BlockedRank>& path, std::vector<bool>& seen) {
  const BlockedRank last = path.back();
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    const BlockedRank& next = blocked[i];
    if (std::ranges::count(last.in->waits_for, next.rank) == 0) continue;
    const auto again = std::ranges::find(path, next.rank, &BlockedRank::rank);
    if (again != path.end()) {
      path.erase(path.begin(), again);
      return true;
    }
    if (seen[i]) continue;
    seen[i] = true;
    path.push_back(next);
    if (close_circle(blocked, path, seen)) return true;
    path.pop_back();
  }
  return false;
}

}  // namespace

std::vector<BlockedRank> find_deadlock(const std::vector<BlockedRank>& blocked) {
  std::vector<bool> seen(blocked.size(), false);
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    if (seen[i]) continue;
    seen[i] = true;
    std::vector<BlockedRank> path{blocked[i]};
    if (close_circle(blocked, path, seen)) return path;
  }
  return {};
}

std::string describe_deadlock(const std::vector<BlockedRank>& circle) {
  std::vector<BlockedRank> ordered = circle;
  std::ranges::sort(ordered, {}, &BlockedRank::rank);
  std::string text;
  for (const BlockedRank& blocked : ordered) {
    if (!text.empty()) text += "; ";
    text += fmt::format("rank {} waits in {} '{}' for {}", blocked.rank, to_string(blocked.in->request.operation),
                        blocked.in->request.name, format_ranks(blocked.in->waits_for));
  }
  return text;
}

}  // namespace hvd
