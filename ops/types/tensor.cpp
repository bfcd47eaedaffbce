#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hvd/error.h>
#include <hvd/tensor.h>
#include <algorithm>

namespace hvd {

namespace {

// Empty tensors get one byte, so that data() is never null.
std::unique_ptr<std::byte[]> allocate(const Shape& shape, DataType dtype) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  return std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(bytes, 1));
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (dims.size() > max_rank) {
    throw InvalidArgumentError(fmt::format("a tensor has at most {} dimensions, got {}", max_rank, dims.size()));
  }
  std::ranges::copy(dims, dims_.begin());
  // The product of the non-zero sizes must fit as well: a later with_rows() may replace the zero.
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0) throw InvalidArgumentError(fmt::format("negative size in shape {}", to_string()));
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product)) {
      throw InvalidArgumentError(fmt::format("shape {} has more elements than 64 bits hold", to_string()));
    }
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

Shape Shape::with_rows(std::int64_t rows) const {
  Shape changed = *this;
  changed.dims_[0] = rows;
  return Shape(changed.dims());
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims(), ", ")); }

std::string describe(DataType dtype, const Shape& shape) {
  return fmt::format("{}{}", hvd::to_string(dtype), shape.to_string());
}

void check_elements(std::int64_t given, const Shape& shape) {
  if (given != shape.elements()) {
    throw InvalidArgumentError(
        fmt::format("shape {} has {} elements, the span {}", shape.to_string(), shape.elements(), given));
  }
}

Tensor::Tensor(Shape shape, DataType dtype) : shape_(shape), dtype_(dtype), storage_(allocate(shape, dtype)) {}

void Tensor::check_dtype(DataType wanted) const {
  if (wanted != dtype_) {
    throw InvalidArgumentError(fmt::format("the tensor holds {}, values of {} were asked for", hvd::to_string(dtype_),
                                           hvd::to_string(wanted)));
  }
}

}  // namespace hvd
