#pragma once

#include <cstdint>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"

namespace hvd {

// Every rank's block to everyone, chunk by chunk: each rank packs its block into its slot and sends it to the leaders
// of the other hosts, which receive it into that rank's slot of their segment; everyone copies all slots out. Blocks
// may differ in size and be empty; the number of chunks is that of the largest block.
class Allgather final : public Collective {
 public:
  // outputs[r]: where rank r's block goes; its size is the block's. `input` has the size of outputs[own rank].
  Allgather(ChunkStream& stream, FusedInput input, std::vector<FusedOutput> outputs);

  Progress step() override;
  Phase phase() const override;

 private:
  bool pack();
  bool unpack();
  std::size_t begin(std::uint64_t chunk) const { return (chunk - first_) * stream_.chunk_bytes(); }
  std::size_t size(std::uint64_t chunk, int rank) const;

  ChunkStream& stream_;
  FusedInput input_;
  std::vector<FusedOutput> outputs_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t packed_ = 0;
  std::uint64_t unpacked_ = 0;
};

}  // namespace hvd
