#pragma once

#include <span>
#include <vector>

namespace hvd {

// Which rank lives on which host, and where this rank stands. Ranks on one host share memory; whether they do is what
// decides, not host names.
class Topology {
 public:
  // host_of_rank[r]: any number that is equal for ranks on one host. Hosts are numbered by their smallest rank.
  Topology(int rank, std::span<const int> host_of_rank);
  // Host numbers for "so many ranks on each host", in rank order; throws InvalidArgumentError when they do not add up.
  static std::vector<int> hosts_from_counts(std::span<const int> ranks_per_host, int size);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(host_of_rank_.size()); }
  int host() const { return host_of(rank_); }
  int host_count() const { return static_cast<int>(ranks_on_host_.size()); }
  int host_of(int rank) const { return host_of_rank_[static_cast<std::size_t>(rank)]; }
  int local_rank_of(int rank) const { return local_rank_[static_cast<std::size_t>(rank)]; }
  // In rank order; the first is the host's leader.
  std::span<const int> ranks_on(int host) const { return ranks_on_host_[static_cast<std::size_t>(host)]; }

  int local_rank() const { return local_rank_of(rank_); }
  int local_size() const { return static_cast<int>(ranks_on(host()).size()); }
  // Position among the hosts that have a rank with this local rank, and their number.
  int cross_rank() const;
  int cross_size() const;
  bool is_local(int rank) const { return host_of(rank) == host(); }
  bool is_leader() const { return local_rank() == 0; }
  bool is_homogeneous() const;

 private:
  int rank_;
  std::vector<int> host_of_rank_;
  std::vector<int> local_rank_;
  std::vector<std::vector<int>> ranks_on_host_;
};

}  // namespace hvd
