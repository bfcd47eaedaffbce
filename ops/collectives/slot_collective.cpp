#include "collectives/slot_collective.h"

namespace hvd {

void SlotCollective::reserve(std::uint64_t count) {
  count_ = count;
  first_ = stream_.reserve(count);
}

// Unpacking first: it frees buffers and lets other ranks go on.
Progress SlotCollective::step() {
  if (unpacked_ == count_) return Progress::done;
  const bool arrived = stream_.poll_remote();
  if (unpack_next() || pack_next()) return unpacked_ == count_ ? Progress::done : Progress::advanced;
  return arrived ? Progress::advanced : Progress::waiting;
}

Phase SlotCollective::phase() const {
  if (unpacked_ == count_) return Phase::unpacked;
  return packed_ == count_ ? Phase::packed : Phase::started;
}

bool SlotCollective::packs(std::uint64_t chunk) const {
  for (int host = 0; host < topology().host_count(); ++host) {
    if (read_on(chunk, topology().rank(), host).size > 0) return true;
  }
  return false;
}

bool SlotCollective::receives(std::uint64_t chunk) const {
  if (!topology().is_leader() || stream_.one_host()) return false;
  for (int rank = 0; rank < topology().size(); ++rank) {
    if (!topology().is_local(rank) && read_on(chunk, rank, topology().host()).size > 0) return true;
  }
  return false;
}

void SlotCollective::expect(std::uint64_t chunk) {
  for (int rank = 0; rank < topology().size(); ++rank) {
    if (topology().is_local(rank)) continue;
    const Range range = read_on(chunk, rank, topology().host());
    if (range.size == 0) continue;
    std::byte* slot = stream_.buffers().slot(first_ + chunk, rank);
    stream_.remote().expect(first_ + chunk, rank, {slot + range.begin, range.size},
                            stream_.buffers().progress(rank).packed);
  }
}

bool SlotCollective::pack_next() {
  bool skipped = false;
  for (; packed_ < count_ && !packs(packed_) && !receives(packed_); ++packed_) skipped = true;
  const std::uint64_t chunk = packed_;
  if (chunk == count_ || !stream_.buffer_free(first_ + chunk)) return skipped;
  if (topology().is_leader() && !stream_.one_host()) expect(chunk);
  if (packs(chunk)) {
    std::byte* slot = stream_.buffers().slot(first_ + chunk, topology().rank());
    stream_.stats().bytes_packed += pack(chunk, slot);
    for (int host = 0; host < topology().host_count(); ++host) {
      if (host == topology().host()) continue;
      const Range range = read_on(chunk, topology().rank(), host);
      stream_.remote().send(first_ + chunk, stream_.leader_of(host), {slot + range.begin, range.size});
    }
    stream_.pass(&ChunkProgress::packed, first_ + chunk);
  }
  ++packed_;
  return true;
}

bool SlotCollective::all_there(std::uint64_t chunk) {
  for (; there_ < topology().size(); ++there_) {
    const bool is_read = read_on(chunk, there_, topology().host()).size > 0;
    if (is_read && !stream_.passed(there_, &ChunkProgress::packed, first_ + chunk)) return false;
  }
  return true;
}

// A leader is not through before all has come that it expects, though it may read nothing itself.
bool SlotCollective::unpack_next() {
  if (unpacked_ == packed_) return false;
  const std::uint64_t chunk = unpacked_;
  const bool is_reader = reads(chunk);
  if ((is_reader || receives(chunk)) && !all_there(chunk)) return false;
  if (!stream_.remote().sent(first_ + chunk)) return false;
  if (is_reader) stream_.stats().bytes_unpacked += unpack(chunk);
  there_ = 0;
  ++unpacked_;
  while (unpacked_ < packed_ && idle(unpacked_)) ++unpacked_;
  stream_.pass(&ChunkProgress::unpacked, first_ + unpacked_ - 1);
  return true;
}

}  // namespace hvd
