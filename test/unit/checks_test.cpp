#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../support/world.h"

namespace hvd::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

void meet(Runtime& runtime) { runtime.barrier({.name = "all are through"}); }

std::vector<ConstTensorView> views(const std::vector<float>& a, const std::vector<std::int64_t>& b) {
  return {ConstTensorView(std::span<const float>(a)), ConstTensorView(std::span<const std::int64_t>(b))};
}

TEST(Consistency, R50_EqualTensorsPassAndAnUnlikeOneIsNamedWithItsRank) {
  run_world(4, [](Runtime& runtime) {
    std::vector<float> weights = ones(1000);
    const std::vector<std::int64_t> steps{3, 4};
    const std::vector<std::string> names{"fc.weight", "steps"};
    runtime.check_consistency(views(weights, steps), names);
    if (runtime.rank() == 2) weights[17] += 1e-7F;
    const std::string text = thrown_by<MismatchError>([&] { runtime.check_consistency(views(weights, steps), names); });
    EXPECT_THAT(text, StartsWith("check_consistency: 'fc.weight' float32[1000] differs: [0,1,3] digest "));
    EXPECT_THAT(text, HasSubstr("; [2] digest "));
    weights[17] = 1;
    runtime.check_consistency(views(weights, steps), names);
    meet(runtime);
  });
}

TEST(Consistency, R50_ShapesDtypesAndNumbersOfTensorsCountToo) {
  run_world(2, [](Runtime& runtime) {
    const std::vector<float> zeros(6, 0.0F);
    const bool odd = runtime.rank() == 1;
    const std::vector<ConstTensorView> shaped{ConstTensorView(std::span(zeros), odd ? Shape{2, 3} : Shape{3, 2})};
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.check_consistency(shaped); }), HasSubstr("tensor 0"));
    const std::vector<ConstTensorView> typed{
        ConstTensorView(zeros.data(), Shape{6}, odd ? DataType::i32 : DataType::f32)};
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.check_consistency(typed); }), HasSubstr("tensor 0"));
    const std::vector<ConstTensorView> many(odd ? 2 : 1, ConstTensorView(std::span(zeros)));
    EXPECT_EQ(thrown_by<MismatchError>([&] { runtime.check_consistency(many); }),
              "check_consistency: numbers of tensors differ: [0] 1 tensors; [1] 2 tensors");
    runtime.check_consistency({});
    EXPECT_THROW(runtime.check_consistency(shaped, std::vector<std::string>(3)), InvalidArgumentError);
    meet(runtime);
  });
}

TEST(Cancel, WhatLacksARankIsWithdrawnAndTheNameCanBeUsedAgain) {
  run_world(3, [](Runtime& runtime) {
    std::vector<float> values = ones(5);
    if (runtime.rank() == 2) {
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
      EXPECT_TRUE(handle.cancel());
      EXPECT_TRUE(handle.cancel());
      EXPECT_EQ(thrown_by<CancelledError>([&] { handle.wait(); }), "allreduce 'x': cancelled");
      EXPECT_TRUE(all_are(values, 1.0F));
      runtime.barrier({.name = "cancelled"});
    } else {
      runtime.barrier({.name = "cancelled"});
    }
    const Handle again = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    again.wait();
    EXPECT_FALSE(again.cancel());
    EXPECT_TRUE(all_are(values, 3.0F));
    meet(runtime);
  });
}

TEST(Cancel, OneRankLeavesTheOthersWaiting) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(5);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    const bool withdrawn = runtime.rank() == 1 && handle.cancel();
    if (withdrawn) runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum});
    if (!withdrawn) handle.wait();
    EXPECT_TRUE(all_are(values, 2.0F));
    meet(runtime);
  });
}

TEST(Counters, ASteadyStepSendsNoDescriptionAndCountsWhatItMoves) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(100);
    const auto step = [&] {
      runtime.allreduce(std::span(values), {.name = "a"});
      static_cast<void>(runtime.allgather(std::span<const float>(values), {.name = "b"}));
      static_cast<void>(runtime.alltoall(std::span<const float>(values), {.name = "c"}));
      static_cast<void>(runtime.reduce_scatter(std::span<const float>(values), {.name = "d"}));
      runtime.broadcast(std::span(values), {.name = "e"});
    };
    step();
    step();
    const Stats before = runtime.stats();
    step();
    const Stats after = runtime.stats();
    EXPECT_EQ(after.requests_sent, before.requests_sent);
    EXPECT_EQ(after.requests_cached - before.requests_cached, 5U);
    EXPECT_EQ(after.operations_done - before.operations_done, 5U);
    EXPECT_EQ(after.batches - before.batches, 5U);
    EXPECT_EQ(after.allocations - before.allocations, 3U);
    EXPECT_EQ(after.bytes_sent, 0U);
    EXPECT_EQ(after.bytes_packed - before.bytes_packed, runtime.rank() == 0 ? 2000U : 1600U);
    EXPECT_EQ(after.seconds_waited_for.size(), runtime.rank() == 0 ? 2U : 0U);
    meet(runtime);
  });
}

// Changes one rank's result before anybody has compared it.
class Spoiler final : public Observer {
 public:
  explicit Spoiler(float* value) : value_(value) {}
  void on_event(const TensorEvent& event) override {
    if (event.stage == Stage::unpacked && event.name == "x") *value_ += 1;
  }

