#include "cpu/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace hvd::cpu {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

constexpr std::size_t source_counts[] = {1, 2, 3, 4, 5, 8};
constexpr std::size_t element_counts[] = {0, 1, 7, 64, 1000, 4097};

template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, double, float>;

template <typename Value>
Value combine(ReduceOp op, Value a, Value b) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::product:
      return a * b;
    case ReduceOp::min:
      return a != a || !(b < a || b != b) ? a : b;
    case ReduceOp::max:
      return a != a || !(b > a || b != b) ? a : b;
  }
  return a;
}

// One element in floating point, in the order of the ranks.
template <typename T>
T reference_float(const Reduction& reduction, const std::vector<T>& values) {
  using Value = Computed<T>;
  const auto load = [&](T value) { return static_cast<Value>(value) * static_cast<Value>(reduction.prescale); };
  Value result = load(values[0]);
  for (std::size_t k = 1; k < values.size(); ++k) {
    result = combine(reduction.op, result, load(values[k]));
  }
  if (reduction.postscale == 1.0) {
    result /= static_cast<Value>(reduction.divisor);
  } else {
    result *= static_cast<Value>(reduction.postscale / static_cast<double>(reduction.divisor));
  }
  if constexpr (!std::is_integral_v<T>) {
    return T(std::isnan(result) ? std::numeric_limits<Value>::quiet_NaN() : result);
  } else {
    const long double whole = std::isnan(result) ? 0.0L : std::trunc(static_cast<long double>(result));
    const auto lowest = static_cast<long double>(std::numeric_limits<T>::min());
    const auto highest = static_cast<long double>(std::numeric_limits<T>::max());
    return static_cast<T>(std::min(std::max(whole, lowest), highest));
  }
}

template <typename T>
T reference(const Reduction& reduction, const std::vector<T>& values) {
  if constexpr (std::is_integral_v<T>) {
    if (reduction.prescale == 1.0 && reduction.postscale == 1.0) {
      auto result = static_cast<Int128>(values[0]);
      for (std::size_t k = 1; k < values.size(); ++k) {
        const auto next = static_cast<Int128>(values[k]);
        result = reduction.op == ReduceOp::product
                     ? static_cast<Int128>(static_cast<UInt128>(result) * static_cast<UInt128>(next))
                     : combine(reduction.op, result, next);
      }
      return static_cast<T>(result / reduction.divisor);
    }
  }
  return reference_float(reduction, values);
}

template <typename T>
class Generator {
 public:
  T operator()() {
    const std::uint64_t bits = random_();
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(bits);
    } else if (bits % 16 == 0) {  // anything: NaNs, infinities, subnormals, zeros
      std::uint64_t pattern = random_() & (bits % 32 == 0 ? ~0ULL : 0xffc0ffffffff8000ULL);
      T value;
      std::memcpy(&value, reinterpret_cast<const std::byte*>(&pattern) + sizeof(pattern) - sizeof(T), sizeof(T));
      return value;
    } else {
      return T(std::uniform_real_distribution<Computed<T>>(-8, 8)(random_));
    }
  }

 private:
  std::mt19937_64 random_{1};
};

