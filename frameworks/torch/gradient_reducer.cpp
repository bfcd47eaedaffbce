#include "gradient_reducer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <hvd/hvd.h>
#include <hvd/torch/tensor.h>

#include "negotiation/rank_groups.h"
#include "weight_check.h"

namespace hvd::torch {

namespace {

bool shares_memory(const ::torch::Tensor& gradient) {
  // Autograd may hand views of one result to several parameters; in place, that result would be reduced several times.
  return gradient.storage().use_count() > 1;
}

std::string ordinal(int n) {
  const bool teen = n % 100 / 10 == 1;
  const int last = teen ? 0 : n % 10;
  return fmt::format("{}{}", n, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

constexpr std::chrono::seconds abandon_after{10};

}  // namespace

GradientReducer::GradientReducer(std::uint64_t number, const DistributedOptimizerOptions& options)
    : prefix_(fmt::format("optimizer.{}", number)),
      op_(options.op),
      passes_per_step_(options.backward_passes_per_step),
      check_weights_(options.check_weights) {}

GradientReducer::~GradientReducer() {
  abandon();
  // Freeing memory that is still in flight would be worse than losing it.
  if (!abandoned_.empty()) {
    static_cast<void>(std::make_unique<std::vector<Reduction>>(std::move(abandoned_)).release());
  }
}

void GradientReducer::add(const std::string& name, const ::torch::Tensor& parameter) {
  const std::lock_guard lock(mutex_);
  Slot slot;
  slot.name = name;
  slot.operation = fmt::format("{}.{}", prefix_, name);
  slot.parameter = parameter;
  slots_.push_back(std::move(slot));
}

void GradientReducer::renew_hooks(bool after_backward) {
  const std::lock_guard lock(mutex_);
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    auto node = gradient_node(slot.parameter);
    if (node == slot.node) continue;
    slot.node = std::move(node);
    if (slot.node == nullptr) continue;
    add_hooks(*slot.node, weak_from_this(), index);
    if (after_backward && slot.passes == 0 && slot.parameter.grad().defined()) slot.passes = 1;
  }
}

void GradientReducer::set_backward_passes_per_step(int passes) {
  const std::lock_guard lock(mutex_);
  passes_per_step_ = passes;
  for (Slot& slot : slots_) slot.left_over = slot.passes;
}

int GradientReducer::backward_passes_per_step() const {
  const std::lock_guard lock(mutex_);
  return passes_per_step_;
}

void GradientReducer::before_accumulation(std::size_t index) {
  const std::lock_guard lock(mutex_);
  const Slot& slot = slots_[index];
  if (slot.passes < passes_per_step_ && !slot.reduction.has_value()) return;
  throw InvalidArgumentError(fmt::format("parameter '{}': {} backward, backward_passes_per_step={}, {}", slot.name,
                                         ordinal(slot.passes + 1), passes_per_step_,
                                         slot.left_over > 0
                                             ? fmt::format("{} left over from before", slot.left_over)
                                             : std::string("step(), synchronize() or zero_grad() must come first")));
}

void GradientReducer::after_accumulation(std::size_t index) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[index];
  // A parameter frozen after the forward pass still gets here, with nothing accumulated.
  if (!slot.parameter.requires_grad() || !slot.parameter.grad().defined()) return;
  ++slot.passes;
  synchronized_ = false;
  if (slot.passes == passes_per_step_) submit(slot);
}

void GradientReducer::submit(Slot& slot) const {
  if (size() == 1) return;
  const ::torch::NoGradGuard no_grad;
  ::torch::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.defined()) gradient = ::torch::zeros_like(slot.parameter);
  ::torch::Tensor buffer = gradient;
  if (gradient.layout() != ::torch::kStrided) {
    buffer = gradient.to_dense().contiguous();
  } else if (!gradient.is_contiguous() || shares_memory(gradient)) {
    buffer = gradient.detach().clone(::torch::MemoryFormat::Contiguous);
  }
  Handle handle = allreduce_async(view(buffer), {.name = slot.operation, .op = op_});
  slot.reduction = Reduction{gradient, std::move(buffer), std::move(handle)};
}

void GradientReducer::write_back(Slot& slot) {
  const ::torch::NoGradGuard no_grad;
  const Reduction& reduction = *slot.reduction;
  ::torch::Tensor& gradient = slot.parameter.mutable_grad();
  if (reduction.gradient.layout() != ::torch::kStrided) {
    gradient = reduction.buffer;
    return;
  }
  if (!reduction.buffer.is_same(reduction.gradient)) reduction.gradient.detach().copy_(reduction.buffer);
  if (!gradient.is_same(reduction.gradient)) gradient = reduction.gradient;
}

void GradientReducer::synchronize() { settle(Intent::step); }

void GradientReducer::drop() {
  {
    const std::lock_guard lock(mutex_);
    synchronized_ = false;
    if (std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.passes > 0; })) return;
  }
  settle(Intent::drop);
}

