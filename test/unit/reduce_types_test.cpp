#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "cpu/reduce.h"
#include "reduce_cases.h"

// What each kind of dtype promises, value by value.
namespace hvd::cpu {
namespace {

using Average = EachIsa;

TEST_F(Average, OfIntegersTruncatesTowardZero) {
  EXPECT_EQ(reduce_values<std::int32_t>(ReduceOp::average, {1, 2}), 1);
  EXPECT_EQ(reduce_values<std::int32_t>(ReduceOp::average, {-1, -2}), -1);
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::average, {-1, -2}), -1);
  EXPECT_EQ(reduce_values<std::int8_t>(ReduceOp::average, {-1, 0, 0}), 0);
}

TEST_F(Average, OfIntegersDoesNotOverflow) {
  EXPECT_EQ(reduce_values<std::int8_t>(ReduceOp::average, {100, 100}), 100);
  EXPECT_EQ(reduce_values<std::uint8_t>(ReduceOp::average, {255, 255, 255}), 255);
  EXPECT_EQ(reduce_values<std::int8_t>(ReduceOp::average, {-128, -128, -128}), -128);
  const auto max = std::numeric_limits<std::int64_t>::max();
  const auto min = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::average, {max, max, max - 3}), max - 1);
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::average, {min, min}), min);
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::average, {max, min}), 0);
  const auto umax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(reduce_values<std::uint64_t>(ReduceOp::average, {umax, umax}), umax);
}

TEST_F(Average, OfMoreSourcesThanTheDivisorSaysSaturates) {
  const std::int8_t in[] = {-128, 127};
  const auto* const bytes = reinterpret_cast<const std::byte*>(in);
  const std::vector<const std::byte*> twice{bytes, bytes};
  run([&] {
    std::int8_t out[2] = {};
    reduce({DataType::i8, ReduceOp::average}, twice, reinterpret_cast<std::byte*>(out), 2);
    EXPECT_EQ(out[0], -128);
    EXPECT_EQ(out[1], 127);
  });
}

TEST_F(Average, OfFloatsIsExactWhereItCanBe) {
  EXPECT_EQ(reduce_values<float>(ReduceOp::average, {1, 1, 1}), 1.0F);
  EXPECT_EQ(reduce_values<double>(ReduceOp::average, {0.1, 0.1}), 0.1);
  EXPECT_EQ(reduce_values<float>(ReduceOp::average, {3, 4, 5, 6, 7}), 5.0F);
}

TEST_F(Average, OfHalvesNeitherOverflowsNorUnderflows) {
  const float16 large(30000.0F);
  EXPECT_EQ(reduce_values<float16>(ReduceOp::average, {large, large, large}), large);
  EXPECT_EQ(reduce_values<float16>(ReduceOp::average, {large, large, large, large}), large);
  const float16 small(6e-8F);
  EXPECT_EQ(reduce_values<float16>(ReduceOp::average, {small, small, small, small}), small);
  const float16 huge(65504.0F);
  EXPECT_EQ(reduce_values<float16>(ReduceOp::sum, {huge, huge}).bits, 0x7c00);
}

using Sum = EachIsa;

TEST_F(Sum, OfHalvesIsRoundedOnce) {
  // 2048 + 1 + 1: the ones would be lost if each step were rounded to f16. Likewise 256 + 1 + 1 in bf16.
  EXPECT_EQ(reduce_values<float16>(ReduceOp::sum, {float16(2048), float16(1), float16(1)}), float16(2050));
  EXPECT_EQ(reduce_values<bfloat16>(ReduceOp::sum, {bfloat16(256), bfloat16(1), bfloat16(1)}), bfloat16(258));
}

TEST_F(Sum, OfScaledIntegersIsTruncatedOnceAndSaturates) {
  EXPECT_EQ(reduce_values<std::int32_t>(ReduceOp::sum, {1, 1}, 0.5), 1);
  EXPECT_EQ(reduce_values<std::int32_t>(ReduceOp::sum, {-1, -2}, 0.5), -1);
  EXPECT_EQ(reduce_values<std::int8_t>(ReduceOp::sum, {100, 100}, 2.0), 127);
  EXPECT_EQ(reduce_values<std::uint8_t>(ReduceOp::sum, {100, 100}, -2.0), 0);
  const auto max = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::sum, {max, max}, 1.0, 2.0), max);
  EXPECT_EQ(reduce_values<std::int64_t>(ReduceOp::sum, {0, 1}, std::numeric_limits<double>::infinity()), 0);
}

