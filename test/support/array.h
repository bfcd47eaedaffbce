#pragma once

#include <gtest/gtest.h>
#include <hvd/tensor.h>
#include <hvd/types.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

// Tensors of any dtype for tests, and their contents.
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

template <typename T>
inline constexpr bool is_complex = false;
template <typename V>
inline constexpr bool is_complex<std::complex<V>> = true;

// Element i for a human.
inline std::string element_text(const Array& array, std::size_t i) {
  std::ostringstream text;
  with_type(array.dtype(), [&]<typename T>(T) {
    if constexpr (sizeof(T) == 1) {  // a number, neither a character nor a bool, which might be no valid one
      text << static_cast<int>(array.bytes()[i]) << " (byte)";
    } else if constexpr (std::is_arithmetic_v<T> || is_complex<T>) {
      text << array.get<T>(i);
    } else {
      text << static_cast<float>(array.get<T>(i));
    }
  });
  return text.str();
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
                 << element_text(got, at) << " instead of " << element_text(expected, at);
}

// Reproducible values: integers of any size, bools, floats of both signs whose sums round, any fp8 code.
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
  const auto next_real = [&] { return static_cast<double>(next() >> 11U) * 0x1p-49 - 8.0; };
  with_type(dtype, [&]<typename T>(T) {
    for (std::size_t i = 0; i < array.elements(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        array.set(i, (next() & 1U) != 0);
      } else if constexpr (sizeof(T) == 1) {
        array.set(i, static_cast<std::uint8_t>(next()));
      } else if constexpr (std::is_integral_v<T>) {
        array.set(i, static_cast<T>(next()));
      } else if constexpr (is_complex<T>) {
        using V = typename T::value_type;
        const auto real = static_cast<V>(next_real());
        array.set(i, T(real, static_cast<V>(next_real())));
      } else {
        array.set(i, T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(next_real())));
      }
    }
  });
  return array;
}

}  // namespace hvd::test
