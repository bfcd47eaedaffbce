#include "collectives/allgather.h"

#include <algorithm>

namespace hvd {

Allgather::Allgather(ChunkStream& stream, FusedInput input, std::vector<FusedOutput> outputs)
    : stream_(stream), input_(std::move(input)), outputs_(std::move(outputs)) {
  for (const FusedOutput& block : outputs_) {
    count_ = std::max<std::uint64_t>(count_, (block.bytes() + stream.chunk_bytes() - 1) / stream.chunk_bytes());
  }
  first_ = stream_.reserve(count_);
}

Progress Allgather::step() {
  if (unpacked_ == count_) return Progress::done;
  const bool arrived = stream_.poll_remote();
  if (unpack() || pack()) return unpacked_ == count_ ? Progress::done : Progress::advanced;
  return arrived ? Progress::advanced : Progress::waiting;
}

Phase Allgather::phase() const {
  if (unpacked_ == count_) return Phase::unpacked;
  return packed_ == count_ ? Phase::packed : Phase::started;
}

std::size_t Allgather::size(std::uint64_t chunk, int rank) const {
  const std::size_t block = outputs_[static_cast<std::size_t>(rank)].bytes();
  return begin(chunk) < block ? std::min(stream_.chunk_bytes(), block - begin(chunk)) : 0;
}

bool Allgather::pack() {
  const std::uint64_t chunk = first_ + packed_;
  if (packed_ == count_ || !stream_.buffer_free(chunk)) return false;
  const Topology& topology = stream_.topology();
  const int me = topology.rank();
  const std::span<std::byte> slot{stream_.segment().slot(chunk, me), size(chunk, me)};
  if (!slot.empty()) input_.read(begin(chunk), slot);
  for (int host = 0; host < topology.host_count(); ++host) {
    if (host == topology.host()) continue;
    stream_.remote().send(chunk, stream_.leader_of(host), slot);
    if (!topology.is_leader()) continue;
    for (const int rank : topology.ranks_on(host)) {
      stream_.remote().expect(chunk, rank, {stream_.segment().slot(chunk, rank), size(chunk, rank)},
                              stream_.segment().progress(rank).packed);
    }
  }
  ++packed_;
  stream_.pass(&ChunkProgress::packed, chunk);
  return true;
}

bool Allgather::unpack() {
  if (unpacked_ == packed_) return false;
  const std::uint64_t chunk = first_ + unpacked_;
  const int ranks = stream_.topology().size();
  for (int rank = 0; rank < ranks; ++rank) {
    if (!stream_.passed(rank, &ChunkProgress::packed, chunk)) return false;
  }
  if (!stream_.remote().sent(chunk)) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t bytes = size(chunk, rank);
    if (bytes == 0) continue;
    outputs_[static_cast<std::size_t>(rank)].write(begin(chunk), {stream_.segment().slot(chunk, rank), bytes});
  }
  ++unpacked_;
  stream_.pass(&ChunkProgress::unpacked, chunk);
  return true;
}

}  // namespace hvd
