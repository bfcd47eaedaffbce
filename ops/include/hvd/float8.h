#pragma once

#include <bit>
#include <cstdint>

#include <hvd/half.h>

// The two 8-bit float formats of Micikevicius et al., "FP8 Formats for Deep Learning", 2022, with PyTorch's
// conversions.
namespace hvd {

namespace detail {

// e4m3fn -> binary32, exact. Seven bits all set are NaN, there is no infinity; subnormals are multiples of 2^-9.
constexpr float e4m3_to_float(std::uint8_t value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x80U) << 24U;
  const std::uint32_t magnitude = value & 0x7fU;
  std::uint32_t bits = 0;
  if (magnitude == 0x7fU) {
    bits = 0x7fc00000U;
  } else if (magnitude >= 0x08U) {
    bits = (magnitude << 20U) + (120U << 23U);
  } else {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-9F);
  }
  return std::bit_cast<float>(bits | sign);
}

// Magnitude bits of a binary32 -> those of a smaller format, rounded to nearest, ties to even. `bias` is the difference
// of the exponent biases, `dropped` the number of mantissa bits that go. What is too large gives more than the format
// has.
constexpr std::uint32_t round_magnitude(std::uint32_t magnitude, std::uint32_t bias, std::uint32_t dropped) {
  if (magnitude >= (bias + 1U) << 23U) {
    const std::uint32_t odd = (magnitude >> dropped) & 1U;
    return (magnitude - (bias << 23U) + (1U << (dropped - 1U)) - 1U + odd) >> dropped;
  }
  // The last bit of this number is worth the smallest subnormal: adding it rounds in hardware.
  const std::uint32_t shift = (bias + 1U + dropped) << 23U;
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(shift)) - shift;
}

// binary32 -> e4m3fn; NaN for infinities and for all that rounds above 448, the largest value.
constexpr std::uint8_t float_to_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t overflow = 0x43f00000U;  // 480, which would be the next value
  const std::uint32_t rounded = magnitude >= overflow ? 0x7fU : round_magnitude(magnitude, 120, 20);
  return static_cast<std::uint8_t>(rounded | ((bits >> 24U) & 0x80U));
}

// e5m2 is the upper half of a binary16.
constexpr float e5m2_to_float(std::uint8_t value) { return half_to_float(static_cast<std::uint16_t>(value << 8U)); }

// binary32 -> e5m2; infinity for all that rounds above 57344, the largest value. NaNs lose their payload.
constexpr std::uint8_t float_to_e5m2(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t overflow = 0x47800000U;  // 65536, which would be the next value
  std::uint32_t rounded = 0x7cU;
  if (magnitude > 0x7f800000U) {
    rounded = 0x7fU;
  } else if (magnitude < overflow) {
    rounded = round_magnitude(magnitude, 112, 21);
  }
  return static_cast<std::uint8_t>(rounded | ((bits >> 24U) & 0x80U));
}

}  // namespace detail

// Storage types of the two 8-bit float formats, which hvd transports and does not reduce.
struct float8_e4m3 {
  std::uint8_t bits = 0;

  constexpr float8_e4m3() = default;
  constexpr explicit float8_e4m3(float value) : bits(detail::float_to_e4m3(value)) {}
  constexpr explicit operator float() const { return detail::e4m3_to_float(bits); }
  friend constexpr bool operator==(float8_e4m3, float8_e4m3) = default;
};

struct float8_e5m2 {
  std::uint8_t bits = 0;

  constexpr float8_e5m2() = default;
  constexpr explicit float8_e5m2(float value) : bits(detail::float_to_e5m2(value)) {}
  constexpr explicit operator float() const { return detail::e5m2_to_float(bits); }
  friend constexpr bool operator==(float8_e5m2, float8_e5m2) = default;
};

}  // namespace hvd
