#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <hvd/types.h>

namespace hvd::bench {

// Random values that each rank knows of each other: small whole numbers, so that their sums are exact in every dtype
// and results can be compared byte for byte. They repeat every `period` elements, and start elsewhere each time.
class Pattern {
 public:
  static constexpr std::size_t period = 16381;  // prime

  Pattern(DataType dtype, int ranks, int rank);

  std::size_t element_size() const { return element_size_; }
  // This rank's input of the given repeat, elements [offset, offset + count) of it.
  void fill(void* data, std::size_t offset, std::size_t count, unsigned repeat) const;
  // Throws std::runtime_error that names `what` unless data holds the sum of all ranks, or the values of one rank.
  void check_sum(std::string_view what, const void* data, std::size_t offset, std::size_t count, unsigned repeat) const;
  void check_values_of(int rank, std::string_view what, const void* data, std::size_t offset, std::size_t count,
                       unsigned repeat) const;

 private:
  using Bytes = std::vector<std::byte>;
  void compare(const Bytes& expected, std::string_view what, const void* data, std::size_t offset, std::size_t count,
               unsigned repeat) const;

  std::size_t element_size_;
  std::vector<Bytes> inputs_;  // by rank
  Bytes sum_;
  std::size_t rank_;
};

}  // namespace hvd::bench
