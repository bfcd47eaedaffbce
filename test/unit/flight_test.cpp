#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../support/steps/matrix.h"
#include "../support/steps/running_step.h"
#include "../support/world.h"

// Many unlike operations in flight, in any order, and tensors that are parts of larger memory.
namespace hvd::test {
namespace {

TEST(Flight, R81_UnequalAllgathersAndAllreducesAreWaitedForInReverseOrder) {
  run_world(2, [](Runtime& runtime) {
    for (int round = 0; round < repetitions(50); ++round) {
      // A sparse gradient, rows and their numbers, and five dense ones.
      const auto rows = static_cast<std::size_t>(1 + (round + 3 * runtime.rank()) % 5);
      const std::vector<std::int64_t> numbers(rows, runtime.rank());
      const std::vector<float> values(2 * rows, static_cast<float>(round));
      std::vector<std::vector<float>> dense(5, ones(static_cast<std::size_t>(10 + round)));
      const auto shape = static_cast<std::int64_t>(rows);
      std::vector<Handle> handles{
          runtime.allgather_async(std::span(numbers), {.name = "sparse.rows"}),
          runtime.allgather_async(ConstTensorView(std::span(values), Shape{shape, 2}), {.name = "sparse.values"})};
      for (std::size_t i = 0; i < dense.size(); ++i) {
        handles.push_back(
            runtime.allreduce_async(std::span(dense[i]), {.name = "dense." + std::to_string(i), .op = ReduceOp::sum}));
      }
      for (std::size_t i = handles.size(); i-- > 2;) handles[i].wait();
      const Tensor all_values = handles[1].take_output();
      const Tensor all_numbers = handles[0].take_output();
      const std::int64_t total = 1 + round % 5 + 1 + (round + 3) % 5;
      EXPECT_EQ(all_numbers.shape(), Shape{total});
      EXPECT_EQ(all_values.shape(), Shape({total, 2}));
      EXPECT_TRUE(std::ranges::is_sorted(all_numbers.values<std::int64_t>()));
      EXPECT_TRUE(all_are(all_values.values<float>(), static_cast<float>(round)));
      for (const auto& tensor : dense) EXPECT_TRUE(all_are(tensor, 2.0F));
    }
  });
}

TEST(Flight, R75_ThreadsSubmitAndPollManySmallOperationsOfEveryKind) {
  run_world(2, [](Runtime& runtime) {
    const auto errors = run_threads(8, [&](int thread) {
      for (int round = 0; round < repetitions(100); ++round) {
        const std::string name = std::to_string(thread) + "." + std::to_string(round % 3);
        std::vector<std::int32_t> sum(3, round);
        std::vector<float> rows{1.0F * static_cast<float>(thread), 2.0F};
        std::vector<Handle> handles{
            runtime.allreduce_async(std::span(sum), {.name = name + "s", .op = ReduceOp::sum}),
            runtime.reduce_scatter_async(std::span(rows), {.name = name + "r", .op = ReduceOp::sum}),
            runtime.alltoall_async(std::span(rows), {.name = name + "a"}),
            runtime.gather_async(std::span(rows), {.name = name + "g", .root_rank = thread % 2}),
            runtime.barrier_async({.name = name + "b"})};
        while (!std::ranges::all_of(handles, &Handle::ready)) std::this_thread::yield();
        ASSERT_TRUE(all_are(sum, 2 * round));
        const float mine = runtime.rank() == 0 ? static_cast<float>(thread) : 2.0F;
        ASSERT_TRUE(all_are(handles[1].take_output().values<float>(), 2.0F * mine));
        ASSERT_TRUE(all_are(handles[2].take_output().values<float>(), mine));
        ASSERT_EQ(handles[3].take_output().shape(), Shape{runtime.rank() == thread % 2 ? 4 : 0});
      }
    });
    for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
  });
}

// Views into the middle of larger memory, whose rest must keep its values.
TEST(Flight, R80_NeighboursOfAViewAreLeftAlone) {
  constexpr std::size_t margin = 5;
  constexpr float guard = -7.0F;
  run_world(3, [&](Runtime& runtime) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{1002}}) {
      std::vector<float> base(count + 2 * margin, guard);
      const std::span<float> middle = std::span(base).subspan(margin, count);
      const auto check = [&](const std::string& what, float wanted) {
        EXPECT_TRUE(all_are(middle, wanted)) << what;
        EXPECT_TRUE(all_are(std::span(base).first(margin), guard) && all_are(std::span(base).last(margin), guard))
            << what << " wrote beside the view";
        std::ranges::fill(middle, static_cast<float>(runtime.rank() + 1));
      };
      std::ranges::fill(middle, static_cast<float>(runtime.rank() + 1));
      runtime.allreduce(middle, {.name = "x", .op = ReduceOp::sum});
      check("allreduce", 6.0F);
      runtime.broadcast(middle, {.name = "x", .root_rank = 2});
      check("broadcast", 3.0F);
      runtime.reduce(middle, {.name = "x", .root_rank = 1, .op = ReduceOp::sum});
      check("reduce", runtime.rank() == 1 ? 6.0F : static_cast<float>(runtime.rank() + 1));
      if (runtime.rank() == 0) runtime.send(middle, {.name = "p", .to_rank = 2});
      if (runtime.rank() == 2) runtime.recv(middle, {.name = "p", .from_rank = 0});
      check("send/recv", runtime.rank() == 1 ? 2.0F : 1.0F);
      const auto mine = static_cast<float>(runtime.rank() + 1);
      static_cast<void>(runtime.allgather(middle, {.name = "x"}));
      check("allgather", mine);
      EXPECT_TRUE(all_are(runtime.reduce_scatter(middle, {.name = "x", .op = ReduceOp::sum}).values<float>(), 6.0F));
      check("reduce_scatter", mine);
      EXPECT_TRUE(all_are(runtime.scatter(middle, {.name = "x", .root_rank = 1}).values<float>(), 2.0F));
      check("scatter", mine);
      EXPECT_EQ(runtime.alltoall(middle, {.name = "x"}).shape(), Shape{static_cast<std::int64_t>(count)});
      check("alltoall", mine);
    }
  });
}

