#pragma once

#include <span>
#include <vector>

#include "shm/host_segment.h"

namespace hvd {

// This rank's view of the bells of its host: rings the others, and remembers who sleeps in a socket, for a ring by
// datagram costs a system call on both sides and is put off until this rank has nothing better to do. Progress token
// only.
class HostBells {
 public:
  HostBells(HostSegment& segment, const Topology& topology)
      : segment_(&segment),
        local_rank_(topology.local_rank()),
        late_(static_cast<std::size_t>(topology.local_size())) {}

  // For a control message.
  void ring(int local_rank) {
    const Bell::Sleeper who = segment_->bell(local_rank).ring();
    if (who == Bell::Sleeper::socket || who == Bell::Sleeper::resting) ring_late(local_rank);
  }
  // For progress of an operation, which a rank with nothing in flight does not wait for. This rank is left out.
  void ring_others(std::span<const int> local_ranks) {
    for (const int r : local_ranks) {
      if (r != local_rank_ && segment_->bell(r).ring() == Bell::Sleeper::socket) ring_late(r);
    }
  }

  Bell& mine() { return segment_->bell(local_rank_); }

  // Calls `wake(local_rank)` for everyone who has been rung and still sleeps in its socket.
  template <typename Wake>
  void flush_late(const Wake& wake) {
    if (!any_late_) return;
    any_late_ = false;
    for (int r = 0; r < static_cast<int>(late_.size()); ++r) {
      if (!late_[static_cast<std::size_t>(r)]) continue;
      late_[static_cast<std::size_t>(r)] = false;
      const Bell::Sleeper who = segment_->bell(r).ring();
      if (who == Bell::Sleeper::socket || who == Bell::Sleeper::resting) wake(r);
    }
  }

 private:
  void ring_late(int local_rank) {
    late_[static_cast<std::size_t>(local_rank)] = true;
    any_late_ = true;
  }

  HostSegment* segment_;
  int local_rank_;
  std::vector<bool> late_;
  bool any_late_ = false;
};

}  // namespace hvd