// Arrays of exactly their size, so that the address sanitizer sees a step too far, at odd addresses if asked.
class Array {
 public:
  Array(std::size_t bytes, std::size_t offset) : storage_(bytes + offset, std::byte{0x55}), offset_(offset) {}
  std::byte* data() { return storage_.data() + offset_; }
  template <typename T>
  void set(std::size_t i, T value) {
    std::memcpy(data() + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T get(std::size_t i) {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t offset_;
};

std::vector<const std::byte*> pointers(std::vector<Array>& arrays) {
  std::vector<const std::byte*> result;
  for (Array& array : arrays) {
    result.push_back(array.data());
  }
  return result;
}

class EachIsa : public testing::Test {
 public:
  ~EachIsa() override { use_isa(initial_); }

  template <typename Body>
  static void run(Body body) {
    for (const Isa isa : available_isas()) {
      use_isa(isa);
      SCOPED_TRACE(to_string(isa));
      body();
      if (HasFatalFailure()) {
        return;
      }
    }
  }

 private:
  Isa initial_ = active_isa();
};

template <typename T>
struct Case {
  Reduction reduction;
  std::vector<Array> sources;
  std::vector<T> expected;

  Case(const Reduction& what, std::size_t ranks, std::size_t count, bool aligned) : reduction(what), expected(count) {
    for (std::size_t k = 0; k < ranks; ++k) {
      sources.emplace_back(count * sizeof(T), aligned ? 0 : 2 * k + 1);
    }
    Generator<T> generate;
    std::vector<T> values(ranks);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < ranks; ++k) {
        values[k] = generate();
        sources[k].set(i, values[k]);
      }
      expected[i] = reference(reduction, values);
    }
  }

  void expect(const std::byte* actual) const {
    const std::size_t size = sizeof(T);
    if (expected.empty() || std::memcmp(actual, expected.data(), expected.size() * size) == 0) {
      return;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::memcmp(actual + i * size, &expected[i], size), 0) << "element " << i << " of " << expected.size();
    }
  }
};

Reduction make_reduction(DataType dtype, ReduceOp op, std::size_t ranks, double prescale = 1, double postscale = 1) {
  return {dtype, op, prescale, postscale, op == ReduceOp::average ? static_cast<std::int64_t>(ranks) : 1};
}

template <typename T>
void check_one_pass(Case<T>& c, std::size_t offset) {
  Array dst(c.expected.size() * sizeof(T), offset);
  reduce(c.reduction, pointers(c.sources), dst.data(), c.expected.size());
  c.expect(dst.data());
}

template <typename T>
void check_halves(Case<T>& c, std::size_t offset) {
  const std::size_t count = c.expected.size();
  Array accumulators(count * accumulator_size(c.reduction), offset + 2);
  Array dst(count * sizeof(T), offset);
  reduce_to_accumulators(c.reduction, pointers(c.sources), accumulators.data(), count);
  const std::byte* const source = accumulators.data();
  reduce_accumulators(c.reduction, {&source, 1}, dst.data(), count);
  c.expect(dst.data());
}

// Two hosts: the sum of the first rank, and that of all others. Integers do not mind the brackets.
template <typename T>
void check_two_hosts(Case<T>& c) {
  const std::size_t count = c.expected.size();
  const std::size_t bytes = count * accumulator_size(c.reduction);
  std::vector<Array> hosts{Array(bytes, 3), Array(bytes, 5)};
  const std::vector<const std::byte*> all = pointers(c.sources);
  reduce_to_accumulators(c.reduction, std::span(all).first(1), hosts[0].data(), count);
  reduce_to_accumulators(c.reduction, std::span(all).subspan(1), hosts[1].data(), count);
  Array dst(count * sizeof(T), 1);
  reduce_accumulators(c.reduction, pointers(hosts), dst.data(), count);
  c.expect(dst.data());
}

template <typename T>
void check_in_place(Case<T>& c) {
  for (std::size_t k = 0; k < c.sources.size(); ++k) {
    std::vector<Array> copies = c.sources;
    reduce(c.reduction, pointers(copies), copies[k].data(), c.expected.size());
    c.expect(copies[k].data());
  }
}

