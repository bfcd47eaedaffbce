#pragma once

#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hvd/export.h>
#include <hvd/types.h>

namespace hvd::torch {

struct DistributedOptimizerOptions {
  // How gradients are combined over the ranks. Average: each rank's loss is the mean over its own samples, and equal
  // shares give the gradient of the mean over all samples.
  ReduceOp op = ReduceOp::average;
  // Backward passes whose gradients are summed, as in plain torch, before they are reduced. The sum is not divided by
  // the number of passes; divide the loss for a mean.
  int backward_passes_per_step = 1;
  // At the first step, compare the ranks' parameters (by hash) and throw MismatchError that names those that differ.
  bool check_weights = true;
};

// Makes a libtorch optimizer data-parallel: training on n ranks equals training of one process on the joined batch.
//
// Each parameter's autograd node gets a hook that starts the allreduce of its gradient, in place, while backward() goes
// on. step() waits for them and steps the wrapped optimizer, which the caller keeps and which must outlive the wrapper.
//
// - The constructor and every step() are collective: all ranks call them in the same order, also with several wrappers.
// - A parameter without a gradient on some ranks counts as zero there; one without on all ranks is left alone.
// - Tensors that appear under two names are reduced once. Parameters may change requires_grad, and the wrapped
// optimizer may
//   gain parameter groups; names of added parameters must be among those given to the constructor.
// - Sparse gradients are reduced and left as dense ones. Gradients of any strides are allowed.
// - Hooks of the caller's own run before the reduction, which takes what they leave in the gradient.
// - With an op other than average, call zero_grad() before each step: values left from the last one would be added
// again.
//
// An Error out of any member ends the step: reductions in flight are waited for and dropped, and the next step starts
// afresh.
class HVD_API DistributedOptimizer {
 public:
  using NamedParameters = std::vector<std::pair<std::string, ::torch::Tensor>>;
  using LossClosure = ::torch::optim::Optimizer::LossClosure;

  // Throws InvalidArgumentError for a parameter of the optimizer that has no name (with its group, position and shape),
  // a name given to two tensors, a dtype that hvd does not carry, and a parameter that another living wrapper has;
  // throws MismatchError on every rank when their names, dtypes or shapes differ.
  DistributedOptimizer(::torch::optim::Optimizer& optimizer, const NamedParameters& named_parameters,
                       const DistributedOptimizerOptions& options = {});
  DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                       const ::torch::OrderedDict<std::string, ::torch::Tensor>& named_parameters,
                       const DistributedOptimizerOptions& options = {});
  // Parameters are named by their place: "group0.0", "group0.1", ...
  explicit DistributedOptimizer(::torch::optim::Optimizer& optimizer, const DistributedOptimizerOptions& options = {});
  ~DistributedOptimizer();
  DistributedOptimizer(DistributedOptimizer&&) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept;

  // Reduces what synchronize() has not, then steps the wrapped optimizer. Fewer than backward_passes_per_step passes
  // are fine: the sum of those made is reduced. Throws InvalidArgumentError when no rank's backward() has computed a
  // gradient since the last step. A closure is handed on; each of its evaluations is reduced, and its loss averaged
  // over the ranks, so that line searches decide alike everywhere. Returns what the wrapped optimizer returns.
  ::torch::Tensor step(LossClosure closure = nullptr);
  // Waits until every gradient is reduced, for work between backward() and step(), such as clipping. Collective.
  void synchronize();
  // Zeroes the gradients. Those that backward() has handed over since the last step are waited for and dropped; all
  // ranks must then do the same.
  void zero_grad();

  // From the next pass on; passes already made stay counted. Throws InvalidArgumentError unless positive.
  void set_backward_passes_per_step(int passes);
  int backward_passes_per_step() const;

  // Names of the parameters that no rank computed a gradient for before the last synchronize() or step(); frozen ones
  // are not listed.
  std::vector<std::string> unused_parameters() const;
  // Names in the order of the wrapped optimizer's groups. Operations are called "optimizer.<number>.<name>".
  std::vector<std::string> parameter_names() const;
  ::torch::optim::Optimizer& optimizer();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd::torch
