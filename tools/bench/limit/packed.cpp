#include "limit/packed.h"

#include <array>
#include <cstring>

#include "limit/combine.h"

namespace hvd::bench::limit {

namespace {

constexpr std::size_t tiny_most = 28;  // elements that share two lines with their counter

// The output is not read again before it has left the caches; smaller ones are faster left in them.
constexpr std::size_t streamed_from = (std::size_t{8} << 20) / sizeof(float);

int rank_of(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}

}  // namespace

struct PackedLimit::Control {
  // Exchanges take turns, so that one can be written while the slower ranks still read the one before.
  struct alignas(128) Tiny {
    std::atomic<std::uint64_t> number{0};
    float values[tiny_most] = {};
  };
  std::array<Tiny, 2> tiny;
  Flag shot;
  Flag staged;
  Flag reduced;
};

PackedLimit::PackedLimit(MPI_Comm communicator)
    : rank_(rank_of(communicator)),
      size_(size_of(communicator)),
      window_(communicator, sizeof(Control) + sizeof(float) * (2 * one_shot_most + 2 * slots * chunk)) {
  sources_.resize(static_cast<std::size_t>(size_));
}

// The window is zeroed, which is what counters start with.
PackedLimit::Control& PackedLimit::control(int rank) const { return *reinterpret_cast<Control*>(window_.part(rank)); }

float* PackedLimit::shot(int rank, std::uint64_t number) const {
  return reinterpret_cast<float*>(window_.part(rank) + sizeof(Control)) + number % 2 * one_shot_most;
}

float* PackedLimit::stage(int rank, std::uint64_t number) const {
  return shot(rank, 0) + 2 * one_shot_most + number % slots * chunk;
}

float* PackedLimit::result(int rank, std::uint64_t number) const { return stage(rank, number) + slots * chunk; }

void PackedLimit::allreduce(std::span<const Segment> segments) {
  const std::size_t count = total(segments);
  if (segments.size() == 1 && count <= one_shot_most) {
    one_shot(segments.front());
  } else {
    pipeline(segments, count);
  }
}

void PackedLimit::one_shot(const Segment& segment) {
  const std::uint64_t number = ++shots_;
  const bool tiny = segment.count <= tiny_most;
  Control& own = control(rank_);
  float* memory = tiny ? own.tiny[number % 2].values : shot(rank_, number);
  std::memcpy(memory, segment.input, segment.count * sizeof(float));
  std::atomic<std::uint64_t>& done = tiny ? own.tiny[number % 2].number : own.shot.value;
  done.store(number, std::memory_order_release);
  for (int i = 0; i < size_; ++i) {
    Control& other = control(i);
    if (i != rank_) await(tiny ? other.tiny[number % 2].number : other.shot.value, number);
    sources_[static_cast<std::size_t>(i)] = tiny ? other.tiny[number % 2].values : shot(i, number);
  }
  const std::array<float*, 1> output{segment.output};
  combine(sources_, output, segment.count, false);
}

void PackedLimit::pipeline(std::span<const Segment> segments, std::size_t count) {
  const std::uint64_t base = chunks_;
  const std::uint64_t last = (count + chunk - 1) / chunk;  // chunks of this call are numbered from base + 1
  const bool streamed = count >= streamed_from;
  Walk in(segments);
  Walk own(segments);
  Walk out(segments);
  const auto start_of = [&](std::uint64_t number) { return (number - 1) * chunk; };
  const auto length_of = [&](std::uint64_t number) { return std::min(chunk, count - start_of(number)); };

  const auto copy_in = [&](std::uint64_t number) {
    const std::size_t start = start_of(number);
    const std::size_t length = length_of(number);
    float* memory = stage(rank_, base + number);
    const auto copy = [&](std::size_t begin, std::size_t end) {
      in.each(start + begin, start + end,
              [&](const Segment& segment, std::size_t offset, std::size_t done, std::size_t n) {
                std::memcpy(memory + begin + done, segment.input + offset, n * sizeof(float));
              });
    };
    copy(0, share(length, rank_, size_));
    copy(share(length, rank_ + 1, size_), length);
    publish(control(rank_).staged, base + number);
  };
  const auto reduce = [&](std::uint64_t number) {
    const std::size_t start = start_of(number);
    const std::size_t begin = share(length_of(number), rank_, size_);
    const std::size_t end = share(length_of(number), rank_ + 1, size_);
    for (int i = 0; i < size_; ++i) await(control(i).staged.value, base + number);
    own.each(start + begin, start + end,
             [&](const Segment& segment, std::size_t offset, std::size_t done, std::size_t n) {
               for (int i = 0; i < size_; ++i) {
                 sources_[static_cast<std::size_t>(i)] =
                     i == rank_ ? segment.input + offset : stage(i, base + number) + begin + done;
               }
               const std::array<float*, 2> to{segment.output + offset, result(rank_, base + number) + begin + done};
               combine(sources_, to, n, streamed);
             });
    publish(control(rank_).reduced, base + number);
  };
  const auto copy_out = [&](std::uint64_t number) {
    for (int step = 0; step < size_; ++step) {
      const int from = (rank_ + step) % size_;  // not all from the same rank at once
      await(control(from).reduced.value, base + number);
      if (from == rank_) continue;
      const std::size_t begin = share(length_of(number), from, size_);
      const std::size_t end = share(length_of(number), from + 1, size_);
      out.each(start_of(number) + begin, start_of(number) + end,
               [&](const Segment& segment, std::size_t offset, std::size_t done, std::size_t n) {
                 const std::array<const float*, 1> source{result(from, base + number) + begin + done};
                 const std::array<float*, 1> to{segment.output + offset};
                 combine(source, to, n, streamed);
               });
    }
  };

  copy_in(1);
  for (std::uint64_t number = 1; number <= last; ++number) {
    if (number < last) copy_in(number + 1);
    reduce(number);
    if (number > 1) copy_out(number - 1);
  }
  copy_out(last);
  chunks_ = base + last;
}

}  // namespace hvd::bench::limit
