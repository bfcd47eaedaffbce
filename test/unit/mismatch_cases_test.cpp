#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../support/world.h"

// Ranks that submit unlike things: what each operation compares, groups, process sets, and the order of operations
// without a name.
namespace hvd::test {
namespace {

// All ranks run their wrong operation, which must throw this text on each; a right one under the name works afterwards.
void expect_mismatch(int size, const std::string& text, const std::function<void(Runtime&)>& wrong) {
  run_world(size, [&](Runtime& runtime) {
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(thrown_by<MismatchError>([&] { wrong(runtime); }), text) << "rank " << runtime.rank();
      expect_sum_works(runtime, "x");
    }
  });
}

TEST(Mismatch, R19_UnlikeTrailingDimensionsOfAnAlltoall) {
  expect_mismatch(2, "alltoall 'x': shapes differ: [0] float32[?, 3]; [1] float32[?, 2]", [](Runtime& runtime) {
    std::vector<float> values = ones(12);
    const Shape shape = runtime.rank() == 0 ? Shape{4, 3} : Shape{6, 2};
    static_cast<void>(runtime.alltoall(TensorView(std::span(values), shape), {.name = "x"}));
  });
}

TEST(Mismatch, R19_UnlikeTrailingDimensionsOfAGather) {
  expect_mismatch(3, "gather 'x': shapes differ: [0,2] float32[?]; [1] float32[?, 1]", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const Shape shape = runtime.rank() == 1 ? Shape{4, 1} : Shape{4};
    static_cast<void>(runtime.gather(TensorView(std::span(values), shape), {.name = "x"}));
  });
}

TEST(Mismatch, R19_UnlikeRootsOfAReduceAGatherAndAScatter) {
  expect_mismatch(2, "reduce 'x': root rank differs: [0] 0; [1] 1", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    runtime.reduce(std::span(values), {.name = "x", .root_rank = runtime.rank()});
  });
  expect_mismatch(2, "gather 'x': root rank differs: [0] 1; [1] 0", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    static_cast<void>(runtime.gather(std::span(values), {.name = "x", .root_rank = 1 - runtime.rank()}));
  });
  expect_mismatch(3, "scatter 'x': root rank differs: [0,1] 0; [2] 2", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    static_cast<void>(runtime.scatter(std::span(values), {.name = "x", .root_rank = runtime.rank() == 2 ? 2 : 0}));
  });
}

TEST(Mismatch, R19_UnlikeReduceOpsOfAReduceScatter) {
  expect_mismatch(2, "reduce_scatter 'x': reduce op differs: [0] Max; [1] Sum", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const ReduceOp op = runtime.rank() == 0 ? ReduceOp::max : ReduceOp::sum;
    static_cast<void>(runtime.reduce_scatter(std::span(values), {.name = "x", .op = op}));
  });
}

TEST(Mismatch, R19_ASendAndItsReceiveOfUnlikeShapes) {
  expect_mismatch(2, "send/recv 'x': shapes differ: [0] float32[4]; [1] float32[3]", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    if (runtime.rank() == 0) {
      runtime.send(std::span(values), {.name = "x", .to_rank = 1});
    } else {
      runtime.recv(std::span(values).first(3), {.name = "x", .from_rank = 0});
    }
  });
}

TEST(Mismatch, R13_EveryPairOfOperationsUnderOneName) {
  using Call = std::function<void(Runtime&, std::span<float>)>;
  const std::vector<std::pair<std::string, Call>> calls{
      {"allreduce", [](Runtime& r, auto span) { r.allreduce(span, {.name = "x"}); }},
      {"reduce", [](Runtime& r, auto span) { r.reduce(span, {.name = "x"}); }},
      {"reduce_scatter", [](Runtime& r, auto span) { static_cast<void>(r.reduce_scatter(span, {.name = "x"})); }},
      {"broadcast", [](Runtime& r, auto span) { r.broadcast(span, {.name = "x"}); }},
      {"allgather", [](Runtime& r, auto span) { static_cast<void>(r.allgather(span, {.name = "x"})); }},
      {"gather", [](Runtime& r, auto span) { static_cast<void>(r.gather(span, {.name = "x"})); }},
      {"scatter", [](Runtime& r, auto span) { static_cast<void>(r.scatter(span, {.name = "x"})); }},
      {"alltoall", [](Runtime& r, auto span) { static_cast<void>(r.alltoall(span, {.name = "x"})); }},
      {"barrier", [](Runtime& r, auto) { r.barrier({.name = "x"}); }},
  };
  run_world(2, [&](Runtime& runtime) {
    for (std::size_t a = 0; a < calls.size(); ++a) {
      for (std::size_t b = 0; b < calls.size(); ++b) {
        if (a == b) continue;
        std::vector<float> values = ones(4);
        EXPECT_EQ(thrown_by<MismatchError>([&] { calls[runtime.rank() == 0 ? a : b].second(runtime, values); }),
                  "'x': operations differ: [0] " + calls[a].first + "; [1] " + calls[b].first);
      }
    }
    expect_sum_works(runtime, "x");
  });
}