// A column, a transpose and an expansion have no view: their memory is not dense. What is dense is said by its shape
// alone, so that a view that is too long for its memory is refused.
TEST(Flight, R80_AViewThatDoesNotFitItsMemoryIsRefused) {
  std::vector<float> base = ones(4);
  EXPECT_NE(thrown_by<InvalidArgumentError>([&] { return TensorView(std::span(base), Shape{2, 3}); }), "");
  EXPECT_NE(thrown_by<InvalidArgumentError>([&] { return TensorView(std::span(base).first(2), Shape{2, 2}); }), "");
}

// Every operation of the table at once, in one order on even ranks and in the other on odd ones.
TEST(Flight, R112_TheWholeTableInFlightInTwoOrders) {
  Config config;
  config.process_sets = matrix_sets(4);
  std::vector<Step> steps;
  for (const Operation operation : matrix_operations) {
    if (operation == Operation::barrier) continue;
    for (Step& step : matrix_steps(4, operation, DataType::f32, Way::async)) {
      step.name = std::to_string(steps.size());
      steps.push_back(std::move(step));
    }
  }
  run_world(4, config, [&](Runtime& runtime) {
    std::vector<Step> mine = steps;
    if (runtime.rank() % 2 == 1) std::ranges::reverse(mine);
    std::vector<std::string> errors;
    run_together(runtime, {{0}, {1}, {2}, {3}}, mine, errors);
    runtime.barrier();
    for (const std::string& error : errors) ADD_FAILURE() << error;
  });
}

}  // namespace
}  // namespace hvd::test
