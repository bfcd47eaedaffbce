#pragma once

#include <cstdint>

// The conversions of hvd/half.h without branches, so that a loop over them vectorises. Internal linkage: see element.h.
// NaNs keep no payload here: the kernels write canonical ones, and give no others to be rounded.

#define HVD_INLINE [[gnu::always_inline]] inline

namespace hvd::cpu {
namespace {

HVD_INLINE float as_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
HVD_INLINE std::uint32_t as_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }

HVD_INLINE float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t shifted = magnitude << 13U;
  const std::uint32_t subnormal = as_bits(as_float(shifted + (113U << 23U)) - as_float(113U << 23U));
  const std::uint32_t normal = shifted + (112U << 23U);
  const std::uint32_t special = shifted + (224U << 23U);
  const std::uint32_t finite = magnitude < 0x0400U ? subnormal : normal;
  return as_float((magnitude < 0x7c00U ? finite : special) | sign);
}

HVD_INLINE std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = as_bits(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal = (magnitude - (112U << 23U) + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  const std::uint32_t subnormal = as_bits(as_float(magnitude) + 0.5F) - as_bits(0.5F);
  const std::uint32_t small = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  return static_cast<std::uint16_t>((magnitude < 0x477ff000U ? small : special) | sign);
}

HVD_INLINE float bfloat_to_float(std::uint16_t value) { return as_float(static_cast<std::uint32_t>(value) << 16U); }

HVD_INLINE std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = as_bits(value);  // the canonical NaN survives the rounding
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace
}  // namespace hvd::cpu
