#pragma once

#include <torch/types.h>

#include <hvd/export.h>
#include <hvd/tensor.h>

namespace hvd::torch {

// The element type under which values of `type` travel; bool travels as uint8. Throws InvalidArgumentError that names
// the type when hvd does not carry it (complex and quantized types).
HVD_API DataType data_type(::torch::ScalarType type);

HVD_API Shape shape(const ::torch::Tensor& tensor);

// The tensor's memory for hvd's operations, which may write to it: hvd::allreduce(hvd::torch::view(t), {.name = "t"}).
// The tensor must outlive the operation. Throws InvalidArgumentError unless it is dense, contiguous and of a carried
// type.
HVD_API TensorView view(const ::torch::Tensor& tensor);

}  // namespace hvd::torch
