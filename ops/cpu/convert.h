#pragma once

#include <limits>

#include "cpu/element.h"
#include "cpu/kernel_table.h"

namespace hvd::cpu {
namespace {

// Scaled reductions are done in f32 for f16, bf16 and f32, in f64 for all others.
template <typename T>
using ScaledAccumulator = std::conditional_t<std::is_integral_v<T>, double, typename Element<T>::Accumulator>;

template <typename T>
void load_scaled(const std::byte* in, std::byte* out, std::size_t count, double prescale) {
  const auto scale = static_cast<ScaledAccumulator<T>>(prescale);
  for_each_element<T>(
      count, [=](auto access, std::size_t i) __attribute__((always_inline)) {
        using Access = decltype(access);
        if constexpr (std::is_integral_v<T>) {
          write(out, i, static_cast<double>(Access::get(in, i)) * scale);
        } else {
          put_accumulator<Access>(out, i, Access::get(in, i) * scale);
        }
      });
}

// Truncated toward zero, then the nearest value that T has; a NaN (infinity times 0) becomes 0.
template <typename T>
HVD_INLINE T saturate(double value) {
  constexpr T lowest = std::numeric_limits<T>::min();
  constexpr T highest = std::numeric_limits<T>::max();
  constexpr double above = 2.0 * static_cast<double>(highest / 2 + 1);
  if (value >= above) {
    return highest;
  }
  if (value <= static_cast<double>(lowest)) {
    return lowest;
  }
  return value == value ? static_cast<T>(value) : T{0};
}

template <typename T, typename Scale>
HVD_INLINE void store_scaled_by(const std::byte* accumulators, std::byte* out, std::size_t count, Scale scale) {
  for_each_element<T>(
      count, [=](auto access, std::size_t i) __attribute__((always_inline)) {
        using Access = decltype(access);
        if constexpr (std::is_integral_v<T>) {
          Access::put(out, i, saturate<T>(scale(read<double>(accumulators, i))));
        } else {
          Access::put(out, i, canonical(scale(get_accumulator<Access>(accumulators, i))));
        }
      });
}

template <typename T>
void store_scaled(const std::byte* accumulators, std::byte* out, std::size_t count, const Finish& finish) {
  using Scalar = ScaledAccumulator<T>;
  if (finish.divisor != 1) {
    const auto divisor = static_cast<Scalar>(finish.divisor);
    store_scaled_by<T>(
        accumulators, out, count, [=](auto value) __attribute__((always_inline)) { return value / divisor; });
  } else {
    const auto factor = static_cast<Scalar>(finish.factor);
    store_scaled_by<T>(
        accumulators, out, count, [=](auto value) __attribute__((always_inline)) { return value * factor; });
  }
}

// Averages of integers are summed in a type that they cannot overflow.
template <typename T>
using Wide = std::conditional_t<(sizeof(T) < 8), std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                                std::conditional_t<std::is_signed_v<T>, Int128, UInt128>>;

template <typename T>
void load_wide(const std::byte* in, std::byte* out, std::size_t count, double) {
  for_each_element<T>(
      count, [=](auto access, std::size_t i)
                 __attribute__((always_inline)) { write(out, i, static_cast<Wide<T>>(decltype(access)::get(in, i))); });
}

template <typename T>
HVD_INLINE Wide<T> divide(Wide<T> sum, Wide<T> divisor) {
  if constexpr (sizeof(T) == 8) {
    const T low = static_cast<T>(sum);
    if (low == sum) {
      return low / static_cast<T>(divisor);  // one instruction, where 128 bits take a library call
    }
  }
  return sum / divisor;
}

// What fits T unless there were more ranks than the divisor says.
template <typename T>
HVD_INLINE T narrow(Wide<T> value) {
  constexpr Wide<T> lowest = std::numeric_limits<T>::min();
  constexpr Wide<T> highest = std::numeric_limits<T>::max();
  const Wide<T> below = value < highest ? value : highest;
  if constexpr (lowest == 0) {
    return static_cast<T>(below);
  } else {
    return static_cast<T>(below < lowest ? lowest : below);
  }
}

template <typename T>
void store_wide(const std::byte* accumulators, std::byte* out, std::size_t count, const Finish& finish) {
  const auto divisor = static_cast<Wide<T>>(finish.divisor);
  for_each_element<T>(
      count, [=](auto access, std::size_t i) __attribute__((always_inline)) {
        decltype(access)::put(out, i, narrow<T>(divide<T>(read<Wide<T>>(accumulators, i), divisor)));
      });
}

}  // namespace
}  // namespace hvd::cpu
