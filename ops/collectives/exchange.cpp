#include "collectives/exchange.h"

#include <algorithm>
#include <utility>

namespace hvd {

namespace {

// Whole cache lines where there is room for one, else whole elements of any type.
std::size_t piece_bytes(const ChunkStream& stream) {
  constexpr std::size_t line = 64;
  const std::size_t share = stream.chunk_bytes() / static_cast<std::size_t>(stream.topology().size());
  const std::size_t step = share < line ? ChunkPlan::least_per_rank : line;
  return share / step * step;
}

}  // namespace

Exchange::Exchange(ChunkStream& stream, std::vector<FusedInput> inputs)
    : SlotCollective(stream),
      inputs_(std::move(inputs)),
      piece_bytes_(piece_bytes(stream)),
      order_(static_cast<std::size_t>(stream.topology().size())) {
  std::size_t next = 0;
  for (int host = 0; host < topology().host_count(); ++host) {
    for (const int rank : topology().ranks_on(host)) order_[static_cast<std::size_t>(rank)] = next++;
  }
}

std::size_t Exchange::size(std::uint64_t chunk, int from, int to) const {
  const std::size_t bytes = block(from, to);
  return begin(chunk) < bytes ? std::min(piece_bytes_, bytes - begin(chunk)) : 0;
}

// From the first piece that is not empty to the end of the last.
SlotCollective::Range Exchange::read_on(std::uint64_t chunk, int rank, int host) const {
  Range range;
  for (const int to : topology().ranks_on(host)) {
    const std::size_t bytes = size(chunk, rank, to);
    if (bytes == 0) continue;
    if (range.size == 0) range.begin = position(to);
    range.size = position(to) + bytes - range.begin;
  }
  return range;
}

std::size_t Exchange::pack(std::uint64_t chunk, std::byte* slot) {
  std::size_t total = 0;
  for (int to = 0; to < topology().size(); ++to) {
    const std::size_t bytes = size(chunk, topology().rank(), to);
    if (bytes == 0) continue;
    inputs_[static_cast<std::size_t>(to)].read(begin(chunk), {slot + position(to), bytes});
    total += bytes;
  }
  return total;
}

}  // namespace hvd
