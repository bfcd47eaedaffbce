#include "collectives/allreduce.h"

#include <algorithm>
#include <array>

namespace hvd {

namespace {

// Elements per chunk: as many as fit, as accumulators where sums cross hosts, in whole cache lines where there is room
// for one.
std::size_t elements_per_chunk(const ChunkStream& stream, const cpu::Reduction& reduction, bool across) {
  constexpr std::size_t line = 64;
  const std::size_t largest =
      across ? std::max(size_of(reduction.dtype), cpu::accumulator_size(reduction)) : size_of(reduction.dtype);
  const std::size_t fitting = stream.chunk_bytes() / largest;
  return fitting < line ? fitting : fitting / line * line;
}

}  // namespace

Allreduce::Allreduce(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction, std::size_t bytes,
                     FusedInput input, FusedOutput output)
    : stream_(stream),
      participants_(std::move(participants)),
      reduction_(reduction),
      input_(std::move(input)),
      output_(std::move(output)),
      host_(stream.topology().host()),
      contributors_(participants_.contributors_on(host_)),
      across_(participants_.contributing_hosts().size() > 1),
      exchanges_(across_ && stream.topology().is_leader() && !contributors_.empty()),
      takes_(participants_.takes(stream.topology().rank())),
      element_bytes_(size_of(reduction.dtype)),
      total_elements_(bytes / element_bytes_),
      chunk_elements_(elements_per_chunk(stream, reduction, across_)),
      one_shot_(!across_ && bytes <= std::min(one_shot_bytes, chunk_elements_ * element_bytes_)),
      count_((total_elements_ + chunk_elements_ - 1) / chunk_elements_),
      first_(stream.reserve(count_)) {
  const bool contributes = participants_.contributes(stream.topology().rank());
  const bool reduces = contributes && participants_.any_takes_on(host_) && !one_shot_;
  if (!contributes) packed_ = count_;
  if (!contributes || !across_) summed_ = count_;
  if (!exchanges_) exchanged_ = count_;
  if (!reduces) reduced_ = count_;
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
  if (packed_ < count_) return Phase::started;
  return reduced_ == count_ && !one_shot_ ? Phase::reduced : Phase::packed;
}

bool Allreduce::pack() {
  const std::uint64_t chunk = first_ + packed_;
  if (packed_ == count_ || !stream_.buffer_free(chunk)) return false;
  const Range range = elements_of(chunk);
  const std::size_t bytes = range.count * element_bytes_;
  input_.read(range.begin * element_bytes_, {stream_.buffers().slot(chunk, stream_.topology().rank()), bytes});
  stream_.stats().bytes_packed += bytes;
  ++packed_;
  stream_.pass(&ChunkProgress::packed, chunk);
  return true;
}

bool Allreduce::sum_host() {
  if (summed_ >= packed_) return false;
  const std::uint64_t chunk = first_ + summed_;
  if (!stream_.passed_by_all(contributors_, &ChunkProgress::packed, chunk)) return false;
  const Range slice = my_slice(chunk);
  const std::size_t bytes = cpu::accumulator_size(reduction_);
  std::byte* sum = stream_.buffers().host_partial(chunk, host_) + slice.begin * bytes;
  cpu::reduce_to_accumulators(reduction_, local_slots(chunk, slice.begin), sum, slice.count);
  ++summed_;
  stream_.pass(&ChunkProgress::partial, chunk);
  return true;
}

// Leader: sends this host's sum, once complete, to the leaders of hosts that take; theirs land beside it if this does.
bool Allreduce::exchange_sums() {
  if (exchanged_ >= summed_) return false;
  const std::uint64_t chunk = first_ + exchanged_;
  if (!stream_.passed_by_all(contributors_, &ChunkProgress::partial, chunk)) return false;
  const std::size_t bytes = elements_of(chunk).count * cpu::accumulator_size(reduction_);
  for (const int host : participants_.contributing_hosts()) {
    if (host == host_) continue;
    const int leader = stream_.leader_of(host);
    if (participants_.any_takes_on(host_)) {
      stream_.remote().expect(chunk, leader, {stream_.buffers().host_partial(chunk, host), bytes},
                              stream_.buffers().progress(leader).partial);
    }
    if (participants_.any_takes_on(host)) {
      stream_.remote().send(chunk, leader, {stream_.buffers().host_partial(chunk, host_), bytes});
    }
  }
  ++exchanged_;
  return true;
}

bool Allreduce::hosts_summed(std::uint64_t chunk) const {
  for (const int host : participants_.contributing_hosts()) {
    if (host != host_ && !stream_.passed(stream_.leader_of(host), &ChunkProgress::partial, chunk)) return false;
  }
  return stream_.passed_by_all(contributors_, &ChunkProgress::partial, chunk);
}

bool Allreduce::reduce() {
  if (reduced_ >= std::min(packed_, summed_)) return false;
  const std::uint64_t chunk = first_ + reduced_;
  const Range slice = my_slice(chunk);
  std::byte* result = stream_.buffers().result(chunk) + slice.begin * element_bytes_;
  if (across_) {
    if (!hosts_summed(chunk)) return false;
    std::vector<const std::byte*> sums;
    for (const int host : participants_.contributing_hosts()) {
      sums.push_back(stream_.buffers().host_partial(chunk, host) + slice.begin * cpu::accumulator_size(reduction_));
    }
    cpu::reduce_accumulators(reduction_, sums, result, slice.count);
  } else {
    if (!stream_.passed_by_all(contributors_, &ChunkProgress::packed, chunk)) return false;
    cpu::reduce(reduction_, local_slots(chunk, slice.begin), result, slice.count);
  }
  ++reduced_;
  stream_.pass(&ChunkProgress::reduced, chunk);
  return true;
}

std::uint64_t Allreduce::through() const { return std::min({packed_, summed_, exchanged_, reduced_}); }

// Also where nothing is taken: says that this rank, and what it leads, needs nothing of the chunk any more.
bool Allreduce::unpack() {
  if (unpacked_ >= through()) return false;
  const std::uint64_t chunk = first_ + unpacked_;
  if (takes_) {
    const auto counter = one_shot_ ? &ChunkProgress::packed : &ChunkProgress::reduced;
    if (!stream_.passed_by_all(contributors_, counter, chunk)) return false;
  }
  if (exchanges_) {
    if (participants_.any_takes_on(host_) && !hosts_summed(chunk)) return false;
    if (!stream_.remote().sent(chunk)) return false;
  }
  if (takes_) take(chunk);
  const bool has_joined = !participants_.contributes(stream_.topology().rank()) && !exchanges_;
  unpacked_ = has_joined ? count_ : unpacked_ + 1;
  stream_.pass(&ChunkProgress::unpacked, first_ + unpacked_ - 1);
  return true;
}

void Allreduce::take(std::uint64_t chunk) {
  const Range range = elements_of(chunk);
  const std::size_t bytes = range.count * element_bytes_;
  if (one_shot_) {
    reduce_in_one_shot();
  } else {
    output_.write(range.begin * element_bytes_, {stream_.buffers().result(chunk), bytes});
  }
  stream_.stats().bytes_unpacked += bytes;
}

void Allreduce::reduce_in_one_shot() {
  alignas(64) std::array<std::byte, one_shot_bytes> scratch;
  std::byte* direct = output_.contiguous(0, output_.bytes());
  std::byte* target = direct != nullptr ? direct : scratch.data();
  cpu::reduce(reduction_, local_slots(first_, 0), target, total_elements_);
  if (direct == nullptr) output_.write(0, {scratch.data(), output_.bytes()});
}

Allreduce::Range Allreduce::elements_of(std::uint64_t chunk) const {
  const std::size_t begin = (chunk - first_) * chunk_elements_;
  return {begin, std::min(chunk_elements_, total_elements_ - begin)};
}

// Equal shares of the host's contributors in whole cache lines, so that no two ranks write to one line.
Allreduce::Range Allreduce::my_slice(std::uint64_t chunk) const {
  const std::size_t count = elements_of(chunk).count;
  const std::size_t ranks = contributors_.size();
  const auto index = std::ranges::lower_bound(contributors_, stream_.topology().rank()) - contributors_.begin();
  const std::size_t line = 64 / element_bytes_;
  const std::size_t share = ((count + ranks - 1) / ranks + line - 1) / line * line;
  const std::size_t begin = std::min(count, share * static_cast<std::size_t>(index));
  return {begin, std::min(share, count - begin)};
}

std::vector<const std::byte*> Allreduce::local_slots(std::uint64_t chunk, std::size_t first_element) const {
  std::vector<const std::byte*> slots;
  for (const int rank : contributors_) {
    slots.push_back(stream_.buffers().slot(chunk, rank) + first_element * element_bytes_);
  }
  return slots;
}

}  // namespace hvd
