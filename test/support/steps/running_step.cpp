#include "running_step.h"

#include <hvd/error.h>

#include <chrono>
#include <cmath>
#include <ranges>
#include <thread>
#include <utility>

namespace hvd::test {

namespace {

// What the rank at this position submits: the odd one of a mismatch does something else.
Step as_submitted(const Step& step, int position) {
  Step mine = step;
  if (step.mismatch == Mismatch::none || position != step.odd) return mine;
  TensorSpec& last = mine.tensors.back();
  switch (step.mismatch) {
    case Mismatch::none:
      break;
    case Mismatch::shape:  // another number of dimensions, as the sizes of some may differ
      last.shape = last.shape.rank() == 2 ? Shape{1, 2, 3} : Shape{1, 2};
      break;
    case Mismatch::dtype:
      last.dtype = last.dtype == DataType::i32 ? DataType::u8 : DataType::i32;
      break;
    case Mismatch::reduce_op:
      mine.rule.op = step.rule.op == ReduceOp::sum ? ReduceOp::product : ReduceOp::sum;
      break;
    case Mismatch::scale:
      mine.rule.prescale *= 2;
      break;
    case Mismatch::root:
      mine.root = (step.root + 1) % static_cast<int>(step.size());
      break;
    case Mismatch::operation:
      mine.operation = step.operation == Operation::allreduce ? Operation::broadcast : Operation::allreduce;
      break;
    case Mismatch::group:
      mine.tensors.push_back({.dtype = DataType::f32, .shape = {2}});
      break;
  }
  return mine;
}

// Of inputs up to 16. Where two gradients nearly cancel, what they leave is scaled up with its rounding errors.
double adasum_bound(const Rule& rule, DataType dtype) {
  const double largest = 16 * std::abs(rule.prescale * rule.postscale);
  return largest * (dtype == DataType::f64 ? 1e-8 : dtype == DataType::f32 ? 1e-3 : 1e-1);
}

}  // namespace

RunningStep::RunningStep(const Step& step, int rank)
    : step_(&step), mine_(as_submitted(step, step.position_of(rank))), position_(step.position_of(rank)) {
  for (std::size_t tensor = 0; tensor < mine_.tensors.size(); ++tensor) {
    inputs_.push_back(input_of(mine_, tensor, position_));
    if (!mine_.in_place && !makes_tensors())
      outputs_.push_back(blank(mine_.tensors[tensor].dtype, mine_.tensors[tensor].shape));
  }
}

bool RunningStep::makes_tensors() const { return needs_rows(mine_.operation); }

std::vector<TensorView> RunningStep::outputs() {
  std::vector<TensorView> views;
  for (Array& data : mine_.in_place ? inputs_ : outputs_) views.push_back(data.view());
  return views;
}

std::vector<ConstTensorView> RunningStep::inputs() const {
  std::vector<ConstTensorView> views;
  for (const Array& data : inputs_) views.push_back(data.view());
  return views;
}

void RunningStep::start(Runtime& runtime, ProcessSet set) {
  const bool is_group = mine_.grouped;
  if (!mine_.blocking) return is_group ? submit_group(runtime, set) : submit(runtime, set);
  try {
    is_group ? run_group(runtime, set) : run(runtime, set);
  } catch (const MismatchError& error) {
    failed_ = true;
    error_ = error.what();
  }
  waited_ = true;
}

void RunningStep::submit_again_if_withdrawn(Runtime& runtime, ProcessSet set) {
  if (waited_ || mine_.name.empty() || !handle_.cancel()) return;
  try {
    handle_.wait();
    error_ = "no error of a cancelled operation";
  } catch (const CancelledError&) {
    start(runtime, set);
  }
}

void RunningStep::wait() const {
  using namespace std::chrono_literals;
  if (mine_.seed % 4 == 1) {
    while (!handle_.wait_for(1ms)) {
    }
  } else if (mine_.seed % 4 == 2) {
    while (!handle_.ready()) std::this_thread::sleep_for(50us);
  }
  handle_.wait();
}

std::string RunningStep::finish() {
  std::string text;
  try {
    if (!waited_) wait();
  } catch (const MismatchError& error) {
    failed_ = true;
    error_ = error.what();
  } catch (const std::exception& error) {
    return to_string(*step_) + ": threw " + error.what();
  }
  if (!failed_ && !error_.empty()) {
    text = error_;
  } else if (failed_ || step_->mismatch != Mismatch::none) {
    text = mismatch_found();
  } else {
    if (makes_tensors() && !waited_) {
      outputs_ = mine_.grouped ? data_of(handle_.take_outputs()) : std::vector<Array>{Array(handle_.take_output())};
      if (mine_.operation == Operation::alltoall) received_splits_ = handle_.received_splits();
    }
    if (mine_.operation == Operation::alltoall && received_splits_ != received_splits_of(mine_, position_))
      text = "other received splits than expected";
    for (std::size_t tensor = 0; tensor < mine_.tensors.size() && text.empty(); ++tensor) text = compared(tensor);
  }
  return text.empty() ? text
                      : to_string(*step_) + ": rank " +
                            std::to_string(step_->ranks[static_cast<std::size_t>(position_)]) + ": " + text;
}

std::string RunningStep::mismatch_found() {
  if (step_->mismatch == Mismatch::none) return "threw " + error_;
  if (!failed_) return "no error";
  if (error_.find("'" + step_->name + "'") == std::string::npos) return "the error does not name it: " + error_;
  for (std::size_t tensor = 0; tensor < inputs_.size(); ++tensor) {
    const std::string changed = difference(inputs_[tensor], input_of(mine_, tensor, position_));
    if (!changed.empty()) return "memory was touched: " + changed;
  }
  return {};
}

std::string RunningStep::compared(std::size_t tensor) {
  const std::vector<Array>& got = mine_.in_place ? inputs_ : outputs_;
  if (got.size() != mine_.tensors.size()) return std::to_string(got.size()) + " results";
  const Array expected = expected_of(mine_, tensor, position_);
  const bool adasum = mine_.rule.op == ReduceOp::adasum && reduces(mine_.operation);
  std::string text = adasum ? difference_beyond(adasum_bound(mine_.rule, expected.dtype()), got[tensor], expected)
                            : difference(got[tensor], expected);
  if (text.empty() && !mine_.in_place) {
    text = difference(inputs_[tensor], input_of(mine_, tensor, position_));
    if (!text.empty()) text = "the input has changed: " + text;
  }
  if (!text.empty()) text = "tensor " + std::to_string(tensor) + ": " + text;
  return text;
}

namespace {

void note(std::string text, std::vector<std::string>& errors) {
  if (!text.empty()) errors.push_back(std::move(text));
}

}  // namespace

void run_together(Runtime& runtime, const std::vector<ProcessSet>& sets, const std::vector<Step>& steps,
                  std::vector<std::string>& errors) {
  std::vector<RunningStep> running;
  running.reserve(steps.size());
  for (const Step& step : steps) {
    if (step.position_of(runtime.rank()) >= 0) running.emplace_back(step, runtime.rank());
  }
  for (RunningStep& step : running) step.start(runtime, sets[step.step().set]);
  for (RunningStep& step : std::views::reverse(running)) note(step.finish(), errors);
}

void run_one_by_one(Runtime& runtime, const std::vector<ProcessSet>& sets, const std::vector<Step>& steps,
                    std::vector<std::string>& errors) {
  for (const Step& step : steps) {
    if (step.position_of(runtime.rank()) < 0) continue;
    RunningStep running(step, runtime.rank());
    running.start(runtime, sets[step.set]);
    note(running.finish(), errors);
  }
}

}  // namespace hvd::test
