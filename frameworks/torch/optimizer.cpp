#include <hvd/torch/optimizer.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include <hvd/hvd.h>
#include <hvd/torch/tensor.h>

#include "gradient_reducer.h"
#include "inventory.h"

namespace hvd::torch {

namespace {

struct Placed {  // a parameter of the wrapped optimizer that is new to the wrapper
  std::string name;
  ::torch::Tensor parameter;
};

// Wrappers are told apart by a number all ranks agree on; a process counts its own to have a number to propose.
std::atomic<std::uint64_t> next_number{0};

std::string describe_tensor(const ::torch::Tensor& tensor) {
  return describe(data_type(tensor.scalar_type()), shape(tensor));
}

void check_passes(int passes) {
  if (passes < 1) {
    throw InvalidArgumentError(
        fmt::format("DistributedOptimizer: backward_passes_per_step is {}, must be positive", passes));
  }
}

}  // namespace

struct DistributedOptimizer::Impl {
  explicit Impl(::torch::optim::Optimizer& wrapped) : optimizer(&wrapped) {}

  void set_names(const NamedParameters& named_parameters);
  void start(const DistributedOptimizerOptions& options);
  // Parameters of the optimizer that are not known yet, checked: named, of a carried type, without another wrapper.
  std::vector<Placed> find_new() const;
  // Follows what may have changed since the last call: parameter groups, autograd nodes.
  void refresh(bool after_backward);
  void synchronize();

  ::torch::optim::Optimizer* optimizer;
  bool names_by_place = false;
  std::vector<::torch::Tensor> named;  // keeps the addresses below from being used again
  std::unordered_map<const void*, std::string> names;
  std::unordered_set<const void*> known;
  std::shared_ptr<GradientReducer> reducer;
};

void DistributedOptimizer::Impl::set_names(const NamedParameters& named_parameters) {
  std::unordered_map<std::string, ::torch::Tensor> by_name;
  for (const auto& [name, tensor] : named_parameters) {
    if (!tensor.defined() || name.empty()) continue;
    const auto [known_name, is_new] = by_name.try_emplace(name, tensor);
    if (!is_new && !known_name->second.is_same(tensor)) {
      throw InvalidArgumentError(fmt::format("DistributedOptimizer: two parameters are named '{}': {} and {}", name,
                                             describe_tensor(known_name->second), describe_tensor(tensor)));
    }
    named.push_back(tensor);
    names.try_emplace(tensor.unsafeGetTensorImpl(), name);  // of a tied tensor's names, the first
  }
}

std::vector<Placed> DistributedOptimizer::Impl::find_new() const {
  std::vector<Placed> found;
  std::vector<std::string> unnamed;
  std::unordered_set<const void*> seen;
  const auto& groups = optimizer->param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& parameters = groups[g].params();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const void* id = parameters[p].unsafeGetTensorImpl();
      if (!parameters[p].defined() || known.count(id) > 0 || !seen.insert(id).second) continue;
      std::string name;
      if (names_by_place) {
        name = fmt::format("group{}.{}", g, p);
      } else if (const auto entry = names.find(id); entry != names.end()) {
        name = entry->second;
      } else {
        unnamed.push_back(fmt::format("group {} position {} {}", g, p, describe_tensor(parameters[p])));
        continue;
      }
      try {
        static_cast<void>(data_type(parameters[p].scalar_type()));
      } catch (const InvalidArgumentError& error) {
        throw InvalidArgumentError(fmt::format("DistributedOptimizer: parameter '{}': {}", name, error.what()));
      }
      if (const auto node = gradient_node(parameters[p]); node != nullptr && has_hooks(*node)) {
        throw InvalidArgumentError(
            fmt::format("DistributedOptimizer: parameter '{}' already belongs to another DistributedOptimizer", name));
      }
      found.push_back({std::move(name), parameters[p]});
    }
  }
  if (!unnamed.empty()) {
    throw InvalidArgumentError(
        fmt::format("DistributedOptimizer: parameters without a name: {}", fmt::join(unnamed, "; ")));
  }
  return found;
}

void DistributedOptimizer::Impl::refresh(bool after_backward) {
  for (const Placed& placed : find_new()) {
    known.insert(placed.parameter.unsafeGetTensorImpl());
    reducer->add(placed.name, placed.parameter);
  }
  reducer->renew_hooks(after_backward);
}

void DistributedOptimizer::Impl::synchronize() {
  refresh(/*after_backward=*/true);
  if (!reducer->is_synchronized()) reducer->synchronize();
}

void DistributedOptimizer::Impl::start(const DistributedOptimizerOptions& options) {
  check_passes(options.backward_passes_per_step);
  Inventory inventory;
  for (const Placed& placed : find_new()) {
    inventory.push_back({placed.name, data_type(placed.parameter.scalar_type()), shape(placed.parameter), {}});
  }
  const std::uint64_t number = require_agreement("DistributedOptimizer", inventory, next_number.load());
  next_number.store(number + 1);
  reducer = std::make_shared<GradientReducer>(number, options);
  refresh(/*after_backward=*/false);
}

DistributedOptimizer::DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                                           const NamedParameters& named_parameters,
                                           const DistributedOptimizerOptions& options)
    : impl_(std::make_unique<Impl>(optimizer)) {
  impl_->set_names(named_parameters);
  impl_->start(options);
}

DistributedOptimizer::DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                                           const ::torch::OrderedDict<std::string, ::torch::Tensor>& named_parameters,
                                           const DistributedOptimizerOptions& options)
    : DistributedOptimizer(optimizer, named_parameters.pairs(), options) {}

DistributedOptimizer::DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                                           const DistributedOptimizerOptions& options)
    : impl_(std::make_unique<Impl>(optimizer)) {
  impl_->names_by_place = true;
  impl_->start(options);
}

DistributedOptimizer::~DistributedOptimizer() = default;
DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&&) noexcept = default;
DistributedOptimizer& DistributedOptimizer::operator=(DistributedOptimizer&&) noexcept = default;

::torch::Tensor DistributedOptimizer::step(LossClosure closure) {
  if (closure == nullptr) {
    impl_->synchronize();
    impl_->reducer->end_step();
    return impl_->optimizer->step();
  }
  return impl_->optimizer->step([&] {
    const ::torch::Tensor loss = closure();
    impl_->synchronize();
    impl_->reducer->end_step();
    return impl_->reducer->average_loss(loss);
  });
}

void DistributedOptimizer::synchronize() { impl_->synchronize(); }

void DistributedOptimizer::zero_grad() {
  impl_->refresh(/*after_backward=*/false);
  impl_->reducer->drop();
  impl_->optimizer->zero_grad();
}

void DistributedOptimizer::set_backward_passes_per_step(int passes) {
  check_passes(passes);
  impl_->reducer->set_backward_passes_per_step(passes);
}

int DistributedOptimizer::backward_passes_per_step() const { return impl_->reducer->backward_passes_per_step(); }

std::vector<std::string> DistributedOptimizer::unused_parameters() const { return impl_->reducer->unused_parameters(); }

std::vector<std::string> DistributedOptimizer::parameter_names() const { return impl_->reducer->parameter_names(); }

::torch::optim::Optimizer& DistributedOptimizer::optimizer() { return *impl_->optimizer; }

}  // namespace hvd::torch
