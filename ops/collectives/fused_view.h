#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "types/pooled.h"

namespace hvd {

// Several pieces of memory as if they lay one after the other: the tensors of a batch.
template <typename Byte>  // std::byte or const std::byte
class FusedView {
 public:
  void reserve(std::size_t pieces) { pieces_.reserve(pieces); }
  void append(Byte* data, std::size_t bytes);
  std::size_t bytes() const { return bytes_; }
  template <typename Other>
  bool same_memory(const FusedView<Other>& other) const {
    return std::ranges::equal(pieces_, other.pieces_,
                              [](const auto& a, const auto& b) { return a.data == b.data && a.bytes == b.bytes; });
  }
  // From there to the end of its piece.
  std::span<Byte> run(std::size_t offset) const;
  // The memory itself when [offset, offset + count) lies within one piece, else nullptr.
  Byte* contiguous(std::size_t offset, std::size_t count) const;
  // Calls visit(memory, count, position within the range) for each part of the range.
  template <typename Visit>
  void for_each_part(std::size_t offset, std::size_t count, const Visit& visit) const {
    for (std::size_t done = 0; done < count;) {
      last_ = piece_at(offset + done);
      const Piece& piece = pieces_[last_];
      const std::size_t skip = offset + done - piece.begin;
      const std::size_t part = std::min(count - done, piece.bytes - skip);
      visit(piece.data + skip, part, done);
      done += part;
    }
  }

 private:
  template <typename Other>
  friend class FusedView;

  struct Piece {
    Byte* data;
    std::size_t begin;  // position in the whole
    std::size_t bytes;
  };

  std::size_t piece_at(std::size_t offset) const;

  List<Piece> pieces_;  // none is empty
  std::size_t bytes_ = 0;
  mutable std::size_t last_ = 0;  // where the last access ended: accesses are mostly sequential
};

class FusedInput : public FusedView<const std::byte> {
 public:
  void read(std::size_t offset, std::span<std::byte> into) const;
};

class FusedOutput : public FusedView<std::byte> {
 public:
  // `past_caches`: nobody looks at it before the batch is through, which the caches do not hold.
  void write(std::size_t offset, std::span<const std::byte> from, bool past_caches = false) const;
};

}  // namespace hvd
