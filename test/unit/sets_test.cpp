#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../support/world.h"

namespace hvd::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

void expect_set_works(Runtime& runtime, ProcessSet set, std::string_view name = "x") {
  if (runtime.process_set_rank(set) < 0) return;
  std::vector<float> values = ones(3);
  runtime.allreduce(std::span(values), {.name = name, .op = ReduceOp::sum, .process_set = set});
  EXPECT_TRUE(all_are(values, static_cast<float>(runtime.process_set_ranks(set).size())));
}

TEST(ProcessSets, AreNumberedInOrderAndKnowTheirRanks) {
  Config config;
  config.process_sets = {{3, 1}, {2}};
  run_world(4, config, [](Runtime& runtime) {
    EXPECT_THAT(runtime.process_set_ranks({}), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(runtime.process_set_ranks({1}), ElementsAre(1, 3));
    EXPECT_EQ(runtime.process_set_rank({0}), runtime.rank());
    EXPECT_EQ(runtime.process_set_rank({1}),
              (std::vector<int>{-1, 0, -1, 1}[static_cast<std::size_t>(runtime.rank())]));
    const ProcessSet made = runtime.add_process_set({2, 0});
    EXPECT_EQ(made, ProcessSet{3});
    EXPECT_THAT(runtime.process_set_ranks(made), ElementsAre(0, 2));
    for (const ProcessSet set : {ProcessSet{1}, ProcessSet{2}, made}) expect_set_works(runtime, set);
    runtime.remove_process_set(made);
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return runtime.process_set_ranks(made); }), HasSubstr("3"));
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { runtime.barrier({.name = "b", .process_set = made}); }),
                HasSubstr("process set 3"));
    expect_set_works(runtime, {1});
    expect_sum_works(runtime, "world");
  });
}

std::vector<std::exception_ptr> errors_of_init(const std::vector<std::vector<std::vector<int>>>& sets_of_ranks) {
  return run_ranks(
      static_cast<int>(sets_of_ranks.size()),
      [&](int rank) {
        Config config;
        config.start_timeout = std::chrono::seconds(20);
        config.process_sets = sets_of_ranks[static_cast<std::size_t>(rank)];
        return config;
      },
      [](Runtime& runtime) { runtime.barrier(); });
}

TEST(ProcessSets, R113_UnlikeOnesInTheConfigAreAnErrorOfInitOnAllRanksThatNamesThem) {
  for (const auto& error : errors_of_init({{{0, 1}}, {{0, 1}}, {{1, 2}, {0}}})) {
    EXPECT_EQ(text_of(error), "init: config differs: process_sets: [0,1] [0,1]; [2] [1,2] [0]");
  }
  for (const auto& error : errors_of_init({{{0}, {1}}, {{1}, {0}}})) {
    EXPECT_EQ(text_of(error), "init: config differs: process_sets: [0] [0] [1]; [1] [1] [0]");
  }
  for (const auto& error : errors_of_init({{{1, 0}}, {{0, 1}}, {{0, 1}}})) EXPECT_EQ(text_of(error), "no error");
}

TEST(ProcessSets, R113_OnesThatCannotBeInTheConfigAreAnErrorOfInitOnAllRanks) {
  for (const auto& error : errors_of_init({{{0, 2}}, {{0, 2}}})) {
    EXPECT_THAT(text_of(error), HasSubstr("[0,2]: rank 2 is not in 0..1"));
  }
  // On one rank alone: the others do not wait for it.
  for (const auto& error : errors_of_init({{}, {{1, 5}}, {}})) {
    EXPECT_EQ(text_of(error), "init: config differs: process_sets: [0,2] none; [1] [1,5]");
  }
  for (const auto& error : errors_of_init({{{1}}, {{1, 1}}})) {
    EXPECT_THAT(text_of(error), AllOf(StartsWith("init: [1] "), HasSubstr("rank 1 is in it twice")));
  }
}

// ---- R111: what small allreduces cost does not depend on sets that nobody uses

