#include "shm/chunk_buffers.h"

#include <algorithm>

namespace hvd {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }
constexpr std::size_t count(int value) { return static_cast<std::size_t>(value); }

// Order in memory: progress of all ranks, `depth` times all ranks' origins, then `depth` times the buffers of a chunk.
std::size_t counter_bytes(const ChunkPlan& plan) {
  return round_up(count(plan.ranks) * (sizeof(ChunkProgress) + plan.depth * sizeof(ChunkOrigin)), page);
}
std::size_t buffers_per_chunk(int ranks, int hosts) { return count(ranks) + count(hosts) + 1; }

}  // namespace

ChunkPlan ChunkPlan::make(const Topology& topology, std::size_t chunk_bytes) {
  constexpr std::size_t budget = std::size_t{64} << 20;
  constexpr std::size_t depth = 3;
  const std::size_t buffers = depth * buffers_per_chunk(topology.size(), topology.host_count());
  const std::size_t largest = std::max(page, budget / buffers / page * page);
  const std::size_t smallest = round_up(count(topology.size()) * least_per_rank, 64);
  return {.ranks = topology.size(),
          .hosts = topology.host_count(),
          .chunk_bytes = std::max(smallest, std::min(chunk_bytes, largest)),
          .depth = depth};
}

std::size_t ChunkBuffers::bytes_for(const ChunkPlan& plan) {
  return counter_bytes(plan) + plan.depth * buffers_per_chunk(plan.ranks, plan.hosts) * plan.chunk_bytes;
}

// The memory is zero-filled, which is the initial state of every counter: nothing is constructed, so that ranks may
// start using it in any order.
ChunkBuffers::ChunkBuffers(const ChunkPlan& plan, std::unique_ptr<SharedMemory> memory)
    : plan_(plan), memory_(std::move(memory)), base_(memory_->bytes().data()) {}

std::byte* ChunkBuffers::buffer(std::uint64_t chunk, int index) {
  const std::size_t buffers = (chunk % plan_.depth) * buffers_per_chunk(plan_.ranks, plan_.hosts) + count(index);
  return base_ + counter_bytes(plan_) + buffers * plan_.chunk_bytes;
}

ChunkOrigin& ChunkBuffers::origin(std::uint64_t chunk, int rank) {
  auto* origins = reinterpret_cast<ChunkOrigin*>(base_ + count(plan_.ranks) * sizeof(ChunkProgress));
  return origins[(chunk % plan_.depth) * count(plan_.ranks) + count(rank)];
}

std::byte* ChunkBuffers::slot(std::uint64_t chunk, int rank) { return buffer(chunk, rank); }
std::byte* ChunkBuffers::host_partial(std::uint64_t chunk, int host) { return buffer(chunk, plan_.ranks + host); }
std::byte* ChunkBuffers::result(std::uint64_t chunk) { return buffer(chunk, plan_.ranks + plan_.hosts); }

}  // namespace hvd
