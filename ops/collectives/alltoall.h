#pragma once

#include <vector>

#include "collectives/exchange.h"
#include "collectives/fused_view.h"

namespace hvd {

// Alltoall of a batch, of blocks of any sizes: each rank packs the next part of each of its blocks into the chunk, then
// copies the parts meant for it out of all slots. Bytes in shared memory: each block once in and once out; across
// hosts: each block once, to the leader of its destination's host.
class Alltoall final : public Exchange {
 public:
  // blocks[s][d]: bytes from s to d, 0 where one of them has joined. inputs[d]: this rank's block for d; outputs[s]:
  // where the block from s goes; both may be left empty where this rank gives or takes nothing at all. Their memory
  // outlives the collective.
  Alltoall(ChunkStream& stream, std::vector<std::vector<std::size_t>> blocks, std::vector<FusedInput> inputs,
           std::vector<FusedOutput> outputs);

 private:
  std::size_t block(int from, int to) const override {
    return blocks_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  bool reads(std::uint64_t chunk) const override;
  std::size_t unpack(std::uint64_t chunk) override;

  std::vector<std::vector<std::size_t>> blocks_;
  std::vector<FusedOutput> outputs_;
  std::size_t largest_taken_ = 0;
};

}  // namespace hvd
