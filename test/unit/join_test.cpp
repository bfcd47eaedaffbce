#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <latch>
#include <span>
#include <string>
#include <vector>

#include "../support/steps/running_step.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Ranks that do 2, 3 and 5 steps and then join: what each step gave, of the rank that does most.
std::vector<float> averages(JoinAverage rule) {
  Config config;
  config.join_average = rule;
  std::vector<float> seen;
  run_world(3, config, [&](Runtime& runtime) {
    const int steps = std::vector<int>{2, 3, 5}[static_cast<std::size_t>(runtime.rank())];
    for (int step = 0; step < steps; ++step) {
      std::vector<float> gradient = ones(1);
      runtime.allreduce(std::span(gradient), {.name = "g"});
      if (runtime.rank() == 2) seen.push_back(gradient[0]);
    }
    EXPECT_EQ(runtime.join(), 2);
    expect_sum_works(runtime, "after");
  });
  return seen;
}

TEST(Join, R54_StepsAfterARankHasJoinedAverageOverAllRanks) {
  EXPECT_THAT(averages(JoinAverage::all), ElementsAre(1.0F, 1.0F, 2.0F / 3.0F, 1.0F / 3.0F, 1.0F / 3.0F));
}

TEST(Join, R54_OrOverThoseThatArePresent) {
  EXPECT_THAT(averages(JoinAverage::present), ElementsAre(1.0F, 1.0F, 1.0F, 1.0F, 1.0F));
}

TEST(Join, R54_ReturnsTheRankThatJoinedLast) {
  for (const int last : {0, 1, 2}) {
    std::latch others_joined(2);
    run_world(3, [&](Runtime& runtime) {
      if (runtime.rank() == last) {
        others_joined.wait();
        expect_sum_works(runtime, "x", 0);  // the others serve it, so they have joined
        EXPECT_EQ(runtime.join(), last);
        return;
      }
      const Handle handle = runtime.join_async();
      others_joined.count_down();
      EXPECT_EQ(handle.last_joined_rank(), last);
    });
  }
}

TEST(Join, R55_ServesWhatIsKnownFromTheCache) {
  run_world(2, [](Runtime& runtime) {
    std::vector<std::vector<float>> values(10, ones(7));
    const auto step = [&] {
      std::vector<Handle> handles;
      for (std::size_t i = 0; i < values.size(); ++i)
        handles.push_back(runtime.allreduce_async(std::span(values[i]), {.name = std::to_string(i)}));
      for (const Handle& handle : handles) handle.wait();
    };
    for (int round = 0; round < 3; ++round) step();
    if (runtime.rank() == 0) {
      const Stats before = runtime.stats();
      for (int round = 0; round < 3; ++round) step();
      const Stats after = runtime.stats();
      EXPECT_EQ(after.requests_sent, before.requests_sent);
      EXPECT_EQ(after.requests_cached, before.requests_cached + 30);
    }
    EXPECT_EQ(runtime.join(), 0);
  });
}

// Rank 1 joins, rank 0 works on.
void run_joined(const std::function<void(Runtime&)>& body, const Config& config = {}) {
  run_world(2, config, [&](Runtime& runtime) {
    if (runtime.rank() == 0) body(runtime);
    runtime.join();
    expect_sum_works(runtime, "after");
  });
}

TEST(Join, R58_AnAllgatherGetsNoRowsFromWhoHasJoined) {
  run_joined([](Runtime& runtime) {
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const Tensor all = runtime.allgather(ConstTensorView(std::span(values), Shape{2, 3}), {.name = "x"});
    EXPECT_EQ(all.shape(), Shape({2, 3}));
    EXPECT_TRUE(std::ranges::equal(all.values<float>(), values));
  });
}

TEST(Join, R58_ABroadcastAndAGatherToWhoIsPresentWork) {
  run_joined([](Runtime& runtime) {
    std::vector<float> values{1, 2, 3};
    runtime.broadcast(std::span(values), {.name = "x", .root_rank = 0});
    EXPECT_THAT(values, ElementsAre(1, 2, 3));
    const Tensor all = runtime.gather(std::span(values), {.name = "y", .root_rank = 0});
    EXPECT_THAT(all.values<float>(), ElementsAre(1, 2, 3));
    runtime.barrier();
  });
}

// Both ends hear of it: who asks, and whose join ends.
void expect_error_on_both(const std::string& what, const std::function<void(Runtime&)>& call) {
  run_world(2, [&](Runtime& runtime) {
    const std::string text = thrown_by<MismatchError>([&] {
      if (runtime.rank() == 0) return call(runtime);
      runtime.join();
    });
    EXPECT_THAT(text, HasSubstr(what)) << "rank " << runtime.rank();
    expect_sum_works(runtime, "after");
  });
}

TEST(Join, R58_ARootThatHasJoinedIsAnErrorThereAndOnItsJoin) {
  expect_error_on_both("broadcast 'x': its root rank 1 has joined", [](Runtime& runtime) {
    std::vector<float> values = ones(2);
    runtime.broadcast(std::span(values), {.name = "x", .root_rank = 1});
  });
  expect_error_on_both("reduce 'x': its root rank 1 has joined", [](Runtime& runtime) {
    std::vector<float> values = ones(2);
    runtime.reduce(std::span(values), {.name = "x", .root_rank = 1});
  });
  expect_error_on_both("gather 'x': its root rank 1 has joined", [](Runtime& runtime) {
    std::vector<float> values = ones(2);
    static_cast<void>(runtime.gather(std::span(values), {.name = "x", .root_rank = 1}));
  });
}

