#pragma once

#include <cstdint>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"
#include "cpu/reduce.h"

namespace hvd {

// Allreduce of a batch, chunk by chunk, in the order of ranks within a host and of hosts across them, so that every
// rank gets the same bits:
//
//   one host:   pack own slot ──► reduce own slice of all slots ──► unpack the result
//   several:    pack own slot ──► sum own slice of the host's slots ──► leaders exchange the hosts' sums
//                             ──► reduce own slice of the hosts' sums ──► unpack the result
//
// A rank may be in different phases with up to `depth` chunks. Small batches on one host take one round instead of two:
// every rank reduces everything itself. Bytes per rank in shared memory: n in, n out; across hosts (h of them): h - 1
// times the chunk from each leader.
class Allreduce final : public Collective {
 public:
  static constexpr std::size_t one_shot_bytes = std::size_t{8} << 10;

  // Input and output have equal sizes; their memory outlives the collective.
  Allreduce(ChunkStream& stream, const cpu::Reduction& reduction, FusedInput input, FusedOutput output);

  Progress step() override;
  Phase phase() const override;

 private:
  struct Range {
    std::size_t begin;
    std::size_t count;
  };

  bool pack();
  bool sum_host();
  bool exchange_sums();
  bool reduce();
  bool unpack();
  bool unpack_one_shot();
  Range elements_of(std::uint64_t chunk) const;  // in the batch
  Range my_slice(std::uint64_t chunk) const;     // in the chunk
  std::vector<const std::byte*> local_slots(std::uint64_t chunk, std::size_t first_element) const;
  bool hosts_summed(std::uint64_t chunk) const;

  ChunkStream& stream_;
  cpu::Reduction reduction_;
  FusedInput input_;
  FusedOutput output_;
  std::size_t element_bytes_;
  std::size_t total_elements_;
  std::size_t chunk_elements_;
  bool one_shot_;
  std::uint64_t first_;
  std::uint64_t count_;
  // Chunks that are through each phase on this rank.
  std::uint64_t packed_ = 0;
  std::uint64_t summed_ = 0;
  std::uint64_t exchanged_ = 0;  // leaders
  std::uint64_t reduced_ = 0;
  std::uint64_t unpacked_ = 0;
};

}  // namespace hvd
