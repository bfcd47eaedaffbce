#pragma once

#include "collectives/scatter.h"

namespace hvd {

// Broadcast of a batch: a scatter of which everyone's part is the whole.
class Broadcast final : public Scatter {
 public:
  // As for Scatter. In place: `input` is the memory of `output` throughout on the root, which is left alone there.
  Broadcast(ChunkStream& stream, const Participants& participants, int root, std::size_t bytes, bool in_place,
            FusedInput input, FusedOutput output)
      : Scatter(stream, participants, root, bytes, std::move(input),
                windows(stream.topology().rank(), participants, root, bytes, in_place), std::move(output)) {}

 private:
  static std::vector<Window> windows(int rank, const Participants& participants, int root, std::size_t bytes,
                                     bool in_place) {
    if (!participants.contributes(rank) || (rank == root && in_place)) return {};
    return {{0, bytes}};
  }
};

}  // namespace hvd
