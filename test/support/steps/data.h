#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../array.h"

namespace hvd::test {

// Rows [first, first + count) of the first dimension.
Array rows_of(const Array& whole, std::int64_t first, std::int64_t count);
// Puts the rows behind those that are there; dtype and other dimensions agree.
void append_rows(Array& whole, const Array& more);

// "" when the two have the same dtype, shape and bits, otherwise where they first differ.
std::string difference(const Array& got, const Array& expected);

// The same for what may be off by so much: an absolute bound.
std::string difference_beyond(double bound, const Array& got, const Array& expected);

// Splitmix64: equal on all machines, unlike the distributions of <random>.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint64_t next();
  int pick(int least, int most) {
    return least + static_cast<int>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool chance(int one_in) { return pick(1, one_in) == 1; }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(pick(0, static_cast<int>(values.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace hvd::test
