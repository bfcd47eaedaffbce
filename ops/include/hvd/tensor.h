#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <hvd/export.h>
#include <hvd/types.h>

namespace hvd {

// Sizes of a tensor's dimensions, held inline. No dimensions: a scalar, one element.
class HVD_API Shape {
 public:
  static constexpr std::size_t max_rank = 16;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws InvalidArgumentError for a negative size, more than max_rank dimensions, or more elements than int64 holds.
  explicit Shape(std::span<const std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t dim) const { return dims_[dim]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::int64_t elements() const;
  // The same shape with another first dimension; needs rank() >= 1.
  Shape with_rows(std::int64_t rows) const;
  std::string to_string() const;  // "[2, 3]"

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.dims_ == b.dims_;  // unused sizes stay zero
  }

 private:
  std::array<std::int64_t, max_rank> dims_{};
  std::size_t rank_ = 0;
};

struct Device {
  enum class Kind : std::uint8_t { cpu, gpu };
  Kind kind = Kind::cpu;
  int index = 0;
  friend bool operator==(Device, Device) = default;
};

// Throws InvalidArgumentError unless the shape has that many elements.
HVD_API void check_elements(std::int64_t given, const Shape& shape);

// Non-owning, dense, row-major. The memory must stay valid until the operation that was given the view is done.
template <typename Pointer>
class BasicTensorView {
 public:
  BasicTensorView() = default;
  BasicTensorView(Pointer data, Shape shape, DataType dtype, Device device = {})
      : data_(data), shape_(shape), dtype_(dtype), device_(device) {}
  template <typename T>
  requires Element<std::remove_const_t<T>> && std::is_convertible_v<T*, Pointer> BasicTensorView(
      std::span<T> values)  // NOLINT(google-explicit-constructor): a span is a one-dimensional tensor
      : BasicTensorView(values.data(), Shape{static_cast<std::int64_t>(values.size())},
                        data_type_of<std::remove_const_t<T>>) {}
  template <typename T>
  requires Element<std::remove_const_t<T>> && std::is_convertible_v<T*, Pointer> BasicTensorView(
      std::span<T> values, Shape shape)  // throws InvalidArgumentError unless the element counts agree
      : BasicTensorView(values.data(), shape, data_type_of<std::remove_const_t<T>>) {
    check_elements(static_cast<std::int64_t>(values.size()), shape);
  }
  // A writable view is also a readable one.
  template <typename Other>
  requires(!std::is_same_v<Other, Pointer> && std::is_convertible_v<Other, Pointer>)
      BasicTensorView(const BasicTensorView<Other>& other)  // NOLINT(google-explicit-constructor)
      : BasicTensorView(other.data(), other.shape(), other.dtype(), other.device()) {}

  Pointer data() const { return data_; }
  const Shape& shape() const { return shape_; }
  DataType dtype() const { return dtype_; }
  Device device() const { return device_; }
  std::size_t bytes() const { return static_cast<std::size_t>(shape_.elements()) * size_of(dtype_); }

 private:
  Pointer data_ = nullptr;
  Shape shape_;
  DataType dtype_ = DataType::f32;
  Device device_;
};

using TensorView = BasicTensorView<void*>;
using ConstTensorView = BasicTensorView<const void*>;

// "float32[2, 3]"
HVD_API std::string describe(DataType dtype, const Shape& shape);

// A dense CPU tensor that owns its memory: what operations return when the result's size is only known afterwards.
class HVD_API Tensor {
 public:
  Tensor() = default;  // float32[0]
  Tensor(Shape shape, DataType dtype);

  const Shape& shape() const { return shape_; }
  DataType dtype() const { return dtype_; }
  void* data() { return storage_.get(); }
  const void* data() const { return storage_.get(); }
  TensorView view() { return {data(), shape_, dtype_}; }
  // Throws InvalidArgumentError when T is not the tensor's element type.
  template <Element T>
  std::span<const T> values() const {
    check_dtype(data_type_of<T>);
    return {static_cast<const T*>(data()), static_cast<std::size_t>(shape_.elements())};
  }

 private:
  void check_dtype(DataType wanted) const;

  Shape shape_{0};
  DataType dtype_ = DataType::f32;
  std::unique_ptr<std::byte[]> storage_;
};

}  // namespace hvd
