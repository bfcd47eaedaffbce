#pragma once

#include <vector>

#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "collectives/slot_collective.h"

namespace hvd {

// Scatter of a batch: the root packs all of its data into its slot, chunk by chunk; every rank copies its own part out
// of it. Bytes in shared memory: all in, each part out; across hosts: all of it to each other host that has a
// contributor.
class Scatter : public SlotCollective {
 public:
  // Bytes [begin, begin + size) of the root's data.
  struct Window {
    std::size_t begin;
    std::size_t size;
  };

  // The contributors are those who have not joined; the root is one of them. `bytes` of data lie in `input` on the
  // root, which others leave empty. `output` is this rank's part: its windows one after the other, which ascend and do
  // not overlap. The memory outlives the collective.
  Scatter(ChunkStream& stream, Participants participants, int root, std::size_t bytes, FusedInput input,
          const std::vector<Window>& windows, FusedOutput output);

 private:
  struct Part {
    Window window;
    std::size_t at;  // in the output
  };

  Range read_on(std::uint64_t chunk, int rank, int host) const final;
  bool reads(std::uint64_t chunk) const final;
  std::size_t pack(std::uint64_t chunk, std::byte* slot) final;
  std::size_t unpack(std::uint64_t chunk) final;
  std::size_t begin(std::uint64_t chunk) const { return chunk * stream().chunk_bytes(); }
  std::size_t end(std::uint64_t chunk) const;
  std::vector<Part>::const_iterator first_part(std::uint64_t chunk) const;

  Participants participants_;
  int root_;
  std::size_t bytes_;
  FusedInput input_;
  std::vector<Part> parts_;  // none is empty
  FusedOutput output_;
};

}  // namespace hvd