template <typename T>
class MinMax : public EachIsa {};
using FloatTypes = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(MinMax, FloatTypes);

TYPED_TEST(MinMax, GivesNanWhicheverSourceHoldsIt) {
  for (const std::size_t ranks : {2U, 3U, 4U, 5U, 8U}) {
    for (std::size_t holder = 0; holder < ranks; ++holder) {
      for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        std::vector<TypeParam> values(ranks, TypeParam(1));
        values[holder] = TypeParam(-std::numeric_limits<float>::quiet_NaN());
        const TypeParam result = reduce_values(op, values);
        const TypeParam nan(std::numeric_limits<float>::quiet_NaN());
        EXPECT_EQ(std::memcmp(&result, &nan, sizeof(nan)), 0) << ranks << " ranks, NaN on " << holder;
      }
    }
  }
}

TYPED_TEST(MinMax, OfZerosIsTheFirst) {
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    EXPECT_TRUE(std::signbit(static_cast<float>(reduce_values<TypeParam>(op, {TypeParam(-0.0F), TypeParam(0.0F)}))));
    EXPECT_FALSE(std::signbit(static_cast<float>(reduce_values<TypeParam>(op, {TypeParam(0.0F), TypeParam(-0.0F)}))));
  }
}

using Bool = EachIsa;

TEST_F(Bool, SumAndMaxAreOrMinAndProductAreAnd) {
  const std::vector<std::vector<bool>> rows{{false, false, false}, {false, true, false}, {true, true, true}};
  for (const auto& row : rows) {
    const bool any = row[0] || row[1] || row[2];
    const bool all = row[0] && row[1] && row[2];
    EXPECT_EQ(reduce_values<bool>(ReduceOp::sum, row), any);
    EXPECT_EQ(reduce_values<bool>(ReduceOp::max, row), any);
    EXPECT_EQ(reduce_values<bool>(ReduceOp::min, row), all);
    EXPECT_EQ(reduce_values<bool>(ReduceOp::product, row), all);
  }
}

TEST_F(Bool, AnyByteButZeroIsTrueAndResultsAreZeroOrOne) {
  constexpr std::size_t count = 256;
  Memory bytes(count, 0);
  Memory ones(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    bytes.set(i, static_cast<std::uint8_t>(i));
    ones.set(i, std::uint8_t{1});
  }
  const std::byte* const sources[] = {bytes.data(), ones.data()};
  run([&] {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
      Memory alone(count, 0);
      Memory with_ones(count, 0);
      reduce({DataType::boolean, op}, {sources, 1}, alone.data(), count);
      reduce({DataType::boolean, op}, sources, with_ones.data(), count);
      const bool is_or = op == ReduceOp::sum || op == ReduceOp::max;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(alone.get<std::uint8_t>(i), i != 0 ? 1 : 0) << i;
        ASSERT_EQ(with_ones.get<std::uint8_t>(i), is_or || i != 0 ? 1 : 0) << i;
      }
    }
  });
}

template <typename V>
class ComplexKernels : public EachIsa {
 public:
  using Complex = std::complex<V>;
};
using PartTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexKernels, PartTypes);

TYPED_TEST(ComplexKernels, MultiplyByTheTextbook) {
  using Complex = typename TestFixture::Complex;
  EXPECT_EQ(reduce_values<Complex>(ReduceOp::product, {{1, 2}, {3, 4}}), Complex(-5, 10));
  EXPECT_EQ(reduce_values<Complex>(ReduceOp::product, {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}), Complex(0, 1));
  EXPECT_EQ(reduce_values<Complex>(ReduceOp::product, {{1, 2}, {3, 4}}, 2, 0.25), Complex(-5, 10));
}

TYPED_TEST(ComplexKernels, SumAndAverageByParts) {
  using Complex = typename TestFixture::Complex;
  EXPECT_EQ(reduce_values<Complex>(ReduceOp::sum, {{1, 2}, {3, 5}, {-8, 0}}), Complex(-4, 7));
  EXPECT_EQ(reduce_values<Complex>(ReduceOp::average, {{1, 2}, {1, 3}, {1, 7}}), Complex(1, 4));
}