TEST(Mismatch, R11_InAProcessSetTheRanksAreThoseOfTheWorld) {
  Config config;
  config.process_sets = {{0, 2}, {1, 3}};
  run_world(4, config, [](Runtime& runtime) {
    std::vector<float> values = ones(runtime.rank() == 3 ? 5 : 4);
    if (runtime.rank() % 2 == 1) {
      EXPECT_EQ(
          thrown_by<MismatchError>([&] { runtime.allreduce(std::span(values), {.name = "w", .process_set = {2}}); }),
          "allreduce 'w' process set 2: shapes differ: [1] float32[4]; [3] float32[5]");
    } else {
      runtime.allreduce(std::span(values), {.name = "w", .op = ReduceOp::sum, .process_set = {1}});
      EXPECT_TRUE(all_are(values, 2.0F));
    }
    expect_sum_works(runtime, "w");
  });
}

// ---- groups

TEST(Groups, R84_OfUnlikeSizeAreAnErrorOnBothRanksAndNothingOfThemRuns) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> a = ones(3);
    std::vector<float> b = ones(4);
    std::vector<float> c = ones(5);
    const std::array<TensorView, 3> all{std::span(a), std::span(b), std::span(c)};
    const std::span<const TensorView> mine = std::span(all).first(runtime.rank() == 0 ? 3 : 2);
    EXPECT_EQ(thrown_by<MismatchError>([&] { runtime.grouped_allreduce(mine, {.name = "g", .op = ReduceOp::sum}); }),
              "allreduce 'g': group sizes differ: [0] 3 tensors; [1] 2 tensors");
    EXPECT_TRUE(all_are(a, 1.0F) && all_are(b, 1.0F) && all_are(c, 1.0F)) << "memory was touched";
    runtime.grouped_allreduce(all, {.name = "g", .op = ReduceOp::sum});
    EXPECT_TRUE(all_are(a, 2.0F) && all_are(b, 2.0F) && all_are(c, 2.0F));
  });
}

TEST(Groups, R84_AGroupAndATensorAloneUnderOneName) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> a = ones(3);
    std::vector<float> b = ones(4);
    const std::array<TensorView, 2> both{std::span(a), std::span(b)};
    const std::string text = thrown_by<MismatchError>([&] {
      if (runtime.rank() == 0) return runtime.grouped_allreduce(both, {.name = "a"});
      runtime.allreduce(std::span(a), {.name = "a"});
    });
    EXPECT_EQ(text, "allreduce 'a': group sizes differ: [0] 2 tensors; [1] 1 tensor");
    EXPECT_TRUE(all_are(a, 1.0F) && all_are(b, 1.0F)) << "memory was touched";
  });
}

TEST(Groups, R84_OneUnlikeTensorFailsAllOfTheGroup) {
  run_world(3, [](Runtime& runtime) {
    std::vector<float> a = ones(3);
    std::vector<double> b(runtime.rank() == 1 ? 5 : 4, 1.0);
    const std::array<TensorView, 2> both{std::span(a), std::span(b)};
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.grouped_allreduce(both, {.name = "g"}); }),
                testing::StartsWith("allreduce 'g': shapes differ: [0,2] "));
    EXPECT_TRUE(all_are(a, 1.0F) && all_are(b, 1.0)) << "memory was touched";
  });
}

// ---- without names

TEST(Names, R24_UnderTheCheckOfMessagesAnotherOrderWithoutNamesIsAnError) {
  Config config;
  config.check = CheckLevel::comm;
  run_world(2, config, [](Runtime& runtime) {
    std::vector<float> a(2, 1.0F);
    std::vector<float> b(2, 5.0F);
    const auto submit_a = [&] { return runtime.allreduce_async(std::span(a), {.op = ReduceOp::sum}); };
    const auto submit_b = [&] { return runtime.allreduce_async(std::span(b), {.op = ReduceOp::sum}); };
    const Handle first = runtime.rank() == 0 ? submit_a() : submit_b();
    const Handle second = runtime.rank() == 0 ? submit_b() : submit_a();
    for (const Handle& handle : {first, second}) {
      EXPECT_THAT(thrown_by<MismatchError>([&] { handle.wait(); }), testing::HasSubstr("call site differs"));
    }
    EXPECT_TRUE(all_are(a, 1.0F) && all_are(b, 5.0F)) << "values were mixed";
    // The same order is right.
    const Handle again = submit_a();
    const Handle other = submit_b();
    again.wait();
    other.wait();
    EXPECT_TRUE(all_are(a, 2.0F) && all_are(b, 10.0F));
  });
}

}  // namespace
}  // namespace hvd::test
