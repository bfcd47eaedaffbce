#pragma once

#include <torch/nn/functional.h>
#include <torch/nn/module.h>
#include <torch/nn/modules.h>

// Two convolutions with pooling, then two layers over the whole of what is left: 28 x 28 grey images to the
// log-probabilities of 10 classes. The last two are written as convolutions because libtorch computes those with
// oneDNN; its linear layers go to the BLAS, and the one that a fresh Debian has takes several times as long.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("dense1", dense1);
    register_module("dense2", dense2);
  }

  // [N, 1, 28, 28] -> [N, 10]
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(conv1(x), 2).relu();
    x = torch::max_pool2d(conv2(x), 2).relu();
    x = dense2(dense1(x).relu());
    return torch::log_softmax(x.flatten(1), 1);
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 5)};    // 28 -> 24, pooled to 12
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 32, 3)};   // 12 -> 10, pooled to 5
  torch::nn::Conv2d dense1{torch::nn::Conv2dOptions(32, 96, 5)};  // 5 -> 1
  torch::nn::Conv2d dense2{torch::nn::Conv2dOptions(96, 10, 1)};
};
TORCH_MODULE(Net);
