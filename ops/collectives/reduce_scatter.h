#pragma once

#include <vector>

#include "collectives/exchange.h"
#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "cpu/reduce.h"

namespace hvd {

// Reduce-scatter of a batch: each contributor packs the next part of its block for everyone into the chunk; each rank
// reduces the pieces meant for it, of all contributors in rank order on whatever hosts, straight into its output. Bytes
// in shared memory: n in, n read on each rank; across hosts: from each rank, each block to the leader of its
// destination's host.
class ReduceScatter final : public Exchange {
 public:
  // parts[d]: bytes of the result that rank d takes, whole elements, 0 unless it contributes. inputs[d]: this rank's
  // block for d; `output` has parts[own rank] bytes; both empty on a rank that has joined. Their memory outlives the
  // collective and does not overlap, but output may be the own block of the input.
  ReduceScatter(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction,
                std::vector<std::size_t> parts, std::vector<FusedInput> inputs, FusedOutput output);

 private:
  std::size_t block(int from, int to) const override {
    return participants_.contributes(from) ? parts_[static_cast<std::size_t>(to)] : 0;
  }
  bool reads(std::uint64_t chunk) const override;
  std::size_t unpack(std::uint64_t chunk) override;

  Participants participants_;
  cpu::Reduction reduction_;
  std::vector<std::size_t> parts_;
  FusedOutput output_;
};

}  // namespace hvd
