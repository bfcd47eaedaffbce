#include <hvd/torch/learning_rate.h>

#include <fmt/format.h>

#include <algorithm>

#include <hvd/hvd.h>

namespace hvd::torch {

LearningRateWarmup::LearningRateWarmup(::torch::optim::Optimizer& optimizer, const LearningRateWarmupOptions& options)
    : optimizer_(&optimizer),
      warmup_epochs_(options.warmup_epochs),
      scale_(options.scale.has_value() ? *options.scale : static_cast<double>(size())) {
  if (!(warmup_epochs_ >= 0.0)) {
    throw InvalidArgumentError(
        fmt::format("LearningRateWarmup: warmup_epochs is {}, must not be negative", warmup_epochs_));
  }
  if (!(scale_ > 0.0))
    throw InvalidArgumentError(fmt::format("LearningRateWarmup: scale is {}, must be positive", scale_));
  for (const auto& group : optimizer.param_groups()) base_rates_.push_back(group.options().get_lr());
}

double LearningRateWarmup::factor(double epochs) const {
  if (epochs >= warmup_epochs_) return scale_;
  return 1.0 + (scale_ - 1.0) * std::max(epochs, 0.0) / warmup_epochs_;
}

void LearningRateWarmup::set_progress(double epochs) {
  auto& groups = optimizer_->param_groups();
  while (base_rates_.size() < groups.size()) base_rates_.push_back(groups[base_rates_.size()].options().get_lr());
  for (std::size_t k = 0; k < groups.size(); ++k) groups[k].options().set_lr(base_rates_[k] * factor(epochs));
}

}  // namespace hvd::torch
