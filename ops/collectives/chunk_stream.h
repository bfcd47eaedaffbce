#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "collectives/remote_chunks.h"
#include "shm/host_bells.h"
#include "shm/segment.h"
#include "transport/transport.h"

namespace hvd {

// The data plane of one process set as its collectives see it: an endless stream of chunks through the host's shared
// segment, each chunk in one of `depth` buffers. Collectives follow each other in it without a barrier in between: a
// buffer is free for chunk k once every local rank is through with chunk k - depth.
class ChunkStream {
 public:
  ChunkStream(Transport& transport, Segment& segment, HostBells& bells)
      : topology_(transport.topology()),
        segment_(segment),
        bells_(bells),
        remote_(transport),
        local_ranks_(topology_.ranks_on(topology_.host())) {}

  const Topology& topology() const { return topology_; }
  Segment& segment() { return segment_; }
  RemoteChunks& remote() { return remote_; }
  std::size_t chunk_bytes() const { return segment_.plan().chunk_bytes; }
  std::span<const int> local_ranks() const { return local_ranks_; }
  bool one_host() const { return topology_.host_count() == 1; }
  int leader_of(int host) const { return topology_.ranks_on(host)[0]; }

  // Takes the next `count` chunks for a collective; returns the first.
  std::uint64_t reserve(std::uint64_t count) { return std::exchange(next_, next_ + count); }

  using Counter = std::atomic<std::uint64_t> ChunkProgress::*;
  // Chunk `chunk` is through this phase on that rank.
  bool passed(int rank, Counter counter, std::uint64_t chunk) {
    return (segment_.progress(rank).*counter).load(std::memory_order_acquire) > chunk;
  }
  bool passed_by_all_local(Counter counter, std::uint64_t chunk) {
    for (const int rank : local_ranks_) {
      if (!passed(rank, counter, chunk)) return false;
    }
    return true;
  }
  // This rank is through the phase with the chunk: says so and rings the host.
  void pass(Counter counter, std::uint64_t chunk) {
    (segment_.progress(topology_.rank()).*counter).store(chunk + 1, std::memory_order_release);
    bells_.ring_others();
  }
  bool buffer_free(std::uint64_t chunk) {
    const std::uint64_t depth = segment_.plan().depth;
    return chunk < depth || passed_by_all_local(&ChunkProgress::unpacked, chunk - depth);
  }
  // Takes in what has come from other hosts. True when something has.
  bool poll_remote() {
    if (one_host() || !remote_.poll()) return false;
    bells_.ring_others();
    return true;
  }

 private:
  const Topology& topology_;
  Segment& segment_;
  HostBells& bells_;
  RemoteChunks remote_;
  std::span<const int> local_ranks_;
  std::uint64_t next_ = 0;
};

}  // namespace hvd
