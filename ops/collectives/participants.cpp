#include "collectives/participants.h"

#include <numeric>

namespace hvd {

Participants Participants::all(const Topology& topology, std::optional<int> only_taker) {
  std::vector<int> ranks(static_cast<std::size_t>(topology.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {topology, ranks, only_taker};
}

Participants::Participants(const Topology& topology, std::span<const int> contributors, std::optional<int> only_taker) {
  Facts facts{.contributors = {contributors.begin(), contributors.end()},
              .contributes = std::vector<bool>(static_cast<std::size_t>(topology.size())),
              .on_host = std::vector<std::vector<int>>(static_cast<std::size_t>(topology.host_count())),
              .hosts = {},
              .only_taker = only_taker,
              .taking_host = {}};
  for (const int rank : contributors) {
    facts.contributes[static_cast<std::size_t>(rank)] = true;
    facts.on_host[static_cast<std::size_t>(topology.host_of(rank))].push_back(rank);
  }
  for (int host = 0; host < topology.host_count(); ++host) {
    if (!facts.on_host[static_cast<std::size_t>(host)].empty()) facts.hosts.push_back(host);
  }
  if (only_taker) facts.taking_host = topology.host_of(*only_taker);
  facts_ = std::make_shared<const Facts>(std::move(facts));
}

}  // namespace hvd