TYPED_TEST(ComplexKernels, GiveCanonicalNansInThePartsThatAreNan) {
  using Complex = typename TestFixture::Complex;
  const TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const auto expect_bits = [](Complex got, Complex expected) {
    EXPECT_EQ(std::memcmp(&got, &expected, sizeof(Complex)), 0) << got << " instead of " << expected;
  };
  expect_bits(reduce_values<Complex>(ReduceOp::sum, {{-nan, 1}, {2, 3}}), {nan, 4});
  expect_bits(reduce_values<Complex>(ReduceOp::sum, {{infinity, 1}, {-infinity, 3}}), {nan, 4});
  expect_bits(reduce_values<Complex>(ReduceOp::product, {{infinity, 0}, {0, 1}}), {nan, infinity});
  expect_bits(reduce_values<Complex>(ReduceOp::product, {{infinity, 1}, {1, 0}}), {infinity, nan});
}

// The kernels' own conversions against hvd/half.h.
template <typename T>
class HalfKernels : public EachIsa {};
using HalfTypes = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfKernels, HalfTypes);

TYPED_TEST(HalfKernels, WidenEveryBitPattern) {
  constexpr std::size_t count = 65536;
  Memory halves(count * 2, 0);
  for (std::size_t i = 0; i < count; ++i) {
    halves.set(i, static_cast<std::uint16_t>(i));
  }
  const std::byte* const source = halves.data();
  this->run([&] {
    Memory floats(count * sizeof(float), 0);
    reduce_to_accumulators({data_type_of<TypeParam>}, {&source, 1}, floats.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto expected = static_cast<float>(halves.get<TypeParam>(i));
      const auto actual = std::bit_cast<std::uint32_t>(floats.get<float>(i));
      ASSERT_EQ(actual, std::isnan(expected) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(expected)) << i;
    }
  });
}

TYPED_TEST(HalfKernels, RoundAroundEveryTie) {
  std::vector<float> floats;
  for (std::uint32_t i = 0; i <= 0xffffU; ++i) {
    // The bits just above and below a tie, whether the format is f16 (normal, subnormal) or bf16.
    const float half = static_cast<float>(std::bit_cast<float16>(static_cast<std::uint16_t>(i)));
    for (const std::uint32_t bits : {i << 16U | 0x8000U, std::bit_cast<std::uint32_t>(half) | 0x1000U,
                                     std::bit_cast<std::uint32_t>(half + std::copysign(0x1p-25F, half))}) {
      for (const std::uint32_t near : {bits - 1, bits, bits + 1}) {
        floats.push_back(std::bit_cast<float>(near));
      }
    }
  }
  const auto* const source = reinterpret_cast<const std::byte*>(floats.data());
  this->run([&] {
    Memory halves(floats.size() * 2, 0);
    reduce_accumulators({data_type_of<TypeParam>}, {&source, 1}, halves.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const float value = std::isnan(floats[i]) ? std::numeric_limits<float>::quiet_NaN() : floats[i];
      ASSERT_EQ(halves.get<TypeParam>(i).bits, TypeParam(value).bits) << floats[i];
    }
  });
}

TEST(AccumulatorSize, FollowsTypeOperationAndScale) {
  const auto size = [](DataType dtype, ReduceOp op, double prescale) {
    return accumulator_size(make_reduction(dtype, op, 2, prescale));
  };
  EXPECT_EQ(size(DataType::f16, ReduceOp::sum, 1), 4U);
  EXPECT_EQ(size(DataType::bf16, ReduceOp::average, 0.5), 4U);
  EXPECT_EQ(size(DataType::f32, ReduceOp::max, 1), 4U);
  EXPECT_EQ(size(DataType::f64, ReduceOp::sum, 1), 8U);
  EXPECT_EQ(size(DataType::i8, ReduceOp::sum, 1), 1U);
  EXPECT_EQ(size(DataType::i8, ReduceOp::average, 1), 8U);
  EXPECT_EQ(size(DataType::i64, ReduceOp::min, 1), 8U);
  EXPECT_EQ(size(DataType::i64, ReduceOp::average, 1), 16U);
  EXPECT_EQ(size(DataType::u64, ReduceOp::average, 0.5), 8U);
  EXPECT_EQ(size(DataType::boolean, ReduceOp::sum, 1), 1U);
  EXPECT_EQ(size(DataType::c64, ReduceOp::average, 0.5), 8U);
  EXPECT_EQ(size(DataType::c128, ReduceOp::product, 1), 16U);
}

TEST(Isas, StartWithGenericAndTheBestIsActive) {
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), Isa::generic);
  EXPECT_EQ(available_isas().back(), active_isa());
}

}  // namespace
}  // namespace hvd::cpu
