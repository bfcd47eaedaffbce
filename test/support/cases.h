#pragma once

#include <gtest/gtest.h>
#include <hvd/error.h>
#include <hvd/observer.h>
#include <hvd/runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference.h"
#include "types/dtype_rules.h"

// Whole programs of collectives with their expected results, the same data on every rank's side.
namespace hvd::test {

struct Case {
  std::string name;
  Operation operation = Operation::allreduce;
  ReduceSpec spec = {};  // of an allreduce
  int root = 0;          // of a broadcast
  bool in_place = false;
  bool mismatched = false;    // the ranks' shapes differ, so that all get an error
  std::vector<Array> inputs;  // by rank
  Array expected;
};

inline std::string label(const Case& c) {
  std::string text =
      c.name + ": " + std::string(to_string(c.operation)) + " " + describe(c.expected.dtype(), c.expected.shape());
  if (c.operation == Operation::allreduce) text += " " + std::string(to_string(c.spec.op));
  return text + (c.in_place ? ", in place" : "");
}

inline std::vector<Array> random_inputs(int ranks, DataType dtype, const Shape& shape, std::uint64_t seed) {
  std::vector<Array> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(random_array(dtype, shape, seed * 64 + static_cast<std::uint64_t>(rank)));
  }
  return inputs;
}

// Builds cases with names and data of their own.
class Program {
 public:
  Program(int ranks, std::vector<int> ranks_per_host) : ranks_(ranks), ranks_per_host_(std::move(ranks_per_host)) {}

  // Adds none if the dtype cannot be reduced so.
  void allreduce(DataType dtype, const Shape& shape, ReduceOp op, bool in_place, double prescale = 1.0,
                 double postscale = 1.0) {
    if (!reduction_problem(Operation::allreduce, dtype, op, prescale, postscale).empty()) return;
    const ReduceSpec spec{.op = op, .prescale = prescale, .postscale = postscale, .ranks_per_host = ranks_per_host_};
    auto inputs = random_inputs(ranks_, dtype, shape, ++seed_);
    Array expected = reduced(spec, inputs);
    add({.name = {},
         .operation = Operation::allreduce,
         .spec = spec,
         .in_place = in_place,
         .inputs = std::move(inputs),
         .expected = std::move(expected)});
  }
  void broadcast(DataType dtype, const Shape& shape, int root, bool in_place) {
    auto inputs = random_inputs(ranks_, dtype, shape, ++seed_);
    Array expected = inputs[static_cast<std::size_t>(root)];
    add({.name = {},
         .operation = Operation::broadcast,
         .root = root,
         .in_place = in_place,
         .inputs = std::move(inputs),
         .expected = std::move(expected)});
  }
  // rows: by rank; the first dimension of `shape` does not matter.
  void allgather(DataType dtype, const Shape& shape, const std::vector<std::int64_t>& rows) {
    std::vector<Array> inputs;
    ++seed_;
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      inputs.push_back(random_array(dtype, shape.with_rows(rows[rank]), seed_ * 64 + rank));
    }
    Array expected = gathered(inputs);
    add({.name = {}, .operation = Operation::allgather, .inputs = std::move(inputs), .expected = std::move(expected)});
  }

  void barrier() {
    add({.name = {},
         .operation = Operation::barrier,
         .inputs = std::vector<Array>(static_cast<std::size_t>(ranks_)),
         .expected = {}});
  }
  // An allreduce to which `odd_rank` of two or more ranks brings one element more.
  void mismatch(DataType dtype, std::int64_t elements, int odd_rank) {
    if (!reduces(dtype, ReduceOp::average)) return;
    auto inputs = random_inputs(ranks_, dtype, {elements}, ++seed_);
    inputs[static_cast<std::size_t>(odd_rank)] = random_array(dtype, {elements + 1}, seed_);
    add({.name = {},
         .operation = Operation::allreduce,
         .in_place = true,
         .mismatched = true,
         .inputs = std::move(inputs),
         .expected = {}});
  }

  int ranks() const { return ranks_; }
  const std::vector<Case>& cases() const { return cases_; }

 private:
  void add(Case c) {
    c.name = "case." + std::to_string(cases_.size());
    cases_.push_back(std::move(c));
  }

  int ranks_;
  std::vector<int> ranks_per_host_;
  std::uint64_t seed_ = 0;
  std::vector<Case> cases_;
};

