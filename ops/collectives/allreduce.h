#pragma once

#include <cstdint>
#include <vector>

#include "collectives/chunk_sources.h"
#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "cpu/reduce.h"

namespace hvd {

// Allreduce, and reduce to one rank, of a batch, chunk by chunk, in the order of ranks within a host and of hosts
// across them, so that every rank gets the same bits:
//
//   one host:   pack own slot ──► reduce own slice of all slots ──► unpack the result
//   several:    pack own slot ──► sum own slice of the host's slots ──► leaders exchange the hosts' sums
//                             ──► reduce own slice of the hosts' sums ──► unpack the result
//
// A rank may be in different phases with up to `depth` chunks. Slices are shared among the contributors of a host, each
// of which reads its own slice where it is and writes it where it belongs; only hosts that have a taker get sums and
// reduce them. A rank that has joined is through at once, unless it leads a host whose contributors need it to
// exchange. Small batches on one host take one round instead of two: every taker reduces everything itself. Data that
// lies in an arena, on one host, is neither packed nor unpacked: the others read and write it there. Bytes per rank in
// shared memory, with r ranks on the host: n (r - 1) / r in and as many out, none in an arena; across hosts (h of
// them): h - 1 times the chunk from each leader, or once where one rank takes.
class Allreduce final : public Collective {
 public:
  static constexpr std::size_t one_shot_bytes = std::size_t{8} << 10;

  // `bytes`: of the batch. `input` has them where this rank contributes, `output` where it takes; else they are empty.
  // Their memory outlives the collective and may be the same.
  Allreduce(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction, std::size_t bytes,
            FusedInput input, FusedOutput output);

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
  void reduce_slice(std::uint64_t chunk);
  bool others_unpack(std::uint64_t chunk) const;
  void take(std::uint64_t chunk);
  void reduce_in_one_shot();
  std::uint64_t through() const;                 // chunks that are through all phases before unpacking
  Range elements_of(std::uint64_t chunk) const;  // in the batch
  Range my_slice(std::uint64_t chunk) const;     // in the chunk; empty where this rank does not contribute
  // Calls visit(first byte, bytes), in the chunk, for what is not of this rank's slice.
  template <typename Visit>
  void for_others_slices(std::uint64_t chunk, const Visit& visit) const;
  std::size_t begin_of(std::uint64_t chunk) const { return elements_of(chunk).begin * element_bytes_; }
  bool refers(std::uint64_t chunk) const;         // to where its data lies
  bool lies_in_arena(std::uint64_t chunk) const;  // both input and output
  List<const std::byte*> slots(std::uint64_t chunk) const;
  bool hosts_summed(std::uint64_t chunk) const;

  ChunkStream& stream_;
  Participants participants_;
  cpu::Reduction reduction_;
  FusedInput input_;
  FusedOutput output_;
  int host_;
  std::span<const int> contributors_;  // on this host
  bool across_;                        // sums cross hosts
  bool exchanges_;                     // this rank sends and receives them
  bool takes_;
  std::size_t element_bytes_;
  std::size_t total_elements_;
  std::size_t chunk_elements_;
  bool one_shot_;
  bool may_refer_;  // to where its data lies
  bool in_place_;
  bool past_caches_;
  ChunkSources sources_;
  List<std::byte*> targets_;
  std::uint64_t count_;
  std::uint64_t first_;
  // Chunks that are through each phase on this rank; all of them where it has no part in the phase.
  std::uint64_t packed_ = 0;
  std::uint64_t summed_ = 0;
  std::uint64_t exchanged_ = 0;
  std::uint64_t reduced_ = 0;
  std::uint64_t unpacked_ = 0;
};

}  // namespace hvd
