#include "transport/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hvd/error.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace hvd {

Topology::Topology(int rank, std::span<const int> host_of_rank) : rank_(rank) {
  std::map<int, int> number_of_host;
  for (int r = 0; r < static_cast<int>(host_of_rank.size()); ++r) {
    const auto [entry, is_new] =
        number_of_host.try_emplace(host_of_rank[static_cast<std::size_t>(r)], static_cast<int>(number_of_host.size()));
    if (is_new) ranks_on_host_.emplace_back();
    auto& ranks = ranks_on_host_[static_cast<std::size_t>(entry->second)];
    host_of_rank_.push_back(entry->second);
    local_rank_.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(r);
  }
}

std::vector<int> Topology::hosts_from_counts(std::span<const int> ranks_per_host, int size) {
  if (std::accumulate(ranks_per_host.begin(), ranks_per_host.end(), std::int64_t{0}) != size) {
    throw InvalidArgumentError(fmt::format("HVD_TEST_TOPOLOGY: {} ranks per host do not add up to {} ranks",
                                           fmt::join(ranks_per_host, ","), size));
  }
  std::vector<int> hosts;
  int host = 0;
  for (const int count : ranks_per_host) hosts.insert(hosts.end(), static_cast<std::size_t>(count), host++);
  return hosts;
}

int Topology::cross_rank() const {
  int before = 0;
  for (int h = 0; h < host(); ++h) before += static_cast<int>(ranks_on(h).size()) > local_rank() ? 1 : 0;
  return before;
}

int Topology::cross_size() const {
  return static_cast<int>(std::ranges::count_if(
      ranks_on_host_, [this](const auto& ranks) { return static_cast<int>(ranks.size()) > local_rank(); }));
}

bool Topology::is_homogeneous() const {
  return std::ranges::all_of(ranks_on_host_, [this](const auto& r) { return r.size() == ranks_on_host_[0].size(); });
}

}  // namespace hvd
