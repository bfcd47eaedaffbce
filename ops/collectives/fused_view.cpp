#include "collectives/fused_view.h"

#include <algorithm>
#include <cstring>

#include "cpu/copy.h"

namespace hvd {

template <typename Byte>
void FusedView<Byte>::append(Byte* data, std::size_t bytes) {
  if (bytes == 0) return;
  // Tensors that already lie one after the other are one piece.
  if (!pieces_.empty() && pieces_.back().data + pieces_.back().bytes == data) {
    pieces_.back().bytes += bytes;
  } else {
    pieces_.push_back({data, bytes_, bytes});
  }
  bytes_ += bytes;
}

template <typename Byte>
std::size_t FusedView<Byte>::piece_at(std::size_t offset) const {
  const auto holds = [&](const Piece& p) { return offset >= p.begin && offset < p.begin + p.bytes; };
  if (last_ < pieces_.size() && holds(pieces_[last_])) return last_;
  const auto next = std::ranges::upper_bound(pieces_, offset, {}, &Piece::begin);
  return static_cast<std::size_t>(next - pieces_.begin()) - 1;
}

template <typename Byte>
Byte* FusedView<Byte>::contiguous(std::size_t offset, std::size_t count) const {
  const Piece& piece = pieces_[piece_at(offset)];
  return offset + count <= piece.begin + piece.bytes ? piece.data + (offset - piece.begin) : nullptr;
}

template <typename Byte>
std::span<Byte> FusedView<Byte>::run(std::size_t offset) const {
  last_ = piece_at(offset);
  const Piece& piece = pieces_[last_];
  return {piece.data + (offset - piece.begin), piece.begin + piece.bytes - offset};
}

template class FusedView<const std::byte>;
template class FusedView<std::byte>;

void FusedInput::read(std::size_t offset, std::span<std::byte> into) const {
  for_each_part(offset, into.size(), [&](const std::byte* memory, std::size_t count, std::size_t at) {
    std::memcpy(into.data() + at, memory, count);
  });
}

void FusedOutput::write(std::size_t offset, std::span<const std::byte> from, bool past_caches) const {
  for_each_part(offset, from.size(), [&](std::byte* memory, std::size_t count, std::size_t at) {
    if (past_caches) {
      cpu::copy_past_caches(memory, from.data() + at, count);
    } else {
      std::memcpy(memory, from.data() + at, count);
    }
  });
}

}  // namespace hvd
