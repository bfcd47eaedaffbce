#pragma once

#include <complex>
#include <utility>

#include "cpu/combine.h"
#include "cpu/convert.h"
#include "cpu/kernel_table.h"

namespace hvd::cpu {
namespace {

// `width` complex numbers, as they lie in memory. Vectors even for one of them, because GCC 12 makes fused operations,
// whose bits differ, of a scalar complex product on AVX-512, contraction or not.
template <typename V, std::size_t width>
struct ComplexLanes {
  typedef V Type __attribute__((vector_size(2 * width * sizeof(V))));
};

template <typename V, std::size_t lanes>
struct ComplexAccess {
  using Accumulator = typename ComplexLanes<V, lanes>::Type;
  static constexpr std::size_t width = lanes;
  HVD_INLINE static Accumulator get(const std::byte* array, std::size_t i) {
    return read<Accumulator>(array + i * sizeof(std::complex<V>), 0);
  }
};

template <typename V>
struct Element<std::complex<V>> : ComplexAccess<V, 1> {};
template <typename V>
struct Lanes<std::complex<V>> : ComplexAccess<V, vector_bytes / sizeof(std::complex<V>)> {};

// (ac - bd) + (ad + bc)i, side by side as (a, a) * (c, d) + (-b, b) * (d, c).
struct ComplexProduct {
  template <typename Vector>
  HVD_INLINE static Vector apply(Vector x, Vector y) {
    return multiply(x, y, std::make_integer_sequence<int, static_cast<int>(sizeof(Vector) / sizeof(x[0]))>{});
  }

 private:
  template <typename Vector, int... i>
  HVD_INLINE static Vector multiply(Vector x, Vector y, std::integer_sequence<int, i...>) {
    constexpr Vector sign = {(i % 2 == 0 ? -1 : 1)...};
    const Vector real = __builtin_shufflevector(x, x, (i & ~1)...);
    const Vector imag = __builtin_shufflevector(x, x, (i | 1)...);
    const Vector swapped = __builtin_shufflevector(y, y, (i ^ 1)...);
    return real * y + sign * imag * swapped;
  }
};

// The rest does not mix real and imaginary parts: an array of complex numbers is one of twice as many reals.
template <typename V, typename Op, std::size_t k>
void combine_parts(const std::byte* const* sources, std::byte* out, std::size_t count) {
  combine<V, Op, k, Begin::element>(sources, out, 2 * count);
}

template <typename V, typename Op>
constexpr Combine combine_kernels_of_parts() {
  return {
      {combine_parts<V, Op, 1>, combine_parts<V, Op, 2>, combine_parts<V, Op, 3>, combine_parts<V, Op, 4>},
      {combine_parts<V, Op, 2>, combine_parts<V, Op, 3>, combine_parts<V, Op, 4>},
  };
}

template <typename V>
void load_scaled_parts(const std::byte* in, std::byte* out, std::size_t count, double prescale) {
  load_scaled<V>(in, out, 2 * count, prescale);
}

template <typename V>
void store_scaled_parts(const std::byte* accumulators, std::byte* out, std::size_t count, const Finish& finish) {
  store_scaled<V>(accumulators, out, 2 * count, finish);
}

}  // namespace
}  // namespace hvd::cpu
