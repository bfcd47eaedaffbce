#include "collectives/allgather.h"

#include <algorithm>

namespace hvd {

Allgather::Allgather(ChunkStream& stream, Participants participants, std::vector<std::size_t> blocks, FusedInput input,
                     std::vector<FusedOutput> outputs)
    : SlotCollective(stream),
      participants_(std::move(participants)),
      blocks_(std::move(blocks)),
      input_(std::move(input)),
      outputs_(std::move(outputs)) {
  reserve((std::ranges::max(blocks_) + stream.chunk_bytes() - 1) / stream.chunk_bytes());
}

std::size_t Allgather::size(std::uint64_t chunk, int rank) const {
  const std::size_t block = blocks_[static_cast<std::size_t>(rank)];
  return begin(chunk) < block ? std::min(stream().chunk_bytes(), block - begin(chunk)) : 0;
}

SlotCollective::Range Allgather::read_on(std::uint64_t chunk, int rank, int host) const {
  if (!participants_.any_takes_on(host)) return {};
  return {0, size(chunk, rank)};
}

bool Allgather::reads(std::uint64_t /*chunk*/) const { return participants_.takes(topology().rank()); }

std::size_t Allgather::pack(std::uint64_t chunk, std::byte* slot) {
  const std::size_t bytes = size(chunk, topology().rank());
  input_.read(begin(chunk), {slot, bytes});
  return bytes;
}

std::size_t Allgather::unpack(std::uint64_t chunk) {
  std::size_t total = 0;
  for (int rank = 0; rank < topology().size(); ++rank) {
    const std::size_t bytes = size(chunk, rank);
    if (bytes == 0) continue;
    outputs_[static_cast<std::size_t>(rank)].write(begin(chunk), {slot(chunk, rank), bytes});
    total += bytes;
  }
  return total;
}

}  // namespace hvd
