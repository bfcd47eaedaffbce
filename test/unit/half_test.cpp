#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <hvd/half.h>

namespace hvd {
namespace {

template <typename Body>
void for_each_pattern(Body body) {
  for (std::uint32_t pattern = 0; pattern <= 0xffffU; ++pattern) {
    body(static_cast<std::uint16_t>(pattern));
  }
}

// The value of a 16-bit float with the given number of mantissa bits, from the definition of the format.
double value_of(std::uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const int significand = exponent != 0 ? mantissa + (1 << mantissa_bits) : mantissa;
  return sign * std::ldexp(significand, (exponent != 0 ? exponent : 1) - bias - mantissa_bits);
}

template <typename Half>
struct Format;
template <>
struct Format<float16> {
  static constexpr int mantissa_bits = 10;
  static constexpr std::uint16_t infinity = 0x7c00;
};
template <>
struct Format<bfloat16> {
  static constexpr int mantissa_bits = 7;
  static constexpr std::uint16_t infinity = 0x7f80;
};

template <typename Half>
Half from_bits(std::uint16_t bits) {
  Half half;
  half.bits = bits;
  return half;
}

template <typename Half>
class HalfTest : public testing::Test {};
using HalfTypes = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfTest, HalfTypes);

TYPED_TEST(HalfTest, EveryBitPatternHasTheValueOfItsFormat) {
  for_each_pattern([](std::uint16_t pattern) {
    const double expected = value_of(pattern, Format<TypeParam>::mantissa_bits);
    const auto actual = static_cast<float>(from_bits<TypeParam>(pattern));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << pattern;
    } else {
      ASSERT_EQ(actual, expected) << pattern;
    }
    ASSERT_EQ(std::signbit(actual), (pattern & 0x8000) != 0) << pattern;
  });
}

TYPED_TEST(HalfTest, EveryBitPatternSurvivesTheWayToFloatAndBackExceptThatNansBecomeQuiet) {
  for_each_pattern([](std::uint16_t pattern) {
    const bool nan = (pattern & 0x7fff) > Format<TypeParam>::infinity;
    const int quiet = nan ? 1 << (Format<TypeParam>::mantissa_bits - 1) : 0;
    ASSERT_EQ(TypeParam(static_cast<float>(from_bits<TypeParam>(pattern))).bits, pattern | quiet);
  });
}

TYPED_TEST(HalfTest, RoundsToNearestAndTiesToEvenBetweenAllNeighbours) {
  for (int pattern = 0; pattern < Format<TypeParam>::infinity; ++pattern) {
    const auto below = static_cast<std::uint16_t>(pattern);
    const auto above = static_cast<std::uint16_t>(pattern + 1);
    // What would follow the largest finite value takes the place of infinity when rounding.
    const double low = value_of(below, Format<TypeParam>::mantissa_bits);
    const double step = above == Format<TypeParam>::infinity
                            ? low - value_of(static_cast<std::uint16_t>(pattern - 1), Format<TypeParam>::mantissa_bits)
                            : value_of(above, Format<TypeParam>::mantissa_bits) - low;
    const auto tie = static_cast<float>(low + step / 2);
    ASSERT_EQ(tie, low + step / 2);
    const std::uint16_t even = (below & 1) == 0 ? below : above;
    for (const int sign : {0, 0x8000}) {
      const float signed_tie = sign != 0 ? -tie : tie;
      ASSERT_EQ(TypeParam(signed_tie).bits, even | sign) << pattern;
      ASSERT_EQ(TypeParam(std::nextafter(signed_tie, 0.0F)).bits, below | sign) << pattern;
      ASSERT_EQ(TypeParam(std::nextafter(signed_tie, 2 * signed_tie)).bits, above | sign) << pattern;
    }
  }
}

TYPED_TEST(HalfTest, KeepsTheSignOfZeroAndInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TypeParam(0.0F).bits, 0);
  EXPECT_EQ(TypeParam(-0.0F).bits, 0x8000);
  EXPECT_EQ(TypeParam(infinity).bits, Format<TypeParam>::infinity);
  EXPECT_EQ(TypeParam(-infinity).bits, Format<TypeParam>::infinity | 0x8000);
}

TYPED_TEST(HalfTest, NansStayNansWhereverTheirPayloadIs) {
  for (const std::uint32_t payload : {0x1U, 0x1000U, 0x2000U, 0x8000U, 0x10000U, 0x400000U, 0x7fffffU}) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const TypeParam half(std::bit_cast<float>(0x7f800000U | payload | sign));
      EXPECT_GT(half.bits & 0x7fff, Format<TypeParam>::infinity) << payload;
      EXPECT_EQ(half.bits >> 15, sign >> 31U) << payload;
    }
  }
}

TYPED_TEST(HalfTest, ConvertsAtCompileTime) {
  static_assert(static_cast<float>(TypeParam(1.5F)) == 1.5F);
  static_assert(static_cast<float>(TypeParam(-0.0F)) == 0.0F);
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 CompilerHalf;

TEST(Float16, AgreesWithTheCompilersHalfType) {
  std::mt19937 random(1);
  for (int i = 0; i < 500'000; ++i) {
    // Uniform over bit patterns, most exponents within half's range.
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 8 != 0) {
      bits = (bits & 0x807fffffU) | (96U + (bits >> 23U) % 52U) << 23U;
    }
    const auto value = std::bit_cast<float>(bits);
    const auto half = static_cast<CompilerHalf>(value);
    if (std::isnan(value)) {
      continue;
    }
    ASSERT_EQ(float16(value).bits, std::bit_cast<std::uint16_t>(half)) << bits;
    ASSERT_EQ(static_cast<float>(float16(value)), static_cast<float>(half)) << bits;
  }
}
#endif

}  // namespace
}  // namespace hvd
