#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace hvd::bench::limit {

// One tensor of a step: float32 elements, reduced from `input` to `output`, which may be the same.
struct Segment {
  const float* input;
  float* output;
  std::size_t count;
};

// Walks tensors as if they lay behind each other. Positions only rise, so that a step of many tensors costs one pass.
class Walk {
 public:
  explicit Walk(std::span<const Segment> segments) : segments_(segments) {}

  // Calls body(segment, offset in the segment, offset from `begin`, elements) for each piece of [begin, end).
  template <typename Body>
  void each(std::size_t begin, std::size_t end, Body body) {
    while (start_ > begin) start_ -= segments_[--at_].count;
    while (at_ < segments_.size() && start_ + segments_[at_].count <= begin) start_ += segments_[at_++].count;
    std::size_t position = begin;
    while (position < end) {
      const Segment& segment = segments_[at_];
      const std::size_t offset = position - start_;
      const std::size_t count = std::min(end - position, segment.count - offset);
      if (count > 0) body(segment, offset, position - begin, count);
      position += count;
      if (position < end) start_ += segments_[at_++].count;
    }
  }

 private:
  std::span<const Segment> segments_;
  std::size_t at_ = 0;     // the segment that holds the last position
  std::size_t start_ = 0;  // and where it starts
};

// Where the part that a rank reduces begins, in whole cache lines; that of rank `size` is the end.
inline std::size_t share(std::size_t count, int rank, int size) {
  constexpr std::size_t line = 64 / sizeof(float);
  if (rank == size) return count;
  return count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size) / line * line;
}

inline std::size_t total(std::span<const Segment> segments) {
  std::size_t sum = 0;
  for (const Segment& segment : segments) sum += segment.count;
  return sum;
}

}  // namespace hvd::bench::limit
