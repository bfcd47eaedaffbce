#pragma once

#include <vector>

#include "shm/segment.h"

namespace hvd {

// This rank's view of the bells of its host: rings the others, and remembers who sleeps in a socket, for a ring by datagram
// costs a system call on both sides and is put off until this rank has nothing better to do. Progress token only.
class HostBells {
 public:
  HostBells(Segment& segment, const Topology& topology)
      : segment_(&segment), local_rank_(topology.local_rank()), late_(static_cast<std::size_t>(topology.local_size())) {}

  void ring(int local_rank) {
    if (segment_->bell(local_rank).ring() == Bell::Sleeper::socket) {
      late_[static_cast<std::size_t>(local_rank)] = true;
      any_late_ = true;
    }
  }
  void ring_others() {
    for (int r = 0; r < static_cast<int>(late_.size()); ++r) {
      if (r != local_rank_) ring(r);
    }
  }

  Bell& mine() { return segment_->bell(local_rank_); }

  bool any_late() const { return any_late_; }
  // Calls `wake(local_rank)` for everyone who has been rung and still sleeps in its socket.
  template <typename Wake>
  void flush_late(const Wake& wake) {
    if (!any_late_) return;
    any_late_ = false;
    for (int r = 0; r < static_cast<int>(late_.size()); ++r) {
      if (!late_[static_cast<std::size_t>(r)]) continue;
      late_[static_cast<std::size_t>(r)] = false;
      if (segment_->bell(r).ring() == Bell::Sleeper::socket) wake(r);
    }
  }

 private:
  Segment* segment_;
  int local_rank_;
  std::vector<bool> late_;
  bool any_late_ = false;
};

}  // namespace hvd
