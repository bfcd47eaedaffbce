#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/topology.h"

namespace hvd {

// Who has part in one collective of a set, by position: the contributors have data to give, and take the result, all of
// them or one alone. Ranks that have joined do neither. Equal on all ranks of the set. Cheap to copy.
class Participants {
 public:
  static Participants all(const Topology& topology, std::optional<int> only_taker = std::nullopt);
  // `contributors` is sorted and not empty; `only_taker` is one of them. `topology` is the set's.
  Participants(const Topology& topology, std::span<const int> contributors,
               std::optional<int> only_taker = std::nullopt);

  bool contributes(int rank) const { return facts_->contributes[static_cast<std::size_t>(rank)]; }
  bool takes(int rank) const { return facts_->only_taker ? rank == *facts_->only_taker : contributes(rank); }
  // In rank order.
  std::span<const int> contributors() const { return facts_->contributors; }
  std::span<const int> contributors_on(int host) const { return facts_->on_host[static_cast<std::size_t>(host)]; }
  bool any_takes_on(int host) const {
    return facts_->taking_host ? host == *facts_->taking_host : !contributors_on(host).empty();
  }
  // In host order.
  std::span<const int> contributing_hosts() const { return facts_->hosts; }

 private:
  struct Facts {
    std::vector<int> contributors;
    std::vector<bool> contributes;
    std::vector<std::vector<int>> on_host;
    std::vector<int> hosts;
    std::optional<int> only_taker;
    std::optional<int> taking_host;
  };

  std::shared_ptr<const Facts> facts_;
};

}  // namespace hvd
