#pragma once

#include <gtest/gtest.h>
#include <hvd/tensor.h>
#include <hvd/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// What the collectives should give, computed one element after the other, in the order that their documentation
// promises.
namespace hvd::test {

inline constexpr DataType all_dtypes[] = {
#define HVD_LIST(id, type, text) DataType::id,
    HVD_FOR_EACH_DATA_TYPE(HVD_LIST)
#undef HVD_LIST
};
inline constexpr ReduceOp all_reduce_ops[] = {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                              ReduceOp::product};

// Calls visit(T{}) with the C++ type of the dtype.
template <typename Visit>
void with_type(DataType dtype, const Visit& visit) {
  switch (dtype) {
#define HVD_CASE(id, type, text) \
  case DataType::id:             \
    visit(type{});               \
    return;
    HVD_FOR_EACH_DATA_TYPE(HVD_CASE)
#undef HVD_CASE
  }
}

// A dense tensor of exactly its size, so that the address sanitizer sees a step too far.
class Array {
 public:
  Array() = default;
  Array(DataType dtype, const Shape& shape)
      : dtype_(dtype), shape_(shape), bytes_(static_cast<std::size_t>(shape.elements()) * size_of(dtype)) {}
  template <Element T>
  Array(const Shape& shape, const std::vector<T>& values) : Array(data_type_of<T>, shape) {
    EXPECT_EQ(values.size() * sizeof(T), bytes_.size());
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  explicit Array(const Tensor& tensor) : Array(tensor.dtype(), tensor.shape()) {
    if (!bytes_.empty()) std::memcpy(bytes_.data(), tensor.data(), bytes_.size());
  }

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t elements() const { return static_cast<std::size_t>(shape_.elements()); }
  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  TensorView view() { return {bytes_.data(), shape_, dtype_}; }
  ConstTensorView view() const { return {bytes_.data(), shape_, dtype_}; }

  template <typename T>
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void set(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }

  friend bool operator==(const Array&, const Array&) = default;

 private:
  DataType dtype_ = DataType::f32;
  Shape shape_{0};
  std::vector<std::byte> bytes_;
};

inline double as_double(const Array& array, std::size_t i) {
  double value = 0;
  with_type(array.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<double>(array.get<T>(i));
    } else {
      value = static_cast<double>(static_cast<float>(array.get<T>(i)));
    }
  });
  return value;
}

// Bit equality; says where the first difference is.
inline testing::AssertionResult same_bits(const Array& got, const Array& expected) {
  if (got == expected) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    return failure << describe(got.dtype(), got.shape()) << " instead of "
                   << describe(expected.dtype(), expected.shape());
  }
  const std::size_t size = size_of(got.dtype());
  const auto at =
      static_cast<std::size_t>(std::ranges::mismatch(got.bytes(), expected.bytes()).in1 - got.bytes().begin()) / size;
  return failure << describe(got.dtype(), got.shape()) << ": element " << at << " of " << got.elements() << " is "
                 << as_double(got, at) << " instead of " << as_double(expected, at);
}

// Reproducible values: integers of any size, floats of both signs whose sums round.
inline Array random_array(DataType dtype, const Shape& shape, std::uint64_t seed) {
  Array array(dtype, shape);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  const auto next = [&] {  // splitmix64
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
  };
  with_type(dtype, [&]<typename T>(T) {
    for (std::size_t i = 0; i < array.elements(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        array.set(i, static_cast<T>(next()));
      } else {
        array.set(i, T(std::conditional_t<std::is_same_v<T, double>, double, float>(
                         static_cast<double>(next() >> 11U) * 0x1p-49 - 8.0)));
      }
    }
  });
  return array;
}

struct ReduceSpec {
  ReduceOp op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<int> ranks_per_host = {};  // empty: all on one
};

template <typename V>
V combine(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return static_cast<V>(a + b);
    case ReduceOp::product:
      return static_cast<V>(a * b);
    case ReduceOp::min:
      return b < a || b != b ? b : a;
    case ReduceOp::max:
      return a < b || b != b ? b : a;
  }
  return a;
}

