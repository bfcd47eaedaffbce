#include "data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "arithmetic.h"

namespace hvd::test {

Array rows_of(const Array& whole, std::int64_t first, std::int64_t count) {
  Array part(whole.dtype(), whole.shape().with_rows(count));
  if (part.bytes().empty()) return part;
  const std::size_t row = part.bytes().size() / static_cast<std::size_t>(count);
  std::memcpy(part.bytes().data(), whole.bytes().data() + static_cast<std::size_t>(first) * row, part.bytes().size());
  return part;
}

void append_rows(Array& whole, const Array& more) {
  Array both(whole.dtype(), whole.shape().with_rows(whole.shape()[0] + more.shape()[0]));
  std::ranges::copy(more.bytes(), std::ranges::copy(whole.bytes(), both.bytes().begin()).out);
  whole = std::move(both);
}

std::string difference(const Array& got, const Array& expected) {
  const testing::AssertionResult same = same_bits(got, expected);
  return same ? "" : same.message();
}

std::string difference_beyond(double bound, const Array& got, const Array& expected) {
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) return difference(got, expected);
  std::string text;
  with_type(got.dtype(), [&]<typename T>(T) {
    if constexpr (is_real<T>) {
      for (std::size_t i = 0; i < got.elements() && text.empty(); ++i) {
        const long double off = std::abs(widened(got.get<T>(i)) - widened(expected.get<T>(i)));
        if (!(off <= static_cast<long double>(bound))) {
          text = "element " + std::to_string(i) + " is " + element_text(got, i) + ", too far from " +
                 element_text(expected, i);
        }
      }
    }
  });
  return text;
}

std::uint64_t Dice::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

}  // namespace hvd::test
