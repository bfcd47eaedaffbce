#pragma once

#include <cstdint>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"

namespace hvd {

// The root's data to everyone, chunk by chunk: the root packs into its slot and sends to the leaders of the other
// hosts, which receive into the root's slot of their segment; everyone else copies out of that slot.
class Broadcast final : public Collective {
 public:
  // `input` is read on the root only. In place: there it is the memory of `output` throughout, which is left alone
  // then.
  Broadcast(ChunkStream& stream, int root, bool in_place, FusedInput input, FusedOutput output);

  Progress step() override;
  Phase phase() const override;

 private:
  bool pack();
  bool unpack();
  std::size_t begin(std::uint64_t chunk) const { return (chunk - first_) * stream_.chunk_bytes(); }
  std::size_t size(std::uint64_t chunk) const;
  bool is_root() const { return stream_.topology().rank() == root_; }

  ChunkStream& stream_;
  int root_;
  bool in_place_;
  FusedInput input_;
  FusedOutput output_;
  std::uint64_t first_;
  std::uint64_t count_;
  std::uint64_t packed_ = 0;  // on the root: sent; on another host's leader: expected
  std::uint64_t unpacked_ = 0;
};

}  // namespace hvd
