#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shm/bell.h"
#include "shm/byte_ring.h"
#include "transport/transport.h"

namespace hvd {

// How far a rank has come in the stream of chunks of one process set. Counts only grow, over all collectives; a value
// of k says that chunks 0..k-1 are through that phase on that rank. Each rank writes its own and reads the others'.
struct ChunkProgress {
  alignas(64) std::atomic<std::uint64_t> packed{0};    // its slot holds its data
  alignas(64) std::atomic<std::uint64_t> partial{0};   // its slice of the host's sum is there
  alignas(64) std::atomic<std::uint64_t> reduced{0};   // its slice of the result is there
  alignas(64) std::atomic<std::uint64_t> unpacked{0};  // it needs nothing of the chunk any more
};

// Sizes of one host's shared segment; equal on all its ranks.
struct SegmentPlan {
  int ranks = 1;  // of the whole world: a remote rank's data lands in its slot, too
  int hosts = 1;
  int local_ranks = 1;
  std::size_t chunk_bytes = 0;
  std::size_t depth = 0;       // chunks under way at a time
  std::size_t ring_bytes = 0;  // one direction of one rank's control stream, a power of two

  // Keeps the segment within a budget by smaller chunks when there are many ranks.
  static SegmentPlan make(const Topology& topology, std::size_t chunk_bytes);
};

// The memory that the ranks of one host share: bells, control streams to and from the leader, progress counters and the
// chunk buffers of the data plane.
class Segment {
 public:
  static std::size_t bytes_for(const SegmentPlan& plan);
  // `memory` is zero-filled and of that size.
  Segment(const SegmentPlan& plan, std::unique_ptr<SharedMemory> memory);

  const SegmentPlan& plan() const { return plan_; }

  Bell& bell(int local_rank);
  ByteRing to_leader(int local_rank);
  ByteRing from_leader(int local_rank);
  ChunkProgress& progress(int rank);  // by global rank; a remote rank's `packed` is advanced by the leader

  std::byte* slot(std::uint64_t chunk, int rank);          // the rank's packed data
  std::byte* host_partial(std::uint64_t chunk, int host);  // accumulators summed over one host
  std::byte* result(std::uint64_t chunk);                  // the reduced chunk

 private:
  struct Layout;

  std::byte* buffer(std::uint64_t chunk, std::size_t index);

  SegmentPlan plan_;
  std::unique_ptr<SharedMemory> memory_;
  std::byte* base_;
};

}  // namespace hvd
