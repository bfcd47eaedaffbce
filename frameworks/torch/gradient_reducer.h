#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <hvd/handle.h>
#include <hvd/torch/optimizer.h>

#include "gradient_hooks.h"

namespace hvd::torch {

// Counts the gradients that backward() computes, starts their reduction from autograd's threads, and settles the group
// of passes when a step ends it.
//
//   a parameter is              on                                           and becomes
//   idle (no pass made)         gradient accumulated                         counting
//   counting                    gradient accumulated, last pass of a group   in flight: the gradient is reduced in
//   place idle, counting, in flight   step: some rank made a pass                  in flight, then idle with the
//   reduced gradient idle                        step: no rank made a pass                    idle, gradient untouched
//   idle, counting, in flight   drop                                         idle; what any rank has in flight ends
//   first in flight                   gradient about to be accumulated             as it was: an error leaves
//   backward()
//
// A rank cannot know which gradients the others wait for, so step and drop begin with one small exchange that tells.
// The error comes before accumulation because autograd would write to memory that is being reduced.
class GradientReducer final : public GradientListener, public std::enable_shared_from_this<GradientReducer> {
 public:
  GradientReducer(std::uint64_t number, const DistributedOptimizerOptions& options);
  ~GradientReducer() override;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  void add(const std::string& name, const ::torch::Tensor& parameter);
  // Watches parameters that are new or whose node was replaced. `after_backward`: a pass may have escaped, and counts
  // where there is a gradient.
  void renew_hooks(bool after_backward);
  void set_backward_passes_per_step(int passes);
  int backward_passes_per_step() const;

  // Ends the group of passes: gradients are reduced. Collective.
  void synchronize();
  // True from synchronize() to the next pass, end_step() or drop().
  bool is_synchronized() const;
  // Throws unless the last synchronize() reduced something.
  void end_step();
  // Ends the group: its gradients are worthless. Collective when this rank has made a pass.
  void drop();
  ::torch::Tensor average_loss(const ::torch::Tensor& loss) const;

  std::vector<std::string> unused_parameters() const;
  std::vector<std::string> parameter_names() const;

  void before_accumulation(std::size_t index) override;
  void after_accumulation(std::size_t index) override;

 private:
  enum class Intent : std::uint8_t { step = 1, drop = 2 };

  struct Reduction {
    ::torch::Tensor gradient;
    ::torch::Tensor buffer;  // what is reduced: `gradient` itself, or a dense contiguous copy
    Handle handle;
  };
  struct Slot {
    std::string name;
    std::string operation;  // its name among hvd's operations
    ::torch::Tensor parameter;
    std::shared_ptr<::torch::autograd::Node> node;
    int passes = 0;
    int left_over = 0;  // passes made before backward_passes_per_step was last set
    std::optional<Reduction> reduction;
  };

  void submit(Slot& slot) const;
  void settle(Intent intent);
  std::vector<std::uint8_t> exchange(Intent intent) const;
  void compare_weights();
  void finish(Intent intent, const std::vector<std::uint8_t>& wanted);
  static void write_back(Slot& slot);
  void abandon() noexcept;

  mutable std::mutex mutex_;
  std::string prefix_;
  ReduceOp op_;
  int passes_per_step_;
  bool check_weights_;
  bool synchronized_ = false;
  bool any_reduced_ = false;
  std::vector<Slot> slots_;
  std::vector<std::string> unused_;
  std::vector<Reduction> abandoned_;  // still in flight after an error: their memory must stay
};

}  // namespace hvd::torch
