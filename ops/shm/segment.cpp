#include "shm/segment.h"

#include <algorithm>

namespace hvd {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }
constexpr std::size_t count(int value) { return static_cast<std::size_t>(value); }

}  // namespace

// Order in memory: control blocks of the local ranks, progress of all ranks, ring data, chunk buffers.
struct Segment::Layout {
  struct Control {
    Bell bell;
    ByteRing::Header to_leader;
    ByteRing::Header from_leader;
  };

  explicit Layout(const SegmentPlan& plan)
      : progress(round_up(count(plan.local_ranks) * sizeof(Control), page)),
        rings(round_up(progress + count(plan.ranks) * sizeof(ChunkProgress), page)),
        buffers(round_up(rings + count(plan.local_ranks) * 2 * plan.ring_bytes, page)),
        buffers_per_chunk(count(plan.ranks) + count(plan.hosts) + 1),
        end(buffers + plan.depth * buffers_per_chunk * plan.chunk_bytes) {}

  std::size_t progress;
  std::size_t rings;
  std::size_t buffers;
  std::size_t buffers_per_chunk;
  std::size_t end;
};

SegmentPlan SegmentPlan::make(const Topology& topology, std::size_t chunk_bytes) {
  constexpr std::size_t budget = std::size_t{64} << 20;
  constexpr std::size_t depth = 3;
  const std::size_t buffers = depth * (count(topology.size()) + count(topology.host_count()) + 1);
  const std::size_t largest = std::max(page, budget / buffers / page * page);
  return {.ranks = topology.size(),
          .hosts = topology.host_count(),
          .local_ranks = topology.local_size(),
          .chunk_bytes = std::min(chunk_bytes, largest),
          .depth = depth,
          .ring_bytes = std::size_t{32} << 10};
}

std::size_t Segment::bytes_for(const SegmentPlan& plan) { return Layout(plan).end; }

Segment::Segment(const SegmentPlan& plan, std::unique_ptr<SharedMemory> memory)
    : plan_(plan), memory_(std::move(memory)), base_(memory_->bytes().data()) {
  // The memory is zero-filled, which is the initial state of every object in it: nothing is constructed, so that ranks
  // may start using it in any order.
}

Bell& Segment::bell(int local_rank) { return reinterpret_cast<Layout::Control*>(base_)[local_rank].bell; }

ByteRing Segment::to_leader(int local_rank) {
  auto& header = reinterpret_cast<Layout::Control*>(base_)[local_rank].to_leader;
  return {header, {base_ + Layout(plan_).rings + count(local_rank) * 2 * plan_.ring_bytes, plan_.ring_bytes}};
}

ByteRing Segment::from_leader(int local_rank) {
  auto& header = reinterpret_cast<Layout::Control*>(base_)[local_rank].from_leader;
  return {header, {base_ + Layout(plan_).rings + (count(local_rank) * 2 + 1) * plan_.ring_bytes, plan_.ring_bytes}};
}

ChunkProgress& Segment::progress(int rank) {
  return reinterpret_cast<ChunkProgress*>(base_ + Layout(plan_).progress)[rank];
}

std::byte* Segment::buffer(std::uint64_t chunk, std::size_t index) {
  const Layout layout(plan_);
  return base_ + layout.buffers + ((chunk % plan_.depth) * layout.buffers_per_chunk + index) * plan_.chunk_bytes;
}

std::byte* Segment::slot(std::uint64_t chunk, int rank) { return buffer(chunk, count(rank)); }
std::byte* Segment::host_partial(std::uint64_t chunk, int host) {
  return buffer(chunk, count(plan_.ranks) + count(host));
}
std::byte* Segment::result(std::uint64_t chunk) { return buffer(chunk, count(plan_.ranks) + count(plan_.hosts)); }

}  // namespace hvd
