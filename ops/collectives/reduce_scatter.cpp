#include "collectives/reduce_scatter.h"

#include <algorithm>

namespace hvd {

ReduceScatter::ReduceScatter(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction,
                             std::vector<std::size_t> parts, std::vector<FusedInput> inputs, FusedOutput output)
    : Exchange(stream, std::move(inputs)),
      participants_(std::move(participants)),
      reduction_(reduction),
      parts_(std::move(parts)),
      output_(std::move(output)) {
  reserve(chunks_for(std::ranges::max(parts_)));
}

bool ReduceScatter::reads(std::uint64_t chunk) const {
  return begin(chunk) < parts_[static_cast<std::size_t>(topology().rank())];
}

std::size_t ReduceScatter::unpack(std::uint64_t chunk) {
  const int me = topology().rank();
  const std::size_t bytes = size(chunk, participants_.contributors()[0], me);
  std::vector<const std::byte*> pieces;
  output_.for_each_part(begin(chunk), bytes, [&](std::byte* memory, std::size_t count, std::size_t at) {
    pieces.clear();
    for (const int from : participants_.contributors()) pieces.push_back(slot(chunk, from) + position(me) + at);
    cpu::reduce(reduction_, pieces, memory, count / size_of(reduction_.dtype));
  });
  return bytes;
}

}  // namespace hvd
