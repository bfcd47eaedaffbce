#include <hvd/torch/tensor.h>

#include <fmt/format.h>

#include <hvd/error.h>

namespace hvd::torch {

DataType data_type(::torch::ScalarType type) {
  switch (type) {
    case ::torch::kUInt8:
      return DataType::u8;
    case ::torch::kInt8:
      return DataType::i8;
    case ::torch::kInt16:
      return DataType::i16;
    case ::torch::kInt32:
      return DataType::i32;
    case ::torch::kInt64:
      return DataType::i64;
    case ::torch::kFloat16:
      return DataType::f16;
    case ::torch::kBFloat16:
      return DataType::bf16;
    case ::torch::kFloat32:
      return DataType::f32;
    case ::torch::kFloat64:
      return DataType::f64;
    case ::torch::kBool:
      return DataType::boolean;
    case ::torch::kComplexFloat:
      return DataType::c64;
    case ::torch::kComplexDouble:
      return DataType::c128;
    default:
      throw InvalidArgumentError(fmt::format("tensors of type {} are not supported", ::c10::toString(type)));
  }
}

Shape shape(const ::torch::Tensor& tensor) {
  const auto sizes = tensor.sizes();
  return Shape(std::span<const std::int64_t>(sizes.data(), sizes.size()));
}

TensorView view(const ::torch::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgumentError("view of a tensor that is not defined");
  if (tensor.layout() != ::torch::kStrided) throw InvalidArgumentError("view of a sparse tensor: make it dense first");
  if (!tensor.is_contiguous()) throw InvalidArgumentError("view of a tensor that is not contiguous: copy it first");
  const DataType dtype = data_type(tensor.scalar_type());
  const Device device = tensor.is_cuda() ? Device{Device::Kind::gpu, static_cast<int>(tensor.get_device())} : Device{};
  return {tensor.data_ptr(), shape(tensor), dtype, device};
}

}  // namespace hvd::torch
