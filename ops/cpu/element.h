#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hvd/types.h>

#include "cpu/half_convert.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

// For kernels.cpp only, which is compiled once per instruction set. Everything here has internal linkage, and no inline
// function of another header is called: of equal weak symbols the linker keeps one, which might be the AVX-512 copy.

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // some loops stay scalar: 128-bit sums, integer divisions
#define HVD_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define HVD_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace hvd::cpu {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// What one register holds.
#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif

template <typename T>
HVD_INLINE T read(const std::byte* array, std::size_t i) {
  T value;
  __builtin_memcpy(&value, array + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
HVD_INLINE void write(std::byte* array, std::size_t i, T value) {
  __builtin_memcpy(array + i * sizeof(T), &value, sizeof(T));
}

// Access to element i of an array of T, and to accumulator i.
template <typename T>
struct Element {
  using Accumulator = T;
  static constexpr std::size_t width = 1;
  HVD_INLINE static T get(const std::byte* array, std::size_t i) { return read<T>(array, i); }
  HVD_INLINE static void put(std::byte* array, std::size_t i, T value) { write(array, i, value); }
};

template <>
struct Element<float16> {
  using Accumulator = float;
  static constexpr std::size_t width = 1;
  HVD_INLINE static float get(const std::byte* array, std::size_t i) {
    return half_to_float(read<std::uint16_t>(array, i));
  }
  HVD_INLINE static void put(std::byte* array, std::size_t i, float value) { write(array, i, float_to_half(value)); }
};

template <>
struct Element<bfloat16> {
  using Accumulator = float;
  static constexpr std::size_t width = 1;
  HVD_INLINE static float get(const std::byte* array, std::size_t i) {
    return bfloat_to_float(read<std::uint16_t>(array, i));
  }
  HVD_INLINE static void put(std::byte* array, std::size_t i, float value) { write(array, i, float_to_bfloat(value)); }
};

// Any byte but 0 is true; what is written is 0 or 1.
template <>
struct Element<bool> {
  using Accumulator = std::uint8_t;
  static constexpr std::size_t width = 1;
  HVD_INLINE static std::uint8_t get(const std::byte* array, std::size_t i) {
    return static_cast<std::uint8_t>(read<std::uint8_t>(array, i) != 0);
  }
};

// Elements i to i + width - 1 at once, where the compiler does not get there by itself: it knows no f16 conversions.
template <typename T>
struct Lanes : Element<T> {};

#if defined(__AVX512F__)
// Masked by all ones, which costs nothing: the plain intrinsics name an undefined register, and GCC 12 warns about it.
typedef float FloatLanes __attribute__((vector_size(64)));
template <>
struct Lanes<float16> {
  using Accumulator = FloatLanes;
  static constexpr std::size_t width = 16;
  HVD_INLINE static FloatLanes get(const std::byte* array, std::size_t i) {
    const auto* in = reinterpret_cast<const __m256i_u*>(array + i * sizeof(float16));
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(in));
  }
  HVD_INLINE static void put(std::byte* array, std::size_t i, FloatLanes value) {
    auto* out = reinterpret_cast<__m256i_u*>(array + i * sizeof(float16));
    constexpr int nearest_even = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_storeu_si256(out, _mm512_maskz_cvtps_ph(0xffff, value, nearest_even));
  }
};
#elif defined(__F16C__)
typedef float FloatLanes __attribute__((vector_size(32)));
template <>
struct Lanes<float16> {
  using Accumulator = FloatLanes;
  static constexpr std::size_t width = 8;
  HVD_INLINE static FloatLanes get(const std::byte* array, std::size_t i) {
    const auto* in = reinterpret_cast<const __m128i_u*>(array + i * sizeof(float16));
    return _mm256_cvtph_ps(_mm_loadu_si128(in));
  }
  HVD_INLINE static void put(std::byte* array, std::size_t i, FloatLanes value) {
    auto* out = reinterpret_cast<__m128i_u*>(array + i * sizeof(float16));
    _mm_storeu_si128(out, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
};
#endif

template <typename Access>
HVD_INLINE typename Access::Accumulator get_accumulator(const std::byte* array, std::size_t i) {
  using Accumulator = typename Access::Accumulator;
  return read<Accumulator>(array + i * (sizeof(Accumulator) / Access::width), 0);
}

template <typename Access>
HVD_INLINE void put_accumulator(std::byte* array, std::size_t i, typename Access::Accumulator value) {
  using Accumulator = typename Access::Accumulator;
  write(array + i * (sizeof(Accumulator) / Access::width), 0, value);
}

// body(access, i) for all elements of an array of T, access.width at a time. An array may be both input and output.
template <typename T, typename Body>
HVD_INLINE void for_each_element(std::size_t count, Body body) {
  std::size_t i = 0;
  if constexpr (Lanes<T>::width > 1) {
    for (; i + Lanes<T>::width <= count; i += Lanes<T>::width) {
      body(Lanes<T>{}, i);
    }
  }
  HVD_INDEPENDENT_ITERATIONS
  for (; i < count; ++i) {
    body(Element<T>{}, i);
  }
}

// A sum of two NaNs has the payload of either, as the compiler pleases; one canonical NaN has the same bits everywhere.
template <typename V>
HVD_INLINE V canonical(V value) {
  if constexpr (std::is_floating_point_v<V>) {
    return value == value ? value : static_cast<V>(__builtin_nanf(""));
  } else if constexpr (requires { value[0]; }) {
    return value == value ? value : V{} + __builtin_nanf("");
  } else {
    return value;
  }
}

}  // namespace
}  // namespace hvd::cpu
