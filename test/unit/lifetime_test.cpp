#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <hvd/in_process.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/process.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

std::vector<std::exception_ptr> run_ranks(int size, const RankBody& body) {
  return test::run_ranks(
      size, [](int) { return Config{}; }, body);
}

// ---- the default runtime; without a launcher a world of one rank

void expect_not_initialized() {
  std::vector<float> values(2, 1.0F);
  const std::string text = "hvd is not initialised: call hvd::init() first, and nothing after hvd::shutdown()";
  const auto refused = [&](const auto& call) { EXPECT_EQ(thrown_by<NotInitializedError>(call), text); };
  EXPECT_FALSE(hvd::is_initialized());
  refused([&] { hvd::allreduce(values); });
  refused([&] { return hvd::allreduce_async(values); });
  refused([&] { hvd::broadcast(values); });
  refused([&] { return hvd::allgather(values); });
  refused([&] { hvd::barrier(); });
  refused([&] { return hvd::rank(); });
  refused([&] { return hvd::size(); });
  refused([&] { return hvd::local_rank(); });
  refused([&] { return hvd::local_size(); });
  refused([&] { return hvd::cross_rank(); });
  refused([&] { return hvd::cross_size(); });
  refused([&] { return hvd::is_homogeneous(); });
  refused([&] { static_cast<void>(hvd::runtime()); });
}

TEST(DefaultRuntime, R38_InitAndShutdownMayAlternateAndNothingGrows) {
  Resources before;
  for (int round = 0; round < 5; ++round) {
    expect_not_initialized();
    hvd::init();
    EXPECT_TRUE(hvd::is_initialized());
    hvd::init();  // does nothing
    EXPECT_EQ(hvd::rank(), 0);
    EXPECT_EQ(hvd::size(), 1);
    EXPECT_EQ(hvd::local_rank(), 0);
    EXPECT_EQ(hvd::local_size(), 1);
    EXPECT_EQ(hvd::cross_rank(), 0);
    EXPECT_EQ(hvd::cross_size(), 1);
    EXPECT_TRUE(hvd::is_homogeneous());
    std::vector<double> values{1.5, static_cast<double>(round)};
    hvd::allreduce(values);
    hvd::broadcast(values);
    EXPECT_EQ(hvd::allgather(values), (std::vector<double>{1.5, static_cast<double>(round)}));
    hvd::barrier();
    hvd::shutdown();
    hvd::shutdown();  // does nothing
    if (round == 0) before = Resources::now();
  }
  expect_not_initialized();
  expect_no_more_than(before);
}

TEST(DefaultRuntime, TakesItsConfigFromCode) {
  Config config;
  config.fusion_threshold = 12345;
  hvd::init(config);
  EXPECT_EQ(hvd::runtime().config().fusion_threshold, 12345);
  hvd::shutdown();
}

// ---- leaving

TEST(Lifetime, R40_ManyRoundsOfJoinBarrierLeaveWithRandomPauses) {
  Resources before;
  for (int round = 0; round < repetitions(100); ++round) {
    run_world(4, [&](Runtime& runtime) {
      std::minstd_rand random(static_cast<unsigned>(8 * round + runtime.rank() + 1));
      const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random() % 300)); };
      pause();
      runtime.barrier();
      pause();
      runtime.shutdown();
      EXPECT_FALSE(runtime.is_running());
    });
    if (round == 0) before = Resources::now();
  }
  expect_no_more_than(before);
}

TEST(Lifetime, R32_ARankThatFailsIsTheCauseThatTheOthersAreTold) {
  run_world(3, [](Runtime& runtime) {
    std::vector<float> values(3, 1.0F);
    if (runtime.rank() == 2) {
      // Not even what it has submitted itself is waited for.
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "its own"});
      runtime.leave("ValueError: boom");
      EXPECT_FALSE(runtime.is_running());
      EXPECT_THROW(handle.wait(), ShutDownError);
      return;
    }
    try {
      runtime.allreduce(std::span(values), {.name = "g"});
      ADD_FAILURE() << "went through without rank 2";
    } catch (const ShutDownError& error) {
      EXPECT_THAT(error.what(),
                  testing::ContainsRegex("allreduce 'g': rank 2 \\(host .*, pid [0-9]+\\) left: ValueError: boom"));
    }
  });
}

TEST(Lifetime, R40_WhatAllRanksHaveSubmittedCompletesThoughNobodyWaits) {
  for (int round = 0; round < repetitions(25); ++round) {
    run_world(3, [&](Runtime& runtime) {
      std::vector<std::vector<float>> values(
          20, std::vector<float>(static_cast<std::size_t>(1 + 3000 * (round % 5)), 1.0F));
      std::vector<Handle> handles;
      for (std::size_t i = 0; i < values.size(); ++i) {
        handles.push_back(
            runtime.allreduce_async(std::span(values[i]), {.name = std::to_string(i), .op = ReduceOp::sum}));
      }
      runtime.shutdown();
      for (const Handle& handle : handles) {
        EXPECT_TRUE(handle.ready());
        EXPECT_NO_THROW(handle.wait());
      }
      for (const auto& value : values) EXPECT_TRUE(all_are(value, 3.0F));
    });
  }
}