void GradientReducer::settle(Intent intent) {
  const std::lock_guard lock(mutex_);
  try {
    for (Slot& slot : slots_) {
      if (intent == Intent::step && slot.passes > 0 && !slot.reduction.has_value()) submit(slot);
    }
    const std::vector<std::uint8_t> told = exchange(intent);
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      if (told[k] != 0 && !slots_[k].reduction.has_value()) submit(slots_[k]);
    }
    // Not earlier: now every reduction that some rank has started is under way on all of them, and will end.
    RankGroups calls;
    for (std::size_t k = slots_.size(); k < told.size(); ++k) {
      calls.add(static_cast<int>(k - slots_.size()), told[k] == static_cast<std::uint8_t>(Intent::step)
                                                         ? "step() or synchronize()"
                                                         : "zero_grad() after backward()");
    }
    if (!calls.agree()) throw MismatchError(fmt::format("{}: calls differ: {}", prefix_, calls.to_string()));
    compare_weights();
    finish(intent, told);
  } catch (...) {
    abandon();
    throw;
  }
}

// One byte for each parameter: whether some rank needs its reduction. Then one for each rank: what it is about to do.
std::vector<std::uint8_t> GradientReducer::exchange(Intent intent) const {
  std::vector<std::uint8_t> told(slots_.size() + static_cast<std::size_t>(size()), 0);
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    told[k] = intent == Intent::step ? slots_[k].passes > 0 : slots_[k].reduction.has_value();
  }
  told[slots_.size() + static_cast<std::size_t>(rank())] = static_cast<std::uint8_t>(intent);
  if (size() > 1) allreduce(told, {.name = fmt::format("{}.gradients", prefix_), .op = ReduceOp::max});
  return told;
}

void GradientReducer::compare_weights() {
  if (!std::exchange(check_weights_, false) || size() == 1) return;
  std::vector<::torch::Tensor> parameters;
  for (const Slot& slot : slots_) parameters.push_back(slot.parameter);
  std::vector<std::string> unlike;
  for (const std::size_t k : find_unlike(fmt::format("{}.weights", prefix_), parameters)) {
    unlike.push_back(fmt::format("'{}'", slots_[k].name));
  }
  if (unlike.empty()) return;
  throw MismatchError(
      fmt::format("{}: weights differ between ranks before the first step: {}: call broadcast_parameters()", prefix_,
                  fmt::join(unlike, ", ")));
}

void GradientReducer::finish(Intent intent, const std::vector<std::uint8_t>& wanted) {
  for (const Slot& slot : slots_) {
    if (slot.reduction.has_value()) slot.reduction->handle.wait();
  }
  const bool step = intent == Intent::step;
  if (step) unused_.clear();
  any_reduced_ = false;
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    Slot& slot = slots_[k];
    if (step && slot.reduction.has_value()) write_back(slot);
    if (step && wanted[k] == 0 && slot.parameter.requires_grad()) unused_.push_back(slot.name);
    any_reduced_ = any_reduced_ || (step && wanted[k] != 0);
    slot.reduction.reset();
    slot.passes = slot.left_over = 0;
  }
  synchronized_ = step;
}

bool GradientReducer::is_synchronized() const {
  const std::lock_guard lock(mutex_);
  return synchronized_;
}

void GradientReducer::end_step() {
  const std::lock_guard lock(mutex_);
  synchronized_ = false;
  if (!any_reduced_) {
    throw InvalidArgumentError(fmt::format(
        "{}: no gradient was reduced since the last step: call backward() on a loss before step()", prefix_));
  }
  any_reduced_ = false;
}

::torch::Tensor GradientReducer::average_loss(const ::torch::Tensor& loss) const {
  if (!loss.defined() || size() == 1) return loss;
  ::torch::Tensor average = loss.detach().clone(::torch::MemoryFormat::Contiguous);
  allreduce(view(average), {.name = fmt::format("{}.loss", prefix_)});
  return average;
}

// Ends the group after an error, without another one. Gradients still in flight keep their memory to themselves.
void GradientReducer::abandon() noexcept {
  const auto deadline = std::chrono::steady_clock::now() + abandon_after;
  synchronized_ = any_reduced_ = false;
  for (Slot& slot : slots_) {
    slot.passes = slot.left_over = 0;
    if (!slot.reduction.has_value()) continue;
    bool done = false;
    try {
      const std::chrono::duration<double> rest = deadline - std::chrono::steady_clock::now();
      done = slot.reduction->handle.wait_for(std::max(rest, std::chrono::duration<double>::zero()));
    } catch (const std::exception&) {
      done = true;  // failed, of the cause that is already on its way to the caller
    }
    if (!done) {
      slot.parameter.mutable_grad() = ::torch::Tensor();
      abandoned_.push_back(std::move(*slot.reduction));
    }
    slot.reduction.reset();
  }
}

std::vector<std::string> GradientReducer::unused_parameters() const {
  const std::lock_guard lock(mutex_);
  return unused_;
}

std::vector<std::string> GradientReducer::parameter_names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Slot& slot : slots_) names.push_back(slot.name);
  return names;
}

}  // namespace hvd::torch
