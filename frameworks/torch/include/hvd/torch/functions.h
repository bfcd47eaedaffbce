#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <string>

#include <hvd/export.h>

namespace hvd::torch {

// Gives every rank the root's values of the module's parameters and buffers, or of the named tensors; all ranks call
// it. Names, dtypes, shapes and ties (one tensor under two names) are compared in one exchange first; where they
// differ, every rank throws MismatchError: "broadcast_parameters: rank 1 lacks 'bn.num_batches_tracked'". Tensors of
// any strides.
HVD_API void broadcast_parameters(const ::torch::nn::Module& module, int root_rank = 0);
HVD_API void broadcast_parameters(const ::torch::OrderedDict<std::string, ::torch::Tensor>& named_parameters,
                                  int root_rank = 0);

// Gives every rank the root's optimizer state and options (learning rates, momentum buffers, step counts), in the form
// in which libtorch saves them. The optimizers are of one type with equal parameter groups; all ranks call it.
HVD_API void broadcast_optimizer_state(::torch::optim::Optimizer& optimizer, int root_rank = 0);

}  // namespace hvd::torch
