#include "cpu/dot.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "reduce_cases.h"

namespace hvd::cpu {
namespace {

double value_at(const test::Array& array, std::size_t i) {
  double value = 0;
  test::with_type(array.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, double>) {
      value = array.get<double>(i);
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      value = static_cast<double>(static_cast<float>(array.get<T>(i)));
    } else {
      ADD_FAILURE() << "no dot product of " << to_string(array.dtype());
    }
  });
  return value;
}

// In the order that the header promises.
double reference_dot(const test::Array& a, const test::Array& b) {
  std::array<double, 16> sums{};
  for (std::size_t i = 0; i < a.elements(); ++i) sums[i % 16] += value_at(a, i) * value_at(b, i);
  for (const std::size_t step : {8U, 4U, 2U, 1U}) {
    for (std::size_t i = 0; i < step; ++i) sums[i] += sums[i + step];
  }
  return std::isnan(sums[0]) ? std::numeric_limits<double>::quiet_NaN() : sums[0];
}

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

class Dot : public EachIsa, public testing::WithParamInterface<DataType> {
 protected:
  static void check(const test::Array& a, const test::Array& b) {
    const double expected = reference_dot(a, b);
    for (const std::size_t offset : {0U, 1U}) {
      const Memory left(a, offset);
      const Memory right(b, 3 * offset);
      run([&] {
        const double got = dot(a.dtype(), left.data(), right.data(), a.elements());
        EXPECT_EQ(bits_of(got), bits_of(expected)) << got << " instead of " << expected << ", " << a.elements();
      });
    }
  }
};

TEST_P(Dot, HasTheBitsOfTheReferenceForAnyCount) {
  for (const std::int64_t count : {0, 1, 2, 7, 15, 16, 17, 31, 32, 100, 511, 512, 513, 1024, 1029, 10007}) {
    check(test::random_array(GetParam(), {count}, 1), test::random_array(GetParam(), {count}, 2));
  }
}

TEST_P(Dot, HasTheBitsOfTheReferenceWithNansAndInfinities) {
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    check(wild_array(GetParam(), seed / 5, seed), wild_array(GetParam(), seed / 5, seed + 1000));
  }
}

TEST_P(Dot, OfMinusZerosIsZero) {
  test::Array zeros(GetParam(), {5});
  test::Array minus_zeros(GetParam(), {5});
  for (std::size_t i = 0; i < 5; ++i) minus_zeros.bytes()[(i + 1) * size_of(GetParam()) - 1] = std::byte{0x80};
  check(zeros, minus_zeros);
}

INSTANTIATE_TEST_SUITE_P(Floats, Dot, testing::Values(DataType::f16, DataType::bf16, DataType::f32, DataType::f64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(DotOfFloats, IsSummedInF64) {
  const float values[] = {4096.0F, 1.0F};
  const auto* const bytes = reinterpret_cast<const std::byte*>(values);
  EXPECT_EQ(dot(DataType::f32, bytes, bytes, 2), 16777217.0);  // which f32 does not have
}

}  // namespace
}  // namespace hvd::cpu
