#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "shm/shared_arenas.h"
#include "transport/transport.h"

namespace hvd {

// How far a rank has come in the stream of chunks of one process set. Counts only grow, over all collectives; a value
// of k says that chunks 0..k-1 are through that phase on that rank, or that it has no part in them. Each rank writes
// its own; those of ranks on other hosts are advanced by the leader as their data comes in.
struct ChunkProgress {
  alignas(64) std::atomic<std::uint64_t> packed{0};    // its slot holds its data
  alignas(64) std::atomic<std::uint64_t> partial{0};   // its slice of the host's sum is there
  alignas(64) std::atomic<std::uint64_t> reduced{0};   // its slice of the result is there
  alignas(64) std::atomic<std::uint64_t> unpacked{0};  // it needs nothing of the chunk any more
  std::atomic<std::uint64_t> attached{0};              // it has the memory
};

// Where a rank's data of a chunk lies: in its slot, or where the pieces listed there say.
struct ArenaPiece {
  SharedArenas::Place place;
  std::uint64_t bytes = 0;
};
struct alignas(64) ChunkOrigin {
  std::uint32_t pieces = 0;  // 0: the slot holds the data
  bool in_place = false;     // it wants the result there
};

// Sizes of one process set's chunk buffers on one host; equal on all its ranks.
struct ChunkPlan {
  static constexpr std::size_t least_per_rank = 16;  // bytes of a chunk: the largest element or accumulator

  int ranks = 1;  // of the whole set: a remote rank's data lands in its slot, too
  int hosts = 1;
  std::size_t chunk_bytes = 0;
  std::size_t depth = 0;  // chunks under way at a time

  // `topology` is the set's. Keeps the buffers within a budget by smaller chunks when there are many ranks, but has
  // room for `least_per_rank` of every rank in each. chunk_bytes is a multiple of 64.
  static ChunkPlan make(const Topology& topology, std::size_t chunk_bytes);
};

// The memory through which the ranks of one process set on one host move data: their progress counters and the chunk
// buffers. Ranks are positions in the set.
class ChunkBuffers {
 public:
  static std::size_t bytes_for(const ChunkPlan& plan);
  // `memory` is zero-filled and of that size.
  ChunkBuffers(const ChunkPlan& plan, std::unique_ptr<SharedMemory> memory);

  const ChunkPlan& plan() const { return plan_; }
  // Messages may still be read from it: what owns it then must outlive them.
  std::unique_ptr<SharedMemory> release() { return std::move(memory_); }

  ChunkProgress& progress(int rank) { return reinterpret_cast<ChunkProgress*>(base_)[rank]; }

  ChunkOrigin& origin(std::uint64_t chunk, int rank);      // written by the rank before it has packed
  std::byte* slot(std::uint64_t chunk, int rank);          // the rank's packed data
  std::byte* host_partial(std::uint64_t chunk, int host);  // accumulators summed over one host
  std::byte* result(std::uint64_t chunk);                  // the reduced chunk

 private:
  std::byte* buffer(std::uint64_t chunk, int index);

  ChunkPlan plan_;
  std::unique_ptr<SharedMemory> memory_;
  std::byte* base_;
};

}  // namespace hvd
