#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <hvd/float8.h>

namespace hvd {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The formats from their definition: the value of a code without its sign bit.
struct E4m3 {
  using Type = float8_e4m3;
  static constexpr int overflow = 0x7f;  // the code of what is too large
  static double value_of(int code) {
    if (code == 0x7f) return nan;
    const int exponent = code >> 3;
    return exponent == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), exponent - 10);
  }
};

struct E5m2 {
  using Type = float8_e5m2;
  static constexpr int overflow = 0x7c;
  static double value_of(int code) {
    if (code >= 0x7c) return code == 0x7c ? infinity : nan;
    const int exponent = code >> 2;
    return exponent == 0 ? std::ldexp(code & 3, -16) : std::ldexp(4 + (code & 3), exponent - 17);
  }
};

// The code nearest to a finite value without sign, found by comparing with all; of two, the even one. The value that
// would follow the largest stands for overflow.
template <typename Format>
int nearest(double value) {
  const double largest = Format::value_of(Format::overflow - 1);
  const double step = largest - Format::value_of(Format::overflow - 2);
  value = std::min(value, 2 * largest);  // beyond which differences are lost
  int best = 0;
  double least = infinity;
  for (int code = 0; code <= Format::overflow; ++code) {
    const double distance = std::abs((code == Format::overflow ? largest + step : Format::value_of(code)) - value);
    if (distance < least || (distance == least && code % 2 == 0)) {
      best = code;
      least = distance;
    }
  }
  return best;
}

template <typename Format>
void expect_nearest(float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  ASSERT_EQ(typename Format::Type(value).bits, nearest<Format>(std::abs(static_cast<double>(value))) | sign) << value;
}

template <typename Format>
class Float8 : public testing::Test {};
using Formats = testing::Types<E4m3, E5m2>;
TYPED_TEST_SUITE(Float8, Formats);

TYPED_TEST(Float8, EveryCodeHasTheValueOfItsFormatAndSurvivesTheWayToFloatAndBack) {
  using Type = typename TypeParam::Type;
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    const auto value = static_cast<float>(std::bit_cast<Type>(bits));
    const double expected = TypeParam::value_of(code & 0x7f);
    ASSERT_EQ(std::signbit(value), code >= 0x80) << code;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_EQ(Type(value).bits, code | 0x7f) << code;
    } else {
      ASSERT_EQ(std::abs(value), expected) << code;
      ASSERT_EQ(Type(value).bits, code);
    }
  }
}

TYPED_TEST(Float8, RoundsToNearestAndTiesToEvenBetweenAllNeighbours) {
  for (int code = 0; code < TypeParam::overflow; ++code) {
    const double low = TypeParam::value_of(code);
    const double step =
        code + 1 < TypeParam::overflow ? TypeParam::value_of(code + 1) - low : low - TypeParam::value_of(code - 1);
    const auto tie = static_cast<float>(low + step / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 2 * tie)}) {
      expect_nearest<TypeParam>(value);
      expect_nearest<TypeParam>(-value);
    }
    using Type = typename TypeParam::Type;
    ASSERT_EQ(Type(tie).bits, code + code % 2);
    ASSERT_EQ(Type(std::nextafter(tie, 0.0F)).bits, code);
    ASSERT_EQ(Type(std::nextafter(tie, 2 * tie)).bits, code + 1);
  }
}

TYPED_TEST(Float8, RoundsAnyFloatToTheNearestCode) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 8 != 0) bits = (bits & 0x807fffffU) | (105U + (bits >> 23U) % 42U) << 23U;  // within the formats' range
    const auto value = std::bit_cast<float>(bits);
    if (std::isfinite(value)) expect_nearest<TypeParam>(value);
  }
}

TYPED_TEST(Float8, InfinityIsTheFormatsOverflowAndNansStayNans) {
  using Type = typename TypeParam::Type;
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Type(infinite).bits, TypeParam::overflow);
  EXPECT_EQ(Type(-infinite).bits, TypeParam::overflow | 0x80);
  EXPECT_EQ(Type(std::numeric_limits<float>::max()).bits, TypeParam::overflow);
  for (const std::uint32_t payload : {0x1U, 0x100000U, 0x200000U, 0x400000U, 0x7fffffU}) {
    EXPECT_EQ(Type(std::bit_cast<float>(0x7f800000U | payload)).bits, 0x7f) << payload;
    EXPECT_EQ(Type(std::bit_cast<float>(0xff800000U | payload)).bits, 0xff) << payload;
  }
}

TYPED_TEST(Float8, ConvertsAtCompileTime) {
  using Type = typename TypeParam::Type;
  static_assert(static_cast<float>(Type(1.5F)) == 1.5F);
  static_assert(static_cast<float>(Type(-0x1p-9F)) == -0x1p-9F);  // a subnormal of e4m3
}

TEST(Float8Limits, AreThoseOfTheFormats) {
  EXPECT_EQ(static_cast<float>(std::bit_cast<float8_e4m3>(std::uint8_t{0x7e})), 448.0F);
  EXPECT_EQ(static_cast<float>(std::bit_cast<float8_e5m2>(std::uint8_t{0x7b})), 57344.0F);
  EXPECT_EQ(float8_e4m3(464.0F).bits, 0x7e);
  EXPECT_EQ(float8_e4m3(464.1F).bits, 0x7f);
  EXPECT_EQ(float8_e5m2(61439.0F).bits, 0x7b);
  EXPECT_EQ(float8_e5m2(61440.0F).bits, 0x7c);
}

}  // namespace
}  // namespace hvd
