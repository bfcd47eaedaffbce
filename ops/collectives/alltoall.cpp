#include "collectives/alltoall.h"

#include <algorithm>

namespace hvd {

Alltoall::Alltoall(ChunkStream& stream, std::vector<std::vector<std::size_t>> blocks, std::vector<FusedInput> inputs,
                   std::vector<FusedOutput> outputs)
    : Exchange(stream, std::move(inputs)), blocks_(std::move(blocks)), outputs_(std::move(outputs)) {
  std::size_t largest = 0;
  for (int from = 0; from < topology().size(); ++from) {
    largest = std::max(largest, std::ranges::max(blocks_[static_cast<std::size_t>(from)]));
    largest_taken_ = std::max(largest_taken_, block(from, topology().rank()));
  }
  reserve(chunks_for(largest));
}

bool Alltoall::reads(std::uint64_t chunk) const { return begin(chunk) < largest_taken_; }

std::size_t Alltoall::unpack(std::uint64_t chunk) {
  const int me = topology().rank();
  std::size_t total = 0;
  for (int from = 0; from < topology().size(); ++from) {
    const std::size_t bytes = size(chunk, from, me);
    if (bytes == 0) continue;
    outputs_[static_cast<std::size_t>(from)].write(begin(chunk), {slot(chunk, from) + position(me), bytes});
    total += bytes;
  }
  return total;
}

}  // namespace hvd
