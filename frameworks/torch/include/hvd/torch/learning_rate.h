#pragma once

#include <torch/optim/optimizer.h>

#include <optional>
#include <vector>

#include <hvd/export.h>

namespace hvd::torch {

struct LearningRateWarmupOptions {
  double warmup_epochs = 5.0;                  // 0: the scaled rate from the start
  std::optional<double> scale = std::nullopt;  // hvd::size()
};

// The linear scaling rule with gradual warm-up: n ranks make the batch n times as large, so the learning rate rises
// linearly from the one-process rate to n times that over the first epochs and stays there. (Goyal et al. 2017,
// "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", sections 2.1 and 2.2.)
class HVD_API LearningRateWarmup {
 public:
  // Takes the groups' present rates as those of one process. The optimizer must outlive this. Throws
  // InvalidArgumentError for negative epochs or a scale that is not positive.
  explicit LearningRateWarmup(::torch::optim::Optimizer& optimizer, const LearningRateWarmupOptions& options = {});

  // What the one-process rate is multiplied by once `epochs` (with fraction) have been trained.
  double factor(double epochs) const;
  // Sets the rate of every group; call it before each step with epoch + step / steps_per_epoch. A group that was added
  // later counts from its rate at that time.
  void set_progress(double epochs);

 private:
  ::torch::optim::Optimizer* optimizer_;
  double warmup_epochs_;
  double scale_;
  std::vector<double> base_rates_;
};

}  // namespace hvd::torch
