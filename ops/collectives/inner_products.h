#pragma once

#include <span>
#include <vector>

#include <hvd/types.h>

#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "collectives/slot_collective.h"

namespace hvd {

// This rank's share of the inner products of all pairs of contributors, for each tensor of a batch: everyone packs its
// data into its slot, chunk by chunk, and multiplies its slice of all slots; summed over the contributors, the shares
// are the products. A chunk holds data of one tensor, so that the bits do not depend on what is fused. Bytes in shared
// memory: n in, and n read on each rank; across hosts: n from each rank to each other host that has a contributor.
class InnerProducts final : public SlotCollective {
 public:
  // counts[t]: elements of tensor t, all of which lie in `input` on a contributor. products[t *
  // pair_count(contributors)
  // + pair_index(i, j)] is added to; i and j count contributors. Empty on a rank that has joined.
  InnerProducts(ChunkStream& stream, const Participants& participants, DataType dtype,
                std::span<const std::size_t> counts, const FusedInput& input, std::span<double> products);

 private:
  struct Tensor {
    std::uint64_t end_chunk;
    std::uint64_t first_chunk;
    std::size_t begin;  // bytes in the input
    std::size_t count;  // elements
  };
  struct Part {
    std::size_t tensor;
    std::size_t begin;  // bytes in the input
    std::size_t count;  // elements
  };

  Range read_on(std::uint64_t chunk, int rank, int host) const override;
  bool reads(std::uint64_t chunk) const override;
  std::size_t pack(std::uint64_t chunk, std::byte* slot) override;
  std::size_t unpack(std::uint64_t chunk) override;
  Part part(std::uint64_t chunk) const;

  const Participants& participants_;
  DataType dtype_;
  std::size_t chunk_elements_;
  std::vector<Tensor> tensors_;
  const FusedInput& input_;
  std::span<double> products_;
};

}  // namespace hvd
