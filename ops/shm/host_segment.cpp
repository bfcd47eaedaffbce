#include "shm/host_segment.h"

#include <array>

namespace hvd {

// One local rank's part, in whole cache lines.
struct alignas(64) HostSegment::Member {
  static constexpr std::size_t ring_bytes = std::size_t{32} << 10;

  Bell bell;
  ByteRing::Header up;
  ByteRing::Header down;
  std::array<std::byte, ring_bytes> up_data;
  std::array<std::byte, ring_bytes> down_data;
};

std::size_t HostSegment::bytes_for(const Topology& topology) {
  return static_cast<std::size_t>(topology.local_size()) * sizeof(Member);
}

// The memory is zero-filled, which is the initial state of every object in it: nothing is constructed, so that ranks
// may start using it in any order.
HostSegment::HostSegment(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}

HostSegment::Member& HostSegment::member(int local_rank) {
  return reinterpret_cast<Member*>(memory_->bytes().data())[local_rank];
}

Bell& HostSegment::bell(int local_rank) { return member(local_rank).bell; }

ByteRing HostSegment::to_leader(int local_rank) {
  Member& mine = member(local_rank);
  return {mine.up, mine.up_data};
}

ByteRing HostSegment::from_leader(int local_rank) {
  Member& mine = member(local_rank);
  return {mine.down, mine.down_data};
}

}  // namespace hvd