TEST(Join, R58_RowsForWhoHasJoinedAreAnErrorAndNoneAreFine) {
  run_joined([](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const std::vector<std::int64_t> half{2, 2};
    const std::vector<std::int64_t> own{4, 0};
    EXPECT_THAT(
        thrown_by<MismatchError>([&] { return runtime.alltoall(std::span(values), {.name = "x", .splits = half}); }),
        HasSubstr("alltoall 'x': rank 1 has joined"));
    EXPECT_EQ(runtime.alltoall(std::span(values), {.name = "x", .splits = own}).shape(), Shape{4});
    EXPECT_THAT(thrown_by<MismatchError>(
                    [&] { return runtime.scatter(std::span(values), {.name = "y", .root_rank = 0, .splits = half}); }),
                HasSubstr("scatter 'y': rank 1 has joined"));
    EXPECT_EQ(runtime.scatter(std::span(values), {.name = "y", .root_rank = 0, .splits = own}).shape(), Shape{4});
  });
}

TEST(Join, R58_ASendToWhoHasJoinedIsAnError) {
  run_joined([](Runtime& runtime) {
    std::vector<float> values = ones(2);
    EXPECT_THAT(thrown_by<Error>([&] { runtime.send(std::span(values), {.name = "x", .to_rank = 1}); }),
                HasSubstr("send/recv 'x': rank 1 has joined"));
  });
}

TEST(Join, R58_ARankThatHasJoinedSubmitsNothingMore) {
  std::latch refused(1);
  run_world(2, [&](Runtime& runtime) {
    if (runtime.rank() == 1) {
      const Handle handle = runtime.join_async();
      std::vector<float> values = ones(2);
      EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
                  HasSubstr("allreduce 'x': this rank has joined"));
      refused.count_down();
      EXPECT_GE(handle.last_joined_rank(), 0);
      return;
    }
    refused.wait();
    runtime.join();
  });
}

TEST(Join, R60_OfTheWorldServesSetsWithinIt) {
  Config config;
  config.process_sets = {{0, 1}};
  run_world(3, config, [](Runtime& runtime) {
    if (runtime.rank() == 0) {
      std::vector<float> values = ones(3);
      runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum, .process_set = {1}});
      EXPECT_TRUE(all_are(values, 1.0F));
    }
    runtime.join();
    expect_sum_works(runtime, "after");
  });
}

TEST(Join, R60_OfASetServesThatSetAloneAndTheWorldGoesOn) {
  Config config;
  config.process_sets = {{0, 1}};
  run_world(3, config, [](Runtime& runtime) {
    std::vector<float> values = ones(3);
    Handle join;
    if (runtime.rank() == 1) join = runtime.join_async({.process_set = {1}});
    expect_sum_works(runtime, "world");  // rank 1 takes part
    if (runtime.rank() == 0) {
      runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum, .process_set = {1}});
      EXPECT_TRUE(all_are(values, 1.0F));
      EXPECT_EQ(runtime.join({.process_set = {1}}), 0);
    }
    if (runtime.rank() == 1) {
      EXPECT_EQ(join.last_joined_rank(), 0);
    }
    expect_sum_works(runtime, "after");
  });
}

TEST(Join, R61_ServesEveryNamedOperationAlsoWhatIsNewToIt) {
  run_world(2, [](Runtime& runtime) {
    const int batches = runtime.rank() == 0 ? 3 : 4;
    for (int batch = 0; batch < batches; ++batch) {
      std::vector<double> moments{1.0, 2.0};
      std::vector<float> gradient = ones(5);
      runtime.allreduce(std::span(moments), {.name = "batch norm", .op = ReduceOp::sum});
      runtime.allreduce(std::span(gradient), {.name = "gradient"});
      if (batch == 3) {
        std::vector<std::int64_t> first{7};
        runtime.allreduce(std::span(first), {.name = "seen by one rank only", .op = ReduceOp::max});
        EXPECT_THAT(first, ElementsAre(7));
        EXPECT_THAT(moments, ElementsAre(1.0, 2.0));
      }
    }
    runtime.join();
    std::vector<float> metric{static_cast<float>(batches)};
    runtime.allreduce(std::span(metric), {.name = "metric", .op = ReduceOp::sum});
    EXPECT_THAT(metric, ElementsAre(7.0F));
  });
}

// With the identity of each op, for every dtype, also where nothing comes from a whole host.
TEST(Join, R54_WhoHasJoinedGivesTheIdentityOfEveryOpAndDtype) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{2, 1}, std::vector<int>{1, 2}}) {
    std::vector<Step> steps;
    for (const DataType dtype : all_dtypes) {
      for (const ReduceOp op : allowed_ops(dtype, Operation::reduce)) {
        for (const Operation operation : {Operation::allreduce, Operation::reduce}) {
          steps.push_back({.name = std::to_string(steps.size()),
                           .operation = operation,
                           .tensors = {{.dtype = dtype, .shape = {7}}},
                           .rule = {.op = op},
                           .ranks = {0, 1, 2},
                           .in_place = steps.size() % 2 == 0,
                           .joined = {false, true, true},
                           .seed = steps.size()});
        }
      }
    }
    Config config;
    config.test_topology = hosts;
    run_world(3, config, [&](Runtime& runtime) {
      std::vector<std::string> errors;
      if (runtime.rank() == 0) run_together(runtime, {{}}, steps, errors);
      for (const std::string& error : errors) ADD_FAILURE() << error;
      runtime.join();
    });
  }
}

}  // namespace
}  // namespace hvd::test