TEST(Lifetime, R40_WhatARankThatLeavesHasNotSubmittedFailsOnTheOthers) {
  for (const int leaver : {0, 1, 2}) {
    run_world(3, [&](Runtime& runtime) {
      std::vector<float> values(4, 1.0F);
      if (runtime.rank() == leaver) return runtime.shutdown();
      // At the wait, or at the submission when the news was there before.
      EXPECT_EQ(thrown_by<ShutDownError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
                "allreduce 'x': rank " + std::to_string(leaver) + " has left: called shutdown()");
      EXPECT_TRUE(all_are(values, 1.0F));
    });
  }
}

TEST(Lifetime, ALeaveThatFailsMoreThanAMessageHoldsReachesAll) {
  run_world(3, [](Runtime& runtime) {
    std::vector<float> values(1000, 1.0F);
    if (runtime.rank() != 0) {
      std::vector<Handle> handles;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string name = "a tensor that rank 0 never submits " + std::to_string(i);
        handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.name = name}));
      }
      for (const Handle& handle : handles) EXPECT_THROW(handle.wait(), ShutDownError);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // most are waiting by then
    }
  });
}

TEST(Lifetime, R28_TheFirstToLeaveEndsTheRuntimeOnAllRanksWithItsReason) {
  std::latch left(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values(4);
    expect_sum_works(runtime, "sum");
    if (runtime.rank() == 0) {
      runtime.shutdown("its work is done");
      left.count_down();
      return;
    }
    left.wait();
    for (int again = 0; again < 3; ++again) {
      EXPECT_THAT(thrown_by<ShutDownError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
                  HasSubstr("rank 0 has left: its work is done"));
      EXPECT_THAT(
          thrown_by<ShutDownError>([&] { return runtime.allgather_async(std::span<const float>(values)).wait(); }),
          HasSubstr("rank 0 has left"));
    }
    while (runtime.is_running()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(runtime.rank(), 1);
    EXPECT_EQ(runtime.size(), 2);
  });
}

TEST(Lifetime, AfterItsOwnShutdownARankGetsAnErrorAtOnce) {
  run_world(2, [&](Runtime& runtime) {
    expect_sum_works(runtime, "sum");
    runtime.shutdown();
    runtime.shutdown();
    std::vector<float> values(4);
    EXPECT_THAT(thrown_by<ShutDownError>([&] { return runtime.allreduce_async(std::span(values)); }),
                HasSubstr(" has left: called shutdown()"));
    EXPECT_THAT(thrown_by<ShutDownError>([&] { runtime.barrier(); }), HasSubstr(" has left: called shutdown()"));
  });
}

TEST(Lifetime, SeveralThreadsMayShutDownAtOnce) {
  run_world(2, [&](Runtime& runtime) {
    expect_sum_works(runtime, "sum");
    run_threads(4, [&](int) { runtime.shutdown(); });
    EXPECT_FALSE(runtime.is_running());
  });
}

TEST(Lifetime, TheResultOfALastOperationReachesAllThoughOthersLeave) {
  for (int round = 0; round < repetitions(25); ++round) {
    run_world(4, [&](Runtime& runtime) {
      std::vector<float> values(200'000, 1.0F);
      runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum});
      runtime.shutdown();
      EXPECT_TRUE(all_are(values, 4.0F));
    });
  }
}

TEST(Lifetime, ShutdownIsBoundedThoughAPeerNeverSubmits) {
  for (const int leaver : {0, 1}) {
    Config config;
    config.shutdown_timeout = 200ms;
    std::latch left(1);
    run_world(2, config, [&](Runtime& runtime) {
      if (runtime.rank() != leaver) return left.wait();
      std::vector<float> values(4, 1.0F);
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
      const auto start = Clock::now();
      runtime.shutdown();
      EXPECT_LT(Clock::now() - start, 20s);
      EXPECT_EQ(thrown_by<ShutDownError>([&] { handle.wait(); }),
                "allreduce 'x': rank " + std::to_string(leaver) +
                    " has left: called shutdown(), and waited 0.2 s for operations in flight");
      left.count_down();
    });
  }
}

TEST(Lifetime, AThreadThatWaitsLearnsOfTheShutdown) {
  Config config;
  config.shutdown_timeout = 100ms;
  std::latch left(1);
  run_world(2, config, [&](Runtime& runtime) {
    if (runtime.rank() == 1) return left.wait();
    std::vector<float> values(4, 1.0F);
    std::thread waiter([&] {
      EXPECT_THAT(thrown_by<ShutDownError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
                  HasSubstr("rank 0 has left"));
    });
    std::this_thread::sleep_for(20ms);
    runtime.shutdown();
    waiter.join();
    left.count_down();
  });
}

