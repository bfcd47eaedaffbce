#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/fused_view.h"

namespace hvd {

// Where some ranks of this host have the elements of a chunk: this rank in its tensors, another one in its tensors,
// too, if they lie in an arena and it has said so, else in its slot.
class ChunkSources {
 public:
  ChunkSources(ChunkStream& stream, std::span<const int> ranks, const FusedInput& own);

  // Instead of packing: says to the ranks of this host where this part of the batch lies, if that is possible.
  // `in_place`: the results may be stored there.
  static bool refer(ChunkStream& stream, std::uint64_t chunk, std::size_t begin, std::size_t bytes,
                    const FusedInput& input, bool in_place);
  // The slot holds the data.
  static void hold(ChunkStream& stream, std::uint64_t chunk);

  // Of this chunk, which begins at that byte of the batch. All ranks have packed it.
  void open(std::uint64_t chunk, std::size_t begin);
  // Looks up the byte `offset` of the chunk, which only grows; returns how many bytes, at most `limit`, lie together.
  std::size_t seek(std::size_t offset, std::size_t limit);
  // By rank, in the order given.
  std::span<const std::byte* const> pointers() const { return pointers_; }
  // Where that rank, another than this, wants its result if it is there where its data is, else nullptr.
  std::byte* target(std::size_t index) const;

 private:
  struct Source {
    int rank = 0;
    int local_rank = 0;  // of the world
    const std::byte* slot = nullptr;
    std::span<const ArenaPiece> pieces = {};  // none: in the slot
    bool in_place = false;
    std::size_t piece_begin = 0;  // of the first of `pieces`, in the chunk
  };

  std::size_t seek(Source& source, std::size_t offset, const std::byte*& pointer) const;

  ChunkStream& stream_;
  const FusedInput& own_;
  std::size_t begin_ = 0;
  List<Source> sources_;
  List<const std::byte*> pointers_;
};

}  // namespace hvd