Stats cost_of_allreduces(int sets_made, int sets_removed) {
  Stats cost;
  run_world(4, [&](Runtime& runtime) {
    const std::vector<std::vector<int>> ranks{{0, 1}, {1, 2, 3}, {0, 3}, {2}};
    std::vector<ProcessSet> sets;
    for (int i = 0; i < sets_made; ++i) sets.push_back(runtime.add_process_set(ranks[static_cast<std::size_t>(i)]));
    for (int i = 0; i < sets_removed; ++i) runtime.remove_process_set(sets[static_cast<std::size_t>(i)]);
    std::vector<float> values = ones(4);
    const auto step = [&] { runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::max}); };
    for (int i = 0; i < 3; ++i) step();
    const Stats before = runtime.stats();
    for (int i = 0; i < repetitions(1000); ++i) step();
    const Stats after = runtime.stats();
    if (runtime.rank() != 1) return;
    cost.requests_sent = after.requests_sent - before.requests_sent;
    cost.requests_cached = after.requests_cached - before.requests_cached;
    cost.batches = after.batches - before.batches;
    cost.bytes_packed = after.bytes_packed - before.bytes_packed;
    cost.bytes_sent = after.bytes_sent - before.bytes_sent;
    cost.reports_sent = after.reports_sent - before.reports_sent;
  });
  return cost;
}

TEST(ProcessSets, R111_ThoseThatNobodyUsesCostNothing) {
  const Stats without = cost_of_allreduces(0, 0);
  EXPECT_EQ(without.requests_sent, 0U);
  EXPECT_EQ(without.batches, static_cast<std::uint64_t>(repetitions(1000)));
  for (const auto& [made, removed] : {std::pair(4, 0), std::pair(4, 2)}) {
    const Stats with = cost_of_allreduces(made, removed);
    EXPECT_EQ(with.requests_sent, without.requests_sent);
    EXPECT_EQ(with.requests_cached, without.requests_cached);
    EXPECT_EQ(with.batches, without.batches);
    EXPECT_EQ(with.bytes_packed, without.bytes_packed);
    EXPECT_EQ(with.bytes_sent, without.bytes_sent);
    EXPECT_EQ(with.reports_sent, without.reports_sent);
  }
}

// ---- R112: many threads

TEST(ProcessSets, R112_MadeByTwoThreadsInUnlikeOrderAreTheSameOnAllRanks) {
  for (int round = 0; round < repetitions(25); ++round) {
    std::vector<std::vector<std::uint32_t>> ids(4, std::vector<std::uint32_t>(2));
    run_world(4, [&](Runtime& runtime) {
      const std::vector<std::vector<int>> ranks{{0, 1, 2}, {1, 3}};
      auto& mine = ids[static_cast<std::size_t>(runtime.rank())];
      const auto errors = run_threads(2, [&](int thread) {
        const auto which = static_cast<std::size_t>((thread + runtime.rank()) % 2);
        const ProcessSet set = runtime.add_process_set(ranks[which]);
        mine[which] = set.id;
        expect_set_works(runtime, set, "x" + std::to_string(which));
      });
      for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
      runtime.barrier();
    });
    EXPECT_THAT(ids, testing::Each(ids[0]));
  }
}

TEST(ProcessSets, R112_OperationsOfOverlappingSetsFromAThreadEachDoNotWaitForEachOther) {
  Config config;
  config.process_sets = {{0, 1, 2}, {1, 2, 3}, {0, 3}};
  run_world(4, config, [](Runtime& runtime) {
    const auto errors = run_threads(3, [&](int thread) {
      // Each rank starts with another set.
      const ProcessSet set{static_cast<std::uint32_t>((thread + runtime.rank()) % 3 + 1)};
      for (int round = 0; round < repetitions(500); ++round) expect_set_works(runtime, set);
    });
    for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
    runtime.barrier();  // the first to leave would end it for all
  });
}

TEST(ProcessSets, R112_OneThatLacksARankDoesNotHoldUpTheOthers) {
  Config config;
  config.process_sets = {{0, 1}, {0, 2}};
  std::latch others_done(2);
  run_world(3, config, [&](Runtime& runtime) {
    std::vector<float> values = ones(2);
    Handle waiting;
    if (runtime.rank() == 0) waiting = runtime.allreduce_async(std::span(values), {.name = "x", .process_set = {1}});
    for (int round = 0; round < 50; ++round) expect_set_works(runtime, {2});
    if (runtime.rank() != 1) others_done.count_down();
    others_done.wait();
    if (runtime.rank() == 1) waiting = runtime.allreduce_async(std::span(values), {.name = "x", .process_set = {1}});
    if (waiting) waiting.wait();
    runtime.barrier();
  });
}

// ---- R113: misuse

TEST(ProcessSets, R113_ARankOutsideASetIsRefusedWithTheSetsRanks) {
  Config config;
  config.process_sets = {{0, 1}};
  run_world(3, config, [](Runtime& runtime) {
    if (runtime.rank() == 2) {
      std::vector<float> values = ones(2);
      EXPECT_THAT(thrown_by<InvalidArgumentError>(
                      [&] { runtime.allreduce(std::span(values), {.name = "x", .process_set = {1}}); }),
                  AllOf(StartsWith("allreduce 'x'"), HasSubstr("rank 2 is not in process set 1")));
    }
    expect_set_works(runtime, {1});
    runtime.barrier();
  });
}

