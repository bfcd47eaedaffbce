#include "collectives/allreduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/copy.h"

namespace hvd {

namespace {

// Results of batches from here on go around the caches, unless they replace their inputs, which the caches hold.
constexpr std::size_t cached_bytes = std::size_t{3} << 20;

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
      may_refer_(!across_ && !one_shot_ && participants_.contributes(stream.topology().rank())),
      in_place_(output_.same_memory(input_)),
      past_caches_(!in_place_ && bytes >= cached_bytes),
      sources_(stream, contributors_, input_),
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
  const std::size_t begin = begin_of(chunk);
  std::byte* slot = stream_.buffers().slot(chunk, stream_.topology().rank());
  if (one_shot_) {
    input_.read(begin, {slot, range.count * element_bytes_});
    stream_.stats().bytes_packed += range.count * element_bytes_;
  } else if (!may_refer_ ||
             !ChunkSources::refer(stream_, chunk, begin, range.count * element_bytes_, input_, in_place_)) {
    ChunkSources::hold(stream_, chunk);
    for_others_slices(chunk, [&](std::size_t at, std::size_t bytes) {
      input_.read(begin + at, {slot + at, bytes});
      stream_.stats().bytes_packed += bytes;
    });
  }
  ++packed_;
  stream_.pass(&ChunkProgress::packed, chunk);
  return true;
}

bool Allreduce::sum_host() {
  if (summed_ >= packed_) return false;
  const std::uint64_t chunk = first_ + summed_;
  if (!stream_.passed_by_all(contributors_, &ChunkProgress::packed, chunk)) return false;
  const Range slice = my_slice(chunk);
  std::byte* sums = stream_.buffers().host_partial(chunk, host_);
  sources_.open(chunk, begin_of(chunk));
  for (std::size_t at = slice.begin, end = slice.begin + slice.count; at < end;) {
    const std::size_t count = sources_.seek(at * element_bytes_, (end - at) * element_bytes_) / element_bytes_;
    std::byte* sum = sums + at * cpu::accumulator_size(reduction_);
    cpu::reduce_to_accumulators(reduction_, sources_.pointers(), sum, count);
    at += count;
  }
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
  if (across_) {
    if (!hosts_summed(chunk)) return false;
    const Range slice = my_slice(chunk);
    std::byte* result = stream_.buffers().result(chunk) + slice.begin * element_bytes_;
    List<const std::byte*> sums;
    for (const int host : participants_.contributing_hosts()) {
      sums.push_back(stream_.buffers().host_partial(chunk, host) + slice.begin * cpu::accumulator_size(reduction_));
    }
    cpu::reduce_accumulators(reduction_, sums, result, slice.count);
    if (takes_) output_.write(begin_of(chunk) + slice.begin * element_bytes_, {result, slice.count * element_bytes_});
  } else {
    if (!stream_.passed_by_all(contributors_, &ChunkProgress::packed, chunk)) return false;
    reduce_slice(chunk);
  }
  if (takes_ && !lies_in_arena(chunk)) stream_.stats().bytes_unpacked += my_slice(chunk).count * element_bytes_;
  ++reduced_;
  stream_.pass(&ChunkProgress::reduced, chunk);
  return true;
}

// Others than this rank take the result out of the shared buffer.
bool Allreduce::others_unpack(std::uint64_t chunk) const {
  return std::ranges::any_of(contributors_, [&](int rank) {
    return rank != stream_.topology().rank() && participants_.takes(rank) &&
           !stream_.buffers().origin(chunk, rank).in_place;
  });
}

// Once into a first place, and from there, while it is in the nearest cache, to all others.
void Allreduce::reduce_slice(std::uint64_t chunk) {
  constexpr std::size_t block = std::size_t{16} << 10;
  const Range slice = my_slice(chunk);
  std::byte* result = others_unpack(chunk) ? stream_.buffers().result(chunk) : nullptr;
  const std::size_t end = (slice.begin + slice.count) * element_bytes_;
  sources_.open(chunk, begin_of(chunk));
  for (std::size_t at = slice.begin * element_bytes_; at < end;) {
    std::size_t bytes = sources_.seek(at, std::min(block, end - at));
    targets_.clear();
    if (result != nullptr) targets_.push_back(result + at);
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      if (std::byte* target = sources_.target(i); target != nullptr) targets_.push_back(target);
    }
    if (takes_) {
      const auto own = output_.run(begin_of(chunk) + at);
      bytes = std::min(bytes, own.size());
      targets_.push_back(own.data());
    }
    cpu::reduce(reduction_, sources_.pointers(), targets_.front(), bytes / element_bytes_);
    for (std::size_t i = 1; i < targets_.size(); ++i) {
      const bool own = takes_ && i + 1 == targets_.size();
      own&& past_caches_ ? cpu::copy_past_caches(targets_[i], targets_.front(), bytes)
                         : static_cast<void>(std::memcpy(targets_[i], targets_.front(), bytes));
    }
    at += bytes;
  }
}

bool Allreduce::refers(std::uint64_t chunk) const {
  return may_refer_ && stream_.buffers().origin(chunk, stream_.topology().rank()).pieces > 0;
}

bool Allreduce::lies_in_arena(std::uint64_t chunk) const {
  return refers(chunk) && stream_.buffers().origin(chunk, stream_.topology().rank()).in_place;
}

std::uint64_t Allreduce::through() const { return std::min({packed_, summed_, exchanged_, reduced_}); }

// Also where nothing is taken: says that this rank, and what it leads, needs nothing of the chunk any more.
bool Allreduce::unpack() {
  if (unpacked_ >= through()) return false;
  const std::uint64_t chunk = first_ + unpacked_;
  // Also who takes nothing keeps its data until the others have read it where it is.
  if (takes_ || refers(chunk)) {
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
  if (one_shot_) {
    reduce_in_one_shot();
    stream_.stats().bytes_unpacked += output_.bytes();
  } else if (!lies_in_arena(chunk)) {
    const std::byte* result = stream_.buffers().result(chunk);
    for_others_slices(chunk, [&](std::size_t at, std::size_t bytes) {
      output_.write(begin_of(chunk) + at, {result + at, bytes}, past_caches_);
      stream_.stats().bytes_unpacked += bytes;
    });
  }
}

void Allreduce::reduce_in_one_shot() {
  alignas(64) std::array<std::byte, one_shot_bytes> scratch;
  std::byte* direct = output_.contiguous(0, output_.bytes());
  std::byte* target = direct != nullptr ? direct : scratch.data();
  cpu::reduce(reduction_, slots(first_), target, total_elements_);
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

template <typename Visit>
void Allreduce::for_others_slices(std::uint64_t chunk, const Visit& visit) const {
  const Range slice = my_slice(chunk);
  const std::size_t end = (slice.begin + slice.count) * element_bytes_;
  const std::size_t bytes = elements_of(chunk).count * element_bytes_;
  if (slice.begin > 0) visit(std::size_t{0}, slice.begin * element_bytes_);
  if (end < bytes) visit(end, bytes - end);
}

List<const std::byte*> Allreduce::slots(std::uint64_t chunk) const {
  List<const std::byte*> slots;
  for (const int rank : contributors_) slots.push_back(stream_.buffers().slot(chunk, rank));
  return slots;
}

}  // namespace hvd
