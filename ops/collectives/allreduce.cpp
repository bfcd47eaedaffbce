#include "collectives/allreduce.h"

#include <algorithm>
#include <array>

namespace hvd {

namespace {

// Elements per chunk: as many as fit, as accumulators where sums cross hosts, in whole cache lines where there is room
// for one.
std::size_t elements_per_chunk(const ChunkStream& stream, const cpu::Reduction& reduction) {
  constexpr std::size_t line = 64;
  const std::size_t largest = stream.one_host() ? size_of(reduction.dtype)
                                                : std::max(size_of(reduction.dtype), cpu::accumulator_size(reduction));
  const std::size_t fitting = stream.chunk_bytes() / largest;
  return fitting < line ? fitting : fitting / line * line;
}

}  // namespace

Allreduce::Allreduce(ChunkStream& stream, const cpu::Reduction& reduction, FusedInput input, FusedOutput output)
    : stream_(stream),
      reduction_(reduction),
      input_(std::move(input)),
      output_(std::move(output)),
      element_bytes_(size_of(reduction.dtype)),
      total_elements_(input_.bytes() / element_bytes_),
      chunk_elements_(elements_per_chunk(stream, reduction)),
      one_shot_(stream.one_host() && input_.bytes() <= std::min(one_shot_bytes, chunk_elements_ * element_bytes_)),
      first_(0),
      count_((total_elements_ + chunk_elements_ - 1) / chunk_elements_) {
  first_ = stream_.reserve(count_);
}

// Later phases first: they free buffers and let other ranks go on.
Progress Allreduce::step() {
  if (unpacked_ == count_) return Progress::done;
  const bool arrived = stream_.poll_remote();
  if (unpack() || reduce() || exchange_sums() || sum_host() || pack()) {
    return unpacked_ == count_ ? Progress::done : Progress::advanced;
  }
  return arrived ? Progress::advanced : Progress::waiting;
}

Phase Allreduce::phase() const {
  if (unpacked_ == count_) return Phase::unpacked;
  if (reduced_ == count_) return Phase::reduced;
  return packed_ == count_ ? Phase::packed : Phase::started;
}

bool Allreduce::pack() {
  const std::uint64_t chunk = first_ + packed_;
  if (packed_ == count_ || !stream_.buffer_free(chunk)) return false;
  const Range range = elements_of(chunk);
  std::byte* slot = stream_.segment().slot(chunk, stream_.topology().rank());
  input_.read(range.begin * element_bytes_, {slot, range.count * element_bytes_});
  ++packed_;
  stream_.pass(&ChunkProgress::packed, chunk);
  return true;
}

bool Allreduce::sum_host() {
  if (stream_.one_host() || summed_ == packed_) return false;
  const std::uint64_t chunk = first_ + summed_;
  if (!stream_.passed_by_all_local(&ChunkProgress::packed, chunk)) return false;
  const Range slice = my_slice(chunk);
  const std::size_t bytes = cpu::accumulator_size(reduction_);
  std::byte* sum = stream_.segment().host_partial(chunk, stream_.topology().host()) + slice.begin * bytes;
  cpu::reduce_to_accumulators(reduction_, local_slots(chunk, slice.begin), sum, slice.count);
  ++summed_;
  stream_.pass(&ChunkProgress::partial, chunk);
  return true;
}

// Leader: sends this host's sum, once complete, to the other leaders; theirs land beside it.
bool Allreduce::exchange_sums() {
  const std::uint64_t chunk = first_ + exchanged_;
  if (exchanged_ == summed_ || !stream_.topology().is_leader()) return false;
  if (!stream_.passed_by_all_local(&ChunkProgress::partial, chunk)) return false;
  const int here = stream_.topology().host();
  const std::size_t bytes = elements_of(chunk).count * cpu::accumulator_size(reduction_);
  for (int host = 0; host < stream_.topology().host_count(); ++host) {
    if (host == here) continue;
    const int leader = stream_.leader_of(host);
    stream_.remote().expect(chunk, leader, {stream_.segment().host_partial(chunk, host), bytes},
                            stream_.segment().progress(leader).partial);
    stream_.remote().send(chunk, leader, {stream_.segment().host_partial(chunk, here), bytes});
  }
  ++exchanged_;
  return true;
}

bool Allreduce::hosts_summed(std::uint64_t chunk) const {
  for (int host = 0; host < stream_.topology().host_count(); ++host) {
    if (!stream_.passed(stream_.leader_of(host), &ChunkProgress::partial, chunk)) return false;
  }
  return stream_.passed_by_all_local(&ChunkProgress::partial, chunk);
}

bool Allreduce::reduce() {
  if (one_shot_ || reduced_ == packed_) return false;
  const std::uint64_t chunk = first_ + reduced_;
  const Range slice = my_slice(chunk);
  std::byte* result = stream_.segment().result(chunk) + slice.begin * element_bytes_;
  if (stream_.one_host()) {
    if (!stream_.passed_by_all_local(&ChunkProgress::packed, chunk)) return false;
    cpu::reduce(reduction_, local_slots(chunk, slice.begin), result, slice.count);
  } else {
    if (reduced_ == summed_ || !hosts_summed(chunk)) return false;
    std::vector<const std::byte*> sums;
    for (int host = 0; host < stream_.topology().host_count(); ++host) {
      sums.push_back(stream_.segment().host_partial(chunk, host) + slice.begin * cpu::accumulator_size(reduction_));
    }
    cpu::reduce_accumulators(reduction_, sums, result, slice.count);
  }
  ++reduced_;
  stream_.pass(&ChunkProgress::reduced, chunk);
  return true;
}

bool Allreduce::unpack() {
  if (one_shot_) return unpack_one_shot();
  if (unpacked_ == reduced_) return false;
  const std::uint64_t chunk = first_ + unpacked_;
  if (!stream_.passed_by_all_local(&ChunkProgress::reduced, chunk) || !stream_.remote().sent(chunk)) return false;
  const Range range = elements_of(chunk);
  output_.write(range.begin * element_bytes_, {stream_.segment().result(chunk), range.count * element_bytes_});
  ++unpacked_;
  stream_.pass(&ChunkProgress::unpacked, chunk);
  return true;
}

bool Allreduce::unpack_one_shot() {
  if (packed_ == 0 || !stream_.passed_by_all_local(&ChunkProgress::packed, first_)) return false;
  alignas(64) std::array<std::byte, one_shot_bytes> scratch;
  std::byte* direct = output_.contiguous(0, output_.bytes());
  std::byte* target = direct != nullptr ? direct : scratch.data();
  cpu::reduce(reduction_, local_slots(first_, 0), target, total_elements_);
  if (direct == nullptr) output_.write(0, {scratch.data(), output_.bytes()});
  reduced_ = unpacked_ = 1;
  stream_.pass(&ChunkProgress::unpacked, first_);
  return true;
}

Allreduce::Range Allreduce::elements_of(std::uint64_t chunk) const {
  const std::size_t begin = (chunk - first_) * chunk_elements_;
  return {begin, std::min(chunk_elements_, total_elements_ - begin)};
}

// Equal shares in whole cache lines, so that no two ranks write to one line.
Allreduce::Range Allreduce::my_slice(std::uint64_t chunk) const {
  const std::size_t count = elements_of(chunk).count;
  const auto ranks = static_cast<std::size_t>(stream_.topology().local_size());
  const std::size_t line = 64 / element_bytes_;
  const std::size_t share = ((count + ranks - 1) / ranks + line - 1) / line * line;
  const std::size_t begin = std::min(count, share * static_cast<std::size_t>(stream_.topology().local_rank()));
  return {begin, std::min(share, count - begin)};
}

std::vector<const std::byte*> Allreduce::local_slots(std::uint64_t chunk, std::size_t first_element) const {
  std::vector<const std::byte*> slots;
  for (const int rank : stream_.local_ranks()) {
    slots.push_back(stream_.segment().slot(chunk, rank) + first_element * element_bytes_);
  }
  return slots;
}

}  // namespace hvd