 private:
  float* value_;
};

TEST(Checks, R50_ResultsThatDifferAreAnErrorOnAllRanksUnderTheCheckOfMessages) {
  Config config;
  config.check = CheckLevel::comm;
  run_world(3, config, [](Runtime& runtime) {
    std::vector<float> values = ones(500);
    if (runtime.rank() == 1) runtime.add_observer(std::make_shared<Spoiler>(&values[7]));
    const std::string text =
        thrown_by<MismatchError>([&] { runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum}); });
    EXPECT_THAT(text, StartsWith("allreduce 'x': results differ: [0,2] digest "));
    EXPECT_THAT(text, HasSubstr("; [1] digest "));
    std::vector<float> more = ones(3);
    runtime.allreduce(std::span(more), {.name = "y", .op = ReduceOp::sum});
    EXPECT_TRUE(all_are(more, 3.0F));
    const Tensor rows = runtime.allgather(std::span<const float>(more), {.name = "z"});
    EXPECT_TRUE(all_are(rows.values<float>(), 3.0F));
    meet(runtime);
  });
}

TEST(Checks, OffAsksNotForMemoryAtSubmissionAndStillComparesTheRanks) {
  Config config;
  config.check = CheckLevel::off;
  run_world(2, config, [](Runtime& runtime) {
    if (runtime.rank() == 0) {
      const TensorView nowhere(nullptr, Shape{3}, DataType::f32);
      const Handle handle = runtime.allreduce_async(nowhere, {.name = "x"});  // without rank 1, so nobody reads it
      EXPECT_TRUE(handle.cancel());
      std::vector<float> values = ones(6);
      EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.broadcast(std::span(values), {.root_rank = 2}); }),
                "broadcast: root rank 2 is not in 0..1");
      EXPECT_EQ(thrown_by<InvalidArgumentError>(
                    [&] { runtime.allreduce(std::span(values).first(4), std::span(values).last(4), {.name = "x"}); }),
                "allreduce 'x': input and output overlap in part");
    }
    meet(runtime);
    std::vector<float> values = ones(runtime.rank() == 0 ? 4 : 5);
    EXPECT_EQ(thrown_by<MismatchError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
              "allreduce 'x': shapes differ: [0] float32[4]; [1] float32[5]");
    // Results are not compared, and neither are the places of operations without a name.
    if (runtime.rank() == 1) runtime.add_observer(std::make_shared<Spoiler>(&values[0]));
    runtime.allreduce(std::span(values).first(4), {.name = "x", .op = ReduceOp::sum});
    EXPECT_EQ(values[0], runtime.rank() == 0 ? 2.0F : 3.0F);
    expect_sum_works(runtime, "");
    meet(runtime);
  });
}

TEST(Checks, TheConfiguredLevelMustAgree) {
  const auto errors = run_ranks(
      3,
      [](int rank) {
        Config config;
        config.check = rank == 1 ? CheckLevel::off : CheckLevel::local;
        return config;
      },
      [](Runtime& runtime) { meet(runtime); });
  for (const auto& error : errors) EXPECT_EQ(text_of(error), "init: config differs: check: [0,2] local; [1] off");
}

TEST(Groups, OfSeveralDtypesRunTogetherAndKeepTheirOrder) {
  run_world(3, [](Runtime& runtime) {
    std::vector<float> a = ones(4);
    std::vector<std::int32_t> b(3, runtime.rank());
    std::vector<float> c = ones(2);
    const std::vector<TensorView> group{std::span(a), std::span(b), std::span(c)};
    runtime.grouped_allreduce(group, {.name = "g", .op = ReduceOp::sum});
    EXPECT_TRUE(all_are(a, 3.0F) && all_are(b, 3) && all_are(c, 3.0F));
    const std::vector<ConstTensorView> rows{std::span<const std::int32_t>(b), std::span<const float>(c)};
    const std::vector<Tensor> gathered = runtime.grouped_allgather(rows, {.name = "h"});
    ASSERT_EQ(gathered.size(), 2U);
    EXPECT_EQ(gathered[0].shape(), Shape{9});
    EXPECT_EQ(gathered[1].dtype(), DataType::f32);
    EXPECT_THROW(runtime.grouped_allreduce(std::vector<TensorView>(), {.name = "g"}), InvalidArgumentError);
    meet(runtime);
  });
}

TEST(Timeouts, AreTheOperationsOwnAndMustAgree) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(1);
    const double seconds = runtime.rank() == 0 ? 5 : 6;
    EXPECT_THAT(thrown_by<MismatchError>(
                    [&] { runtime.allreduce(std::span(values), {.name = "x", .timeout = Timeout(seconds)}); }),
                HasSubstr("timeout differs: [0] 5 s; [1] 6 s"));
    EXPECT_THROW(runtime.barrier({.timeout = Timeout(-1)}), InvalidArgumentError);
    if (runtime.rank() == 0) {
      EXPECT_THAT(thrown_by<StallError>([&] { runtime.barrier({.name = "late", .timeout = Timeout(0.2)}); }),
                  HasSubstr("waits for [1]"));
    }
    meet(runtime);
  });
}

}  // namespace
}  // namespace hvd::test
