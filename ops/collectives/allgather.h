#pragma once

#include <vector>

#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "collectives/slot_collective.h"

namespace hvd {

// Allgather, and gather to one rank, of a batch: each rank packs its block into its slot, chunk by chunk; those who
// take copy all slots out. Blocks may differ in size and be empty; the number of chunks is that of the largest block.
// Bytes in shared memory: each rank's block once in, all blocks out on each taker; across hosts: each block once to
// each other host that has a taker.
class Allgather final : public SlotCollective {
 public:
  // blocks[r]: bytes that rank r gives, 0 unless it contributes. `input` has blocks[own rank] bytes. outputs[r]: where
  // rank r's block goes; empty on a rank that takes nothing. Their memory outlives the collective.
  Allgather(ChunkStream& stream, Participants participants, std::vector<std::size_t> blocks, FusedInput input,
            std::vector<FusedOutput> outputs);

 private:
  Range read_on(std::uint64_t chunk, int rank, int host) const override;
  bool reads(std::uint64_t chunk) const override;
  std::size_t pack(std::uint64_t chunk, std::byte* slot) override;
  std::size_t unpack(std::uint64_t chunk) override;
  std::size_t begin(std::uint64_t chunk) const { return chunk * stream().chunk_bytes(); }
  std::size_t size(std::uint64_t chunk, int rank) const;

  Participants participants_;
  std::vector<std::size_t> blocks_;
  FusedInput input_;
  std::vector<FusedOutput> outputs_;
};

}  // namespace hvd
