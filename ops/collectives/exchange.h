#pragma once

#include <vector>

#include "collectives/fused_view.h"
#include "collectives/slot_collective.h"

namespace hvd {

// Base of alltoall and reduce-scatter: every rank has a block for every other. A slot is cut into one piece for each
// destination, in the order of hosts and ranks on them, so that one message holds all pieces for a host; the k-th chunk
// carries the k-th part of each block. The number of chunks is that of the largest block.
class Exchange : public SlotCollective {
 protected:
  // inputs[d]: this rank's block for d; empty where it gives nothing.
  Exchange(ChunkStream& stream, std::vector<FusedInput> inputs);
  // Bytes from one rank to another; the same answer on all ranks.
  virtual std::size_t block(int from, int to) const = 0;

  std::uint64_t chunks_for(std::size_t largest_block) const {
    return (largest_block + piece_bytes_ - 1) / piece_bytes_;
  }
  std::size_t begin(std::uint64_t chunk) const { return chunk * piece_bytes_; }                       // in each block
  std::size_t size(std::uint64_t chunk, int from, int to) const;                                      // of the part
  std::size_t position(int to) const { return order_[static_cast<std::size_t>(to)] * piece_bytes_; }  // in a slot

 private:
  Range read_on(std::uint64_t chunk, int rank, int host) const final;
  std::size_t pack(std::uint64_t chunk, std::byte* slot) final;

  std::vector<FusedInput> inputs_;
  std::size_t piece_bytes_;
  std::vector<std::size_t> order_;  // of the pieces, by destination
};

}  // namespace hvd
