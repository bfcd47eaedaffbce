#pragma once

#include <bit>
#include <cstdint>

namespace hvd {

namespace detail {

// IEEE 754 binary16 -> binary32, exact. Normal numbers are rebiased; subnormals are normalised by the float
// subtraction.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t magnitude = half & 0x7fffU;
  std::uint32_t bits = 0;
  if (magnitude >= 0x7c00U) {
    bits = 0x7f800000U | (magnitude & 0x3ffU) << 13U;  // infinity or NaN, payload kept
  } else if (magnitude >= 0x0400U) {
    bits = (magnitude << 13U) + (112U << 23U);
  } else {
    const float subnormal =
        std::bit_cast<float>((113U << 23U) + (magnitude << 13U)) - std::bit_cast<float>(113U << 23U);
    bits = std::bit_cast<std::uint32_t>(subnormal);
  }
  return std::bit_cast<float>(bits | sign);
}

// binary32 -> binary16, rounded to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13U) & 0x1ffU);
  } else if (magnitude >= 0x477ff000U) {
    half = 0x7c00U;  // 65520 and above round to infinity
  } else if (magnitude >= 0x38800000U) {
    const std::uint32_t odd = (magnitude >> 13U) & 1U;
    half = (magnitude - (112U << 23U) + 0xfffU + odd) >> 13U;
  } else {
    // Adding 0.5 shifts the subnormal's bits to the bottom of the mantissa and rounds them in hardware.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  }
  return static_cast<std::uint16_t>(half | sign);
}

constexpr float bfloat_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

// binary32 -> bfloat16, rounded to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16U) & 1U);
  return static_cast<std::uint16_t>(is_nan ? (bits >> 16U) | 0x40U : rounded >> 16U);
}

}  // namespace detail

// Storage types of the two 16-bit float formats. They only convert: arithmetic is done in float.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() = default;
  constexpr explicit float16(float value) : bits(detail::float_to_half(value)) {}
  constexpr explicit operator float() const { return detail::half_to_float(bits); }
  friend constexpr bool operator==(float16, float16) = default;
};

struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(detail::float_to_bfloat(value)) {}
  constexpr explicit operator float() const { return detail::bfloat_to_float(bits); }
  friend constexpr bool operator==(bfloat16, bfloat16) = default;
};

}  // namespace hvd