// One rank's side of a case: submits it, and checks the result once it is there.
class RunningCase {
 public:
  RunningCase(Runtime& runtime, const Case& c) : case_(&c), input_(c.inputs[static_cast<std::size_t>(runtime.rank())]) {
    if (c.operation != Operation::allgather && !c.in_place) output_ = Array(input_.dtype(), input_.shape());
  }
  RunningCase(RunningCase&&) = default;  // the tensors' memory stays where it is
  RunningCase& operator=(RunningCase&&) = default;

  void submit(Runtime& runtime) {
    const ConstTensorView input = std::as_const(input_).view();
    const TensorView output = case_->in_place ? input_.view() : output_.view();
    switch (case_->operation) {
      case Operation::allreduce: {
        const AllreduceOptions options{.name = case_->name,
                                       .op = case_->spec.op,
                                       .prescale = case_->spec.prescale,
                                       .postscale = case_->spec.postscale};
        handle_ = case_->in_place ? runtime.allreduce_async(output, options)
                                  : runtime.allreduce_async(input, output, options);
        break;
      }
      case Operation::broadcast: {
        const BroadcastOptions options{.name = case_->name, .root_rank = case_->root};
        handle_ = case_->in_place ? runtime.broadcast_async(output, options)
                                  : runtime.broadcast_async(input, output, options);
        break;
      }
      case Operation::allgather:
        handle_ = runtime.allgather_async(input, {.name = case_->name});
        break;
      case Operation::barrier:
        handle_ = runtime.barrier_async({.name = case_->name});
        break;
      default:
        FAIL() << "these cases have no " << to_string(case_->operation);
    }
  }

  void check(Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    if (case_->mismatched) {
      EXPECT_THROW(handle_.wait(), MismatchError) << "rank " << rank << ": " << label(*case_);
      EXPECT_TRUE(same_bits(input_, case_->inputs[rank]))
          << "memory was touched; rank " << rank << ": " << label(*case_);
      return;
    }
    if (case_->operation == Operation::allgather) {
      EXPECT_TRUE(same_bits(Array(handle_.take_output()), case_->expected)) << "rank " << rank << ": " << label(*case_);
      return;
    }
    handle_.wait();
    if (case_->operation == Operation::barrier) return;
    EXPECT_TRUE(same_bits(case_->in_place ? input_ : output_, case_->expected))
        << "rank " << rank << ": " << label(*case_);
    if (!case_->in_place) {
      EXPECT_TRUE(same_bits(input_, case_->inputs[rank]))
          << "the input has changed; rank " << rank << ": " << label(*case_);
    }
  }

 private:
  const Case* case_;
  Array input_;
  Array output_;
  Handle handle_;
};

// All at once, waited for in the reverse order.
inline void run_together(Runtime& runtime, const std::vector<Case>& cases) {
  std::vector<RunningCase> running;
  running.reserve(cases.size());
  for (const Case& c : cases) running.emplace_back(runtime, c);
  for (RunningCase& c : running) c.submit(runtime);
  for (auto c = running.rbegin(); c != running.rend() && !testing::Test::HasFailure(); ++c) c->check(runtime);
}

// One after the other, every `stride`-th.
inline void run_one_by_one(Runtime& runtime, const std::vector<Case>& cases, std::size_t stride) {
  for (std::size_t i = 0; i < cases.size(); i += stride) {
    RunningCase running(runtime, cases[i]);
    running.submit(runtime);
    running.check(runtime);
  }
}

// Shapes with nothing in them, with one element, and with no round number of them.
inline std::vector<Shape> small_shapes() {
  return {Shape{}, Shape{0}, Shape{1, 0, 2}, Shape{1}, Shape{5}, Shape{7, 3}};
}

// Around the ends of chunks, and through more chunks than there are buffers.
inline std::vector<Shape> shapes_around_chunks(std::int64_t chunk_bytes, DataType dtype) {
  const std::int64_t chunk = chunk_bytes / static_cast<std::int64_t>(size_of(dtype));
  return {Shape{chunk - 1}, Shape{chunk}, Shape{chunk + 1}, Shape{4 * chunk + 3}};
}

}  // namespace hvd::test
