#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>

namespace hvd::torch {

// Hears of each gradient that backward() adds to a parameter. Called from autograd's threads; an exception leaves
// backward().
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void before_accumulation(std::size_t index) = 0;  // parameter.grad() is still as it was
  virtual void after_accumulation(std::size_t index) = 0;
};

// The autograd node that adds to the parameter's gradient; it carries the hooks. The parameter holds it weakly: keep
// it. The same one comes back, also while the parameter is frozen, until something like Module::to() replaces it. Null
// for types that cannot have gradients.
std::shared_ptr<::torch::autograd::Node> gradient_node(const ::torch::Tensor& parameter);

// Hooks may outlive the listener, as graphs keep nodes alive; they then do nothing.
void add_hooks(::torch::autograd::Node& node, const std::weak_ptr<GradientListener>& listener, std::size_t index);
// True when add_hooks() was called for a listener that is still alive.
bool has_hooks(::torch::autograd::Node& node);

}  // namespace hvd::torch
