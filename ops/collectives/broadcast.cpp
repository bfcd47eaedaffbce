#include "collectives/broadcast.h"

#include <algorithm>

namespace hvd {

Broadcast::Broadcast(ChunkStream& stream, int root, bool in_place, FusedInput input, FusedOutput output)
    : stream_(stream),
      root_(root),
      in_place_(in_place),
      input_(std::move(input)),
      output_(std::move(output)),
      first_(0),
      count_((output_.bytes() + stream.chunk_bytes() - 1) / stream.chunk_bytes()) {
  first_ = stream_.reserve(count_);
}

Progress Broadcast::step() {
  if (unpacked_ == count_) return Progress::done;
  const bool arrived = stream_.poll_remote();
  if (unpack() || pack()) return unpacked_ == count_ ? Progress::done : Progress::advanced;
  return arrived ? Progress::advanced : Progress::waiting;
}

Phase Broadcast::phase() const {
  if (unpacked_ == count_) return Phase::unpacked;
  return packed_ == count_ ? Phase::packed : Phase::started;
}

std::size_t Broadcast::size(std::uint64_t chunk) const {
  return std::min(stream_.chunk_bytes(), output_.bytes() - begin(chunk));
}

bool Broadcast::pack() {
  const std::uint64_t chunk = first_ + packed_;
  if (packed_ == count_) return false;
  const Topology& topology = stream_.topology();
  const bool receives = topology.is_leader() && !topology.is_local(root_);
  if (!is_root() && !receives) {
    packed_ = count_;
    return false;
  }
  if (!stream_.buffer_free(chunk)) return false;
  const std::span<std::byte> slot{stream_.segment().slot(chunk, root_), size(chunk)};
  if (receives) {
    stream_.remote().expect(chunk, root_, slot, stream_.segment().progress(root_).packed);
  } else {
    input_.read(begin(chunk), slot);
    for (int host = 0; host < topology.host_count(); ++host) {
      if (host != topology.host()) stream_.remote().send(chunk, stream_.leader_of(host), slot);
    }
    stream_.pass(&ChunkProgress::packed, chunk);
  }
  ++packed_;
  return true;
}

bool Broadcast::unpack() {
  const std::uint64_t chunk = first_ + unpacked_;
  if (!stream_.passed(root_, &ChunkProgress::packed, chunk)) return false;
  if (is_root() && !stream_.remote().sent(chunk)) return false;
  if (!is_root() || !in_place_) {
    output_.write(begin(chunk), {stream_.segment().slot(chunk, root_), size(chunk)});
  }
  ++unpacked_;
  stream_.pass(&ChunkProgress::unpacked, chunk);
  return true;
}

}  // namespace hvd
