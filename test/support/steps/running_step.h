#pragma once

#include <hvd/runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "step.h"

namespace hvd::test {

// One rank's side of a step. Nothing here asserts: what is wrong is a text, "" when all is right.
class RunningStep {
 public:
  // The step must outlive this, and this rank be in its set.
  RunningStep(const Step& step, int rank);
  RunningStep(RunningStep&&) = default;  // the tensors' memory stays where it is
  RunningStep& operator=(RunningStep&&) = default;

  const Step& step() const { return *step_; }
  // Submits; a blocking step also waits. Throws what the operation throws, but for the error that a mismatch must give.
  void start(Runtime& runtime, ProcessSet set);
  // Withdraws it after that, if it still can be and has a name, and submits it again: the others see nothing of it.
  void submit_again_if_withdrawn(Runtime& runtime, ProcessSet set);
  // Waits in one way or another, unless that is done, and compares with the reference.
  std::string finish();
  // Of a mismatch, once finished: the error's text.
  const std::string& error() const { return error_; }

 private:
  void submit(Runtime& runtime, ProcessSet set);
  void submit_group(Runtime& runtime, ProcessSet set);
  void run(Runtime& runtime, ProcessSet set);
  void run_group(Runtime& runtime, ProcessSet set);
  void wait() const;
  std::string mismatch_found();
  std::string compared(std::size_t tensor);
  bool makes_tensors() const;  // the results are the runtime's, not ours
  TensorView output() { return (mine_.in_place ? inputs_ : outputs_)[0].view(); }
  ConstTensorView input() const { return inputs_[0].view(); }
  ConstTensorView scatter_input() const;
  std::vector<ConstTensorView> scatter_inputs() const;
  std::vector<TensorView> outputs();
  std::vector<ConstTensorView> inputs() const;

  const Step* step_;
  Step mine_;  // as this rank submits it
  int position_;
  std::vector<Array> inputs_;
  std::vector<Array> outputs_;
  std::vector<std::int64_t> received_splits_;  // of an alltoall
  Handle handle_;
  bool waited_ = false;
  bool failed_ = false;
  std::string error_;
};

std::vector<Array> data_of(const std::vector<Tensor>& tensors);

// This rank's part of a list of steps, all in flight together, waited for in the reverse order; and one after the
// other. `sets`: by number. What is wrong is added to `errors`.
void run_together(Runtime& runtime, const std::vector<ProcessSet>& sets, const std::vector<Step>& steps,
                  std::vector<std::string>& errors);
void run_one_by_one(Runtime& runtime, const std::vector<ProcessSet>& sets, const std::vector<Step>& steps,
                    std::vector<std::string>& errors);

}  // namespace hvd::test