TEST(Lifetime, HandlesMayOutliveTheRuntime) {
  std::vector<std::vector<Handle>> handles(2);
  std::vector<float> complete[2] = {std::vector<float>(4, 1.0F), std::vector<float>(4, 1.0F)};
  std::vector<float> incomplete(4, 1.0F);
  InProcessWorld world(2);
  run_threads(2, [&](int rank) {
    const std::unique_ptr<Runtime> runtime = world.join(rank);
    auto& mine = handles[static_cast<std::size_t>(rank)];
    mine.push_back(runtime->allreduce_async(std::span(complete[rank]), {.name = "complete", .op = ReduceOp::sum}));
    mine.push_back(runtime->allgather_async(std::span<const float>(complete[rank]).first(1), {.name = "gathered"}));
    if (rank == 1) mine.push_back(runtime->allreduce_async(std::span(incomplete), {.name = "incomplete"}));
  });
  for (auto& of_rank : handles) {
    EXPECT_NO_THROW(of_rank[0].wait());
    EXPECT_TRUE(of_rank[0].wait_for(0s));
    EXPECT_EQ(of_rank[1].take_output().shape(), Shape({2}));
  }
  EXPECT_TRUE(all_are(complete[0], 2.0F));
  EXPECT_TRUE(all_are(complete[1], 2.0F));
  EXPECT_THAT(thrown_by<ShutDownError>([&] { handles[1][2].wait(); }), HasSubstr("'incomplete': rank 0 has left"));
}

TEST(Lifetime, WorldsSideBySideDoNotDisturbEachOther) {
  const auto errors = run_threads(3, [](int world) {
    for (int round = 0; round < 3; ++round) {
      run_world(2 + world % 2, [](Runtime& runtime) {
        for (int i = 0; i < 20; ++i) expect_sum_works(runtime, "sum");
      });
    }
  });
  for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
}

TEST(Lifetime, ARankThatThrowsTakesTheOthersAlong) {
  const auto errors = run_ranks(3, [](Runtime& runtime) {
    expect_sum_works(runtime, "sum");
    if (runtime.rank() == 2) throw std::runtime_error("boom");
    runtime.barrier();
  });
  EXPECT_EQ(text_of(errors[2]), "boom");
  EXPECT_THAT(text_of(errors[0]), HasSubstr("rank 2 has left"));
  EXPECT_THAT(text_of(errors[1]), HasSubstr("rank 2 has left"));
}

// ---- joining

std::vector<std::string> texts_of(const std::vector<std::exception_ptr>& errors) {
  std::vector<std::string> texts;
  for (const auto& error : errors) texts.push_back(text_of(error));
  return texts;
}

TEST(Joining, UnlikeConfigsAreAnErrorOnAllRanks) {
  const auto errors = test::run_ranks(
      2,
      [](int rank) {
        Config config;
        if (rank == 1) config.fusion_threshold = 64 << 20;
        return config;
      },
      [](Runtime&) { ADD_FAILURE() << "joined"; });
  EXPECT_THAT(texts_of(errors), testing::Each("init: config differs: fusion_threshold: [0] 128 MiB; [1] 64 MiB"));
  EXPECT_NE(thrown_by<InvalidArgumentError>([&] { std::rethrow_exception(errors[0]); }), "");
}

TEST(Joining, AllDifferencesAreListed) {
  const auto errors = test::run_ranks(
      3,
      [](int rank) {
        Config config;
        if (rank == 1) config.fusion_threshold = 0;
        if (rank == 2) config.chunk_bytes = 4096;
        config.stall_warning = std::chrono::seconds(rank);  // need not agree
        return config;
      },
      [](Runtime&) { ADD_FAILURE() << "joined"; });
  EXPECT_THAT(texts_of(errors), testing::Each(testing::AllOf(HasSubstr("fusion_threshold: [0,2] 128 MiB; [1] 0 bytes"),
                                                             HasSubstr("chunk_bytes: [0,1] 512 KiB; [2] 4 KiB"))));
}

TEST(Joining, ValuesOutOfRangeAreRefused) {
  InProcessWorld world(1);
  Config config;
  config.chunk_bytes = 0;
  EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return world.join(0, config); }),
              HasSubstr("Config::chunk_bytes: 0 bytes is out of range"));
}

TEST(Joining, AMissingRankIsAnErrorWithinTheStartTimeout) {
  InProcessWorld world(2);
  Config config;
  config.start_timeout = 100ms;
  const std::string text = thrown_by<Error>([&] { return world.join(0, config); });
  EXPECT_EQ(text, "init: 1 of 2 ranks arrived within 0.1 s");
}

TEST(Joining, ARankOutOfRangeOrTakenIsRefused) {
  EXPECT_EQ(thrown_by<InvalidArgumentError>([] { InProcessWorld none(0); }), "a world of 0 ranks");
  InProcessWorld world(1);
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return world.join(1); }), "join: rank 1 is not in 0..0");
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return world.join(-1); }), "join: rank -1 is not in 0..0");
  const auto runtime = world.join(0);
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return world.join(0); }), "join: rank 0 is taken");
}

TEST(Joining, ATopologyThatDoesNotAddUpIsRefused) {
  InProcessWorld world(1);
  Config config;
  config.test_topology = {1, 1};
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return world.join(0, config); }),
            "HVD_TEST_TOPOLOGY: 1,1 ranks per host do not add up to 1 ranks");
}

}  // namespace
}  // namespace hvd::test
