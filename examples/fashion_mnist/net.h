#pragma once

#include <torch/nn/functional.h>
#include <torch/nn/module.h>
#include <torch/nn/modules.h>

// Two convolutions with pooling, two linear layers: 28 x 28 grey images to the log-probabilities of 10 classes.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  // [N, 1, 28, 28] -> [N, 10]
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(conv1(x), 2).relu();
    x = torch::max_pool2d(conv2(x), 2).relu();
    x = fc1(x.flatten(1)).relu();
    return torch::log_softmax(fc2(x), 1);
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 5)};   // 28 -> 24, pooled to 12
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 32, 3)};  // 12 -> 10, pooled to 5
  torch::nn::Linear fc1{32 * 5 * 5, 96};
  torch::nn::Linear fc2{96, 10};
};
TORCH_MODULE(Net);