TEST(ProcessSets, R113_ARootOutsideTheSetIsRefused) {
  Config config;
  config.process_sets = {{0, 2}};
  run_world(3, config, [](Runtime& runtime) {
    if (runtime.rank() == 1) return runtime.barrier();
    std::vector<float> values(2, static_cast<float>(runtime.rank()));
    EXPECT_THAT(thrown_by<InvalidArgumentError>(
                    [&] { runtime.broadcast(std::span(values), {.name = "x", .root_rank = 1, .process_set = {1}}); }),
                StartsWith("broadcast 'x' process set 1: root rank 1 is not in "));
    runtime.broadcast(std::span(values), {.name = "x", .root_rank = 2, .process_set = {1}});
    EXPECT_TRUE(all_are(values, 2.0F));
    runtime.barrier();
  });
}

TEST(ProcessSets, R113_UnlikeRanksAreAnErrorOnAllRanksThatNamesThem) {
  run_world(3, [](Runtime& runtime) {
    const std::vector<int> mine = runtime.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 2};
    EXPECT_EQ(thrown_by<MismatchError>([&] { return runtime.add_process_set(mine); }),
              "add_process_set: ranks of the set differ: [0] [0,1]; [1,2] [1,2]");
    expect_sum_works(runtime, "world");
  });
}

TEST(ProcessSets, R113_ARankThatDoesNotMakeItIsAStall) {
  Config config;
  config.stall_warning = std::chrono::seconds(0);
  config.stall_shutdown = std::chrono::milliseconds(300);
  std::latch failed(3);
  run_world(3, config, [&](Runtime& runtime) {
    if (runtime.rank() < 2) {
      EXPECT_THAT(thrown_by<StallError>([&] {
                    return runtime.add_process_set({0, 1});
                  }),
                  AllOf(StartsWith("add_process_set"), HasSubstr("submitted by [0,1], waits for [2]")));
    }
    failed.arrive_and_wait();
  });
}

TEST(ProcessSets, R113_ASetOfTheSameRanksIsRefusedUntilTheFirstIsGone) {
  run_world(3, [](Runtime& runtime) {
    const ProcessSet first = runtime.add_process_set({0, 1});
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] {
                  return runtime.add_process_set({1, 0});
                }),
                HasSubstr("process set 1 has the same ranks"));
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] {
                  return runtime.add_process_set({0, 1, 2});
                }),
                HasSubstr("process set 0 has the same ranks"));
    expect_set_works(runtime, first);
    runtime.remove_process_set(first);
    const ProcessSet second = runtime.add_process_set({0, 1});
    EXPECT_NE(second, first) << "numbers do not come again";
    expect_set_works(runtime, second);
    runtime.barrier();
  });
}

TEST(ProcessSets, R113_RanksOutOfRangeAreRefused) {
  run_world(3, [](Runtime& runtime) {
    const auto refused = [&](const std::vector<int>& ranks) {
      return thrown_by<InvalidArgumentError>([&] { return runtime.add_process_set(ranks); });
    };
    EXPECT_THAT(refused({0, 3}), HasSubstr("rank 3 is not in 0..2"));
    EXPECT_THAT(refused({-1}), HasSubstr("rank -1 is not in 0..2"));
    EXPECT_THAT(refused({}), HasSubstr("no ranks"));
    EXPECT_THAT(refused({1, 1}), HasSubstr("rank 1 is in it twice"));
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { runtime.remove_process_set({7}); }), HasSubstr("process set"));
    EXPECT_NE(thrown_by<InvalidArgumentError>([&] { runtime.remove_process_set({}); }), "") << "that of all ranks";
    expect_sum_works(runtime, "world");
  });
}

TEST(ProcessSets, R113_RemovingOneFailsWhatIsInFlightOnIt) {
  run_world(3, [](Runtime& runtime) {
    const ProcessSet set = runtime.add_process_set({0, 1});
    std::vector<float> values = ones(2);
    Handle handle;
    if (runtime.rank() == 0) handle = runtime.allreduce_async(std::span(values), {.name = "x", .process_set = set});
    runtime.remove_process_set(set);
    if (handle) {
      EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { handle.wait(); }),
                  StartsWith("allreduce 'x' process set 1: the process set has been removed"));
      EXPECT_TRUE(all_are(values, 1.0F));
    }
    expect_sum_works(runtime, "world");
  });
}

}  // namespace
}  // namespace hvd::test