// In rank order within each host, then in host order.
template <typename V, typename Load>
V combine_ranks(const ReduceSpec& spec, std::size_t ranks, const Load& load) {
  std::vector<int> counts = spec.ranks_per_host;
  if (counts.empty()) counts = {static_cast<int>(ranks)};
  V total{};
  std::size_t rank = 0;
  for (std::size_t host = 0; host < counts.size(); ++host) {
    V sum = load(rank++);
    for (int k = 1; k < counts[host]; ++k) sum = combine<V>(spec.op, sum, load(rank++));
    total = host == 0 ? sum : combine<V>(spec.op, total, sum);
  }
  return total;
}

__extension__ typedef __int128 WideInt;
__extension__ typedef unsigned __int128 WideUnsigned;

template <typename T>
T reduced_integer(const ReduceSpec& spec, std::span<const Array> inputs, std::size_t i) {
  if (spec.prescale != 1.0 || spec.postscale != 1.0) {
    const auto load = [&](std::size_t rank) { return static_cast<double>(inputs[rank].get<T>(i)) * spec.prescale; };
    double result = combine_ranks<double>(spec, inputs.size(), load);
    const auto divisor = static_cast<double>(spec.op == ReduceOp::average ? inputs.size() : 1);
    result = spec.postscale == 1.0 ? result / divisor : result * (spec.postscale / divisor);
    if (std::isnan(result)) return 0;
    const long double whole = std::trunc(static_cast<long double>(result));
    return static_cast<T>(std::clamp(whole, static_cast<long double>(std::numeric_limits<T>::min()),
                                     static_cast<long double>(std::numeric_limits<T>::max())));
  }
  if (spec.op == ReduceOp::min || spec.op == ReduceOp::max) {
    return combine_ranks<T>(spec, inputs.size(), [&](std::size_t rank) { return inputs[rank].get<T>(i); });
  }
  const auto load = [&](std::size_t rank) {
    return static_cast<WideUnsigned>(static_cast<WideInt>(inputs[rank].get<T>(i)));
  };
  const WideUnsigned result = combine_ranks<WideUnsigned>(spec, inputs.size(), load);
  if (spec.op != ReduceOp::average) return static_cast<T>(result);
  return static_cast<T>(static_cast<WideInt>(result) / static_cast<WideInt>(inputs.size()));
}

template <typename T>
T reduced_float(const ReduceSpec& spec, std::span<const Array> inputs, std::size_t i) {
  using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto load = [&](std::size_t rank) {
    return static_cast<V>(inputs[rank].get<T>(i)) * static_cast<V>(spec.prescale);
  };
  V result = combine_ranks<V>(spec, inputs.size(), load);
  const auto divisor = static_cast<double>(spec.op == ReduceOp::average ? inputs.size() : 1);
  if (spec.postscale == 1.0) {
    result /= static_cast<V>(divisor);
  } else {
    result *= static_cast<V>(spec.postscale / divisor);
  }
  return T(std::isnan(result) ? std::numeric_limits<V>::quiet_NaN() : result);
}

// inputs: by rank
inline Array reduced(const ReduceSpec& spec, std::span<const Array> inputs) {
  Array result(inputs[0].dtype(), inputs[0].shape());
  with_type(result.dtype(), [&]<typename T>(T) {
    for (std::size_t i = 0; i < result.elements(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        result.set(i, reduced_integer<T>(spec, inputs, i));
      } else {
        result.set(i, reduced_float<T>(spec, inputs, i));
      }
    }
  });
  return result;
}

inline Array gathered(std::span<const Array> inputs) {
  std::int64_t rows = 0;
  for (const Array& input : inputs) rows += input.shape()[0];
  Array result(inputs[0].dtype(), inputs[0].shape().with_rows(rows));
  result.bytes().clear();
  for (const Array& input : inputs)
    result.bytes().insert(result.bytes().end(), input.bytes().begin(), input.bytes().end());
  return result;
}

}  // namespace hvd::test
