#pragma once

#include <type_traits>

#include "cpu/element.h"

namespace hvd::cpu {
namespace {

constexpr std::size_t dot_sums = 16;
constexpr std::size_t doubles_in_vector = vector_bytes / sizeof(double);

// The partial sums of dot.h, as vectors that fit a register.
struct DotSums {
  typedef double Vector __attribute__((vector_size(vector_bytes)));
  Vector vectors[dot_sums / doubles_in_vector] = {};
};

// As many values of V as a vector has doubles.
template <typename V>
struct DotOperand {
  typedef V Type __attribute__((vector_size(doubles_in_vector * sizeof(V))));
};

template <typename V>
HVD_INLINE DotSums::Vector load_doubles(const std::byte* array) {
  return __builtin_convertvector(read<typename DotOperand<V>::Type>(array, 0), DotSums::Vector);
}

// One product for each partial sum.
template <typename V>
HVD_INLINE void add_products(const std::byte* a, const std::byte* b, DotSums& sums) {
  std::size_t at = 0;
  for (DotSums::Vector& sum : sums.vectors) {
    sum += load_doubles<V>(a + at) * load_doubles<V>(b + at);
    at += doubles_in_vector * sizeof(V);
  }
}

// Only the last call may have a count that is no multiple of 16. The products of zeros with which it is filled up
// change nothing: no partial sum is ever -0.
template <typename V>
HVD_INLINE void add_all_products(const std::byte* a, const std::byte* b, std::size_t count, DotSums& sums) {
  std::size_t i = 0;
  for (; i + dot_sums <= count; i += dot_sums) {
    add_products<V>(a + i * sizeof(V), b + i * sizeof(V), sums);
  }
  if (i < count) {
    std::byte rest[2][dot_sums * sizeof(V)] = {};
    __builtin_memcpy(rest[0], a + i * sizeof(V), (count - i) * sizeof(V));
    __builtin_memcpy(rest[1], b + i * sizeof(V), (count - i) * sizeof(V));
    add_products<V>(rest[0], rest[1], sums);
  }
}

template <typename T>
HVD_INLINE void widen(const std::byte* in, std::byte* out, std::size_t count) {
  for_each_element<T>(
      count, [=](auto access, std::size_t i) __attribute__((always_inline)) {
        using Access = decltype(access);
        put_accumulator<Access>(out, i, Access::get(in, i));
      });
}

HVD_INLINE double add_up(const DotSums& sums) {
  double values[dot_sums];
  __builtin_memcpy(values, sums.vectors, sizeof(values));
  for (std::size_t step = dot_sums / 2; step > 0; step /= 2) {
    for (std::size_t i = 0; i < step; ++i) {
      values[i] += values[i + step];
    }
  }
  return canonical(values[0]);
}

template <typename T>
double dot_kernel(const std::byte* a, const std::byte* b, std::size_t count) {
  DotSums sums;
  if constexpr (std::is_floating_point_v<T>) {
    add_all_products<T>(a, b, count, sums);
  } else {
    constexpr std::size_t block = 512;  // a multiple of the partial sums
    alignas(64) std::byte floats[2][block * sizeof(float)];
    for (std::size_t offset = 0; offset < count; offset += block) {
      const std::size_t n = count - offset < block ? count - offset : block;
      widen<T>(a + offset * sizeof(T), floats[0], n);
      widen<T>(b + offset * sizeof(T), floats[1], n);
      add_all_products<float>(floats[0], floats[1], n, sums);
    }
  }
  return add_up(sums);
}

}  // namespace
}  // namespace hvd::cpu