template <typename T, typename Body>
void for_each_case(DataType dtype, ReduceOp op, double prescale, double postscale, Body body) {
  for (const std::size_t ranks : source_counts) {
    for (const std::size_t count : element_counts) {
      for (const bool aligned : {true, false}) {
        SCOPED_TRACE(testing::Message() << ranks << " sources, " << count << " elements, aligned: " << aligned);
        Case<T> c(make_reduction(dtype, op, ranks, prescale, postscale), ranks, count, aligned);
        EachIsa::run([&] { body(c, aligned ? 0U : 1U); });
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

class Reduce : public EachIsa, public testing::WithParamInterface<std::tuple<DataType, ReduceOp>> {
 protected:
  template <typename Body>
  void for_each_case_of_param(double prescale, double postscale, Body body) {
    const auto [dtype, op] = GetParam();
    switch (dtype) {
#define HVD_CASE(id, type, text)                               \
  case DataType::id:                                           \
    for_each_case<type>(dtype, op, prescale, postscale, body); \
    break;
      HVD_FOR_EACH_DATA_TYPE(HVD_CASE)
#undef HVD_CASE
    }
  }
};

TEST_P(Reduce, HasTheBitsOfTheReferenceInOnePassInTwoHalvesAndInPlace) {
  for_each_case_of_param(1.0, 1.0, [](auto& c, std::size_t offset) {
    check_one_pass(c, offset);
    check_halves(c, offset);
    check_in_place(c);
    if constexpr (std::is_integral_v<typename decltype(c.expected)::value_type>) {
      if (c.sources.size() > 1) {
        check_two_hosts(c);
      }
    }
  });
}

TEST_P(Reduce, HasTheBitsOfTheReferenceWithAPrescaleAndAPostscale) {
  for_each_case_of_param(0.3, 1.7, [](auto& c, std::size_t offset) {
    check_one_pass(c, offset);
    check_halves(c, offset);
    check_in_place(c);
  });
}

TEST_P(Reduce, HasTheBitsOfTheReferenceWithOnlyOneOfTheScales) {
  for_each_case_of_param(3.5, 1.0, [](auto& c, std::size_t offset) { check_one_pass(c, offset); });
  for_each_case_of_param(1.0, 0.1, [](auto& c, std::size_t offset) { check_one_pass(c, offset); });
}

std::vector<DataType> all_data_types() {
  std::vector<DataType> all;
  for (std::uint8_t i = 0; i < data_type_count; ++i) {
    all.push_back(static_cast<DataType>(i));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Reduce,
                         testing::Combine(testing::ValuesIn(all_data_types()),
                                          testing::Values(ReduceOp::average, ReduceOp::sum, ReduceOp::min,
                                                          ReduceOp::max, ReduceOp::product)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) + "_" +
                                  std::string(to_string(std::get<1>(info.param)));
                         });

// The result of one element per rank, which all instruction sets must agree on; in the first lane and in the last.
template <typename T>
T reduce_values(ReduceOp op, const std::vector<T>& values, double prescale = 1, double postscale = 1) {
  constexpr std::size_t count = 37;
  std::vector<Array> sources;
  for (const T value : values) {
    sources.emplace_back(count * sizeof(T), 0U);
    for (std::size_t i = 0; i < count; ++i) {
      sources.back().set(i, value);
    }
  }
  const Reduction reduction = make_reduction(data_type_of<T>, op, values.size(), prescale, postscale);
  std::vector<T> results;
  EachIsa::run([&] {
    Array dst(count * sizeof(T), 0);
    reduce(reduction, pointers(sources), dst.data(), count);
    results.push_back(dst.get<T>(0));
    results.push_back(dst.get<T>(count - 1));
  });
  for (const T result : results) {
    EXPECT_EQ(std::memcmp(&result, results.data(), sizeof(T)), 0);
  }
  return results[0];
}

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

// The kernels' own conversions against hvd/half.h.
template <typename T>
class HalfKernels : public EachIsa {};
using HalfTypes = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfKernels, HalfTypes);

TYPED_TEST(HalfKernels, WidenEveryBitPattern) {
  constexpr std::size_t count = 65536;
  Array halves(count * 2, 0);
  for (std::size_t i = 0; i < count; ++i) {
    halves.set(i, static_cast<std::uint16_t>(i));
  }
  const std::byte* const source = halves.data();
  this->run([&] {
    Array floats(count * sizeof(float), 0);
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
    Array halves(floats.size() * 2, 0);
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
}

TEST(Isas, StartWithGenericAndTheBestIsActive) {
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), Isa::generic);
  EXPECT_EQ(available_isas().back(), active_isa());
}

}  // namespace
}  // namespace hvd::cpu
