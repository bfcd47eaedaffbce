#include "gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace hvd::torch {

namespace {

using ::torch::autograd::variable_list;

struct Hook {
  std::weak_ptr<GradientListener> listener;
  std::size_t index;
};

struct BeforeHook final : ::torch::autograd::FunctionPreHook {
  explicit BeforeHook(Hook to_call) : hook(std::move(to_call)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (const auto listener = hook.listener.lock()) listener->before_accumulation(hook.index);
    return gradients;
  }
  Hook hook;
};

struct AfterHook final : ::torch::autograd::FunctionPostHook {
  explicit AfterHook(Hook to_call) : hook(std::move(to_call)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    if (const auto listener = hook.listener.lock()) listener->after_accumulation(hook.index);
    return outputs;
  }
  Hook hook;
};

}  // namespace

std::shared_ptr<::torch::autograd::Node> gradient_node(const ::torch::Tensor& parameter) {
  if (!parameter.is_floating_point() || !parameter.is_leaf()) return nullptr;
  // Only a tensor that requires a gradient shows its node.
  const bool required = parameter.requires_grad();
  if (!required) parameter.set_requires_grad(true);
  auto node = ::torch::autograd::impl::grad_accumulator(parameter);
  if (!required) parameter.set_requires_grad(false);
  return node;
}

void add_hooks(::torch::autograd::Node& node, const std::weak_ptr<GradientListener>& listener, std::size_t index) {
  node.add_pre_hook(std::make_unique<BeforeHook>(Hook{listener, index}));
  node.add_post_hook(std::make_unique<AfterHook>(Hook{listener, index}));
}

bool has_hooks(::torch::autograd::Node& node) {
  const auto& hooks = node.post_hooks();
  return std::any_of(hooks.begin(), hooks.end(), [](const auto& hook) {
    const auto* ours = dynamic_cast<const AfterHook*>(hook.get());
    return ours != nullptr && !ours->hook.listener.expired();
  });
}

}  // namespace hvd::torch
