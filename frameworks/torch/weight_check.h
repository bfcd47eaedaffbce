#pragma once

#include <torch/types.h>

#include <string_view>
#include <vector>

namespace hvd::torch {

// Compares the ranks' values of each tensor by hash, in one small allreduce under `operation`; collective. Returns the
// positions of those that differ.
std::vector<std::size_t> find_unlike(std::string_view operation, const std::vector<::torch::Tensor>& tensors);

}  // namespace hvd::torch
