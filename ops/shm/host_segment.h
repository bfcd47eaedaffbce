#pragma once

#include <cstddef>
#include <memory>

#include "shm/bell.h"
#include "shm/byte_ring.h"
#include "transport/transport.h"

namespace hvd {

// What the ranks of one host share for control, once per world: everyone's bell, and a control stream to and from the
// leader for each.
class HostSegment {
 public:
  static std::size_t bytes_for(const Topology& topology);
  // `memory` is zero-filled and of that size.
  explicit HostSegment(std::unique_ptr<SharedMemory> memory);

  Bell& bell(int local_rank);
  ByteRing to_leader(int local_rank);
  ByteRing from_leader(int local_rank);

 private:
  struct Member;

  Member& member(int local_rank);

  std::unique_ptr<SharedMemory> memory_;
};

}  // namespace hvd
