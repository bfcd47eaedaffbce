#pragma once

#include <concepts>
#include <type_traits>

#include "cpu/element.h"
#include "cpu/kernel_table.h"

namespace hvd::cpu {
namespace {

struct Sum {
  template <typename V>
  HVD_INLINE static V apply(V a, V b) {
    return static_cast<V>(a + b);
  }
};

struct Product {
  template <typename V>
  HVD_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return static_cast<V>(1U * a * b);  // two 16-bit factors would be promoted to int and overflow
    } else {
      return a * b;
    }
  }
};

// Of equal values the first stays (so -0 and +0 follow the order of the sources), and so does a NaN on either side.
struct Min {
  template <typename V>
  HVD_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return b < a ? b : a;
    } else {
      return ((b < a) | (b != b)) ? b : a;
    }
  }
};

struct Max {
  template <typename V>
  HVD_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return a < b ? b : a;
    } else {
      return ((a < b) | (b != b)) ? b : a;
    }
  }
};

// Of bytes that are 0 or 1.
struct Or {
  HVD_INLINE static std::uint8_t apply(std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a | b); }
};

struct And {
  HVD_INLINE static std::uint8_t apply(std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a & b); }
};

enum class Begin { element, accumulator };

// ((s0 op s1) op s2) op s3 over the first k sources; s0 may be an array of accumulators.
template <typename T, typename Op, std::size_t k, Begin begin>
void combine(const std::byte* const* sources, std::byte* out, std::size_t count) {
  const std::byte* const s0 = sources[0];
  const std::byte* const s1 = sources[k > 1 ? 1 : 0];
  const std::byte* const s2 = sources[k > 2 ? 2 : 0];
  const std::byte* const s3 = sources[k > 3 ? 3 : 0];
  for_each_element<T>(
      count, [=](auto access, std::size_t i) __attribute__((always_inline)) {
        using Access = decltype(access);
        typename Access::Accumulator value;
        if constexpr (begin == Begin::element) {
          value = Access::get(s0, i);
        } else {
          value = get_accumulator<Access>(s0, i);
        }
        if constexpr (k > 1) {
          value = Op::apply(value, Access::get(s1, i));
        }
        if constexpr (k > 2) {
          value = Op::apply(value, Access::get(s2, i));
        }
        if constexpr (k > 3) {
          value = Op::apply(value, Access::get(s3, i));
        }
        put_accumulator<Access>(out, i, canonical(value));
      });
}

template <typename T, typename Op>
constexpr Combine combine_kernels() {
  // Where an accumulator is an element, the same kernels serve.
  constexpr Begin next = std::is_same_v<typename Element<T>::Accumulator, T> ? Begin::element : Begin::accumulator;
  return {{combine<T, Op, 1, Begin::element>, combine<T, Op, 2, Begin::element>, combine<T, Op, 3, Begin::element>,
           combine<T, Op, 4, Begin::element>},
          {combine<T, Op, 2, next>, combine<T, Op, 3, next>, combine<T, Op, 4, next>}};
}

// Sums and products of integers wrap, which only unsigned arithmetic may do.
template <typename T>
struct Wrapping {
  using Type = T;
};
template <std::signed_integral T>
struct Wrapping<T> {
  using Type = std::make_unsigned_t<T>;
};

}  // namespace
}  // namespace hvd::cpu
