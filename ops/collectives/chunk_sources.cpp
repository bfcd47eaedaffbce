#include "collectives/chunk_sources.h"

#include <algorithm>
#include <limits>

namespace hvd {

ChunkSources::ChunkSources(ChunkStream& stream, std::span<const int> ranks, const FusedInput& own)
    : stream_(stream), own_(own), pointers_(ranks.size()) {
  for (const int rank : ranks) sources_.push_back({.rank = rank, .local_rank = stream.bell_of(rank)});
}

bool ChunkSources::refer(ChunkStream& stream, std::uint64_t chunk, std::size_t begin, std::size_t bytes,
                         const FusedInput& input, bool in_place) {
  if (stream.arenas() == nullptr) return false;
  const int rank = stream.topology().rank();
  auto* pieces = reinterpret_cast<ArenaPiece*>(stream.buffers().slot(chunk, rank));
  std::uint32_t count = 0;
  bool fits = true;
  input.for_each_part(begin, bytes, [&](const std::byte* memory, std::size_t part, std::size_t /*at*/) {
    const auto place = fits ? stream.arenas()->find(memory, part) : std::nullopt;
    fits = place && (count + 1) * sizeof(ArenaPiece) <= stream.chunk_bytes();
    if (fits) pieces[count++] = {.place = *place, .bytes = part};
  });
  if (fits) stream.buffers().origin(chunk, rank) = {.pieces = count, .in_place = in_place};
  return fits;
}

void ChunkSources::hold(ChunkStream& stream, std::uint64_t chunk) {
  stream.buffers().origin(chunk, stream.topology().rank()) = {};
}

void ChunkSources::open(std::uint64_t chunk, std::size_t begin) {
  begin_ = begin;
  for (Source& source : sources_) {
    const ChunkOrigin& origin = stream_.buffers().origin(chunk, source.rank);
    source.slot = stream_.buffers().slot(chunk, source.rank);
    source.pieces = {reinterpret_cast<const ArenaPiece*>(source.slot), origin.pieces};
    source.in_place = origin.in_place;
    source.piece_begin = 0;
  }
}

std::size_t ChunkSources::seek(std::size_t offset, std::size_t limit) {
  std::size_t bytes = limit;
  for (std::size_t i = 0; i < sources_.size(); ++i) bytes = std::min(bytes, seek(sources_[i], offset, pointers_[i]));
  return bytes;
}

std::size_t ChunkSources::seek(Source& source, std::size_t offset, const std::byte*& pointer) const {
  if (source.rank == stream_.topology().rank()) {
    const auto run = own_.run(begin_ + offset);
    pointer = run.data();
    return run.size();
  }
  if (source.pieces.empty()) {
    pointer = source.slot + offset;
    return std::numeric_limits<std::size_t>::max();
  }
  while (offset >= source.piece_begin + source.pieces.front().bytes) {
    source.piece_begin += source.pieces.front().bytes;
    source.pieces = source.pieces.subspan(1);
  }
  const ArenaPiece& piece = source.pieces.front();
  const std::size_t skip = offset - source.piece_begin;
  pointer = stream_.arenas()->at(piece.place, piece.bytes, source.local_rank) + skip;
  return piece.bytes - skip;
}

std::byte* ChunkSources::target(std::size_t index) const {
  const Source& source = sources_[index];
  const bool has_one = source.in_place && !source.pieces.empty() && source.rank != stream_.topology().rank();
  return has_one ? const_cast<std::byte*>(pointers_[index]) : nullptr;
}

}  // namespace hvd
