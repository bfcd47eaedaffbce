#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "../support/cases.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

// Every rank calls its wrong operation; all must throw this text, and a right one under that name must work afterwards.
void expect_mismatch(int size, const std::string& text, const std::function<void(Runtime&)>& wrong,
                     const Config& config = {}) {
  run_world(size, config, [&](Runtime& runtime) {
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(thrown_by<MismatchError>([&] { wrong(runtime); }), text);
      expect_sum_works(runtime, "x");
    }
  });
}

// ---- mismatches

TEST(Mismatch, R11_UnequalShapesAreAnErrorOnEveryRankThatNamesThemByRank) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{2, 2}}) {
    Config config;
    config.test_topology = hosts;
    run_world(4, config, [](Runtime& runtime) {
      std::vector<float> values = ones(runtime.rank() == 1 ? 5 : 4);
      const std::string text = thrown_by<MismatchError>([&] { runtime.allreduce(std::span(values), {.name = "w"}); });
      EXPECT_EQ(text, "allreduce 'w': shapes differ: [0,2,3] float32[4]; [1] float32[5]");
      EXPECT_TRUE(all_are(values, 1.0F)) << "memory was touched";
      expect_sum_works(runtime, "w");
    });
  }
}

TEST(Mismatch, R13_UnlikeOperationsUnderOneName) {
  expect_mismatch(2, "'x': operations differ: [0] allreduce; [1] allgather", [](Runtime& runtime) {
    std::vector<float> values = ones(6);
    const TensorView view{std::span(values), Shape{2, 3}};
    if (runtime.rank() == 0) {
      runtime.allreduce(view, {.name = "x"});
    } else {
      static_cast<void>(runtime.allgather(view, {.name = "x"}));
    }
  });
}

TEST(Mismatch, R15_AKnownNameWithAnotherShapeOnOneRankNeverGivesAValue) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values(409600);
    for (int round = 0; round < 3; ++round) {
      for (int step = 0; step < 3; ++step) {  // known by now
        std::ranges::fill(values, 1.0F);
        runtime.allreduce(std::span(values), {.name = "w", .op = ReduceOp::sum});
        EXPECT_TRUE(all_are(values, 2.0F));
      }
      const std::span<float> mine = std::span(values).first(runtime.rank() == round % 2 ? 409598 : 409600);
      EXPECT_EQ(thrown_by<MismatchError>([&] { runtime.allreduce(mine, {.name = "w", .op = ReduceOp::sum}); }),
                round % 2 == 0 ? "allreduce 'w': shapes differ: [0] float32[409598]; [1] float32[409600]"
                               : "allreduce 'w': shapes differ: [0] float32[409600]; [1] float32[409598]");
      // The wrong one again: both have said it before.
      EXPECT_NE(thrown_by<MismatchError>([&] { runtime.allreduce(mine, {.name = "w", .op = ReduceOp::sum}); }), "");
    }
  });
}

TEST(Mismatch, R18_TheTextIsTheSameByDefault) {
  expect_mismatch(3, "allreduce 'x': shapes differ: [0,1] float32[32]; [2] float32[38]", [](Runtime& runtime) {
    std::vector<float> values = ones(runtime.rank() == 2 ? 38 : 32);
    runtime.allreduce(std::span(values), {.name = "x"});
  });
}

TEST(Mismatch, R19_UnlikeReduceOpsAreNamedInWords) {
  expect_mismatch(2, "allreduce 'x': reduce op differs: [0] Sum; [1] Average", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    runtime.allreduce(std::span(values), {.name = "x", .op = runtime.rank() == 0 ? ReduceOp::sum : ReduceOp::average});
  });
}

TEST(Mismatch, R19_UnlikeScales) {
  expect_mismatch(2, "allreduce 'x': prescale differs: [0] 1; [1] 0.5", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    runtime.allreduce(std::span(values), {.name = "x", .prescale = runtime.rank() == 0 ? 1.0 : 0.5});
  });
  expect_mismatch(3, "allreduce 'x': postscale differs: [0,2] 1; [1] 0.25", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    runtime.allreduce(std::span(values), {.name = "x", .postscale = runtime.rank() == 1 ? 0.25 : 1.0});
  });
}

TEST(Mismatch, R19_UnlikeRoots) {
  expect_mismatch(2, "broadcast 'x': root rank differs: [0] 0; [1] 1", [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    runtime.broadcast(std::span(values), {.name = "x", .root_rank = runtime.rank()});
  });
}

TEST(Mismatch, UnlikeDtypes) {
  expect_mismatch(3, "allreduce 'x': dtypes differ: [0,1] float32[4]; [2] int32[4]", [](Runtime& runtime) {
    std::vector<float> floats(4);
    std::vector<std::int32_t> integers(4);
    runtime.allreduce(runtime.rank() == 2 ? TensorView(std::span(integers)) : TensorView(std::span(floats)),
                      {.name = "x"});
  });
}

TEST(Mismatch, AllgatherComparesAllButTheFirstDimension) {
  expect_mismatch(2, "allgather 'x': shapes differ: [0] float32[?, 3]; [1] float32[?, 4]", [](Runtime& runtime) {
    std::vector<float> values = ones(12);
    const Shape shape = runtime.rank() == 0 ? Shape{4, 3} : Shape{3, 4};
    static_cast<void>(runtime.allgather(TensorView(std::span(values), shape), {.name = "x"}));
  });
}

TEST(Mismatch, OtherOperationsInFlightAreNotConcerned) {
  run_world(3, [](Runtime& runtime) {
    std::vector<std::vector<float>> right(20, ones(50));
    std::vector<Handle> handles;
    std::vector<float> wrong = ones(runtime.rank() == 2 ? 1 : 2);
    for (std::size_t i = 0; i < right.size(); ++i) {
      handles.push_back(
          runtime.allreduce_async(std::span(right[i]), {.name = "right." + std::to_string(i), .op = ReduceOp::sum}));
      if (i == 10) handles.push_back(runtime.allreduce_async(std::span(wrong), {.name = "wrong"}));
    }
    EXPECT_EQ(thrown_by<MismatchError>([&] { handles[11].wait(); }),
              "allreduce 'wrong': shapes differ: [0,1] float32[2]; [2] float32[1]");
    for (std::size_t i = 0; i < handles.size(); ++i) {
      if (i != 11) handles[i].wait();
    }
    for (const auto& values : right) EXPECT_TRUE(all_are(values, 3.0F));
  });
}

// ---- names

TEST(Names, R20_ANameInFlightIsRefusedAtOnceAndTheFirstHandleIsRight) {
  std::latch tried(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> first = ones(4);
    std::vector<float> second(4, 5.0F);
    if (runtime.rank() == 1) tried.wait();
    const Handle handle = runtime.allreduce_async(std::span(first), {.name = "w", .op = ReduceOp::sum});
    if (runtime.rank() == 0) {
      EXPECT_THAT(
          thrown_by<DuplicateNameError>([&] { return runtime.allreduce_async(std::span(second), {.name = "w"}); }),
          MatchesRegex("allreduce 'w': the name is still in flight \\(allreduce, handle 1, submitted .* ms ago\\)"));
      EXPECT_NE(thrown_by<DuplicateNameError>([&] { runtime.broadcast(std::span(second), {.name = "w"}); }), "");
      tried.count_down();
    }
    handle.wait();
    EXPECT_TRUE(all_are(first, 2.0F));
    EXPECT_TRUE(all_are(second, 5.0F));
    expect_sum_works(runtime, "w");
  });
}

TEST(Names, R26_AreOpaqueBytes) {
  const std::vector<std::string> names{"g:1",
                                       "g:2",
                                       "0:g:1",
                                       std::string(4096, 'n'),
                                       std::string(max_name_bytes, 'm'),
                                       "with 'quotes' and \"more\"",
                                       "two\nlines",
                                       "\xce\xb3\xcf\x81\xce\xb1\xce\xb4\xce\xad\xce\xbd\xcf\x84",
                                       "\xff\xfe",
                                       " ",
                                       "{}%s",
                                       "barrier.noname.0"};
  run_world(3, [&](Runtime& runtime) {
    std::vector<std::vector<double>> values;
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < names.size(); ++i) values.emplace_back(3, static_cast<double>(i) + runtime.rank());
    for (std::size_t k = 0; k < names.size(); ++k) {
      const std::size_t i =
          (k + 5 * static_cast<std::size_t>(runtime.rank())) % names.size();  // another order on each rank
      handles.push_back(runtime.allreduce_async(std::span(values[i]), {.name = names[i]}));
    }
    for (const Handle& handle : handles) handle.wait();
    for (std::size_t i = 0; i < names.size(); ++i)
      EXPECT_TRUE(all_are(values[i], static_cast<double>(i) + 1.0)) << names[i];
  });
}

TEST(Names, R26_WithNulOrTooLongAreRefusedAtOnce) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    using namespace std::string_literals;
    const std::string too_long(max_name_bytes + 1, 'x');
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.allreduce(std::span(values), {.name = "a\0b"s}); }),
              "allreduce: the name holds a NUL byte");
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.barrier({.name = "\0"s}); }),
              "barrier: the name holds a NUL byte");
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.broadcast(std::span(values), {.name = too_long}); }),
              "broadcast: the name has 8193 bytes, at most 8192 are allowed");
    expect_sum_works(runtime, "x");
  });
}

TEST(Names, WithQuotesStayReadableInErrors) {
  expect_mismatch(2, "allreduce 'it's \"x\"\n': shapes differ: [0] float32[1]; [1] float32[2]", [](Runtime& runtime) {
    std::vector<float> values = ones(runtime.rank() == 0 ? 1 : 2);
    runtime.allreduce(std::span(values), {.name = "it's \"x\"\n"});
  });
}

TEST(Names, OneNameMayChangeShapeDtypeAndOperationFromCallToCall) {
  Program program(3, {});
  for (int i = 0; i < 40; ++i) {
    const DataType dtype = all_dtypes[i * 5 % data_type_count];
    program.allreduce(dtype, {i % 7, 2}, all_reduce_ops[i % 5], i % 2 == 0);
    program.broadcast(dtype, {i % 5}, i % 3, false);
    program.allgather(dtype, {1, i % 3}, {i % 4, 0, 2});
  }
  std::vector<Case> cases = program.cases();
  for (Case& c : cases) c.name = "x";
  run_world(3, [&](Runtime& runtime) { run_one_by_one(runtime, cases, 1); });
}

TEST(Names, WithoutThemOperationsArePairedInTheOrderOfSubmission) {
  run_world(2, [](Runtime& runtime) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> a(2, 1.0F);
      std::vector<float> b(2, 5.0F);
      std::vector<double> c(3, 7.0);
      const std::vector<float> d = ones(1);
      const Handle first = runtime.allreduce_async(std::span(a), {.op = ReduceOp::sum});
      const Handle second = runtime.allreduce_async(std::span(b), {.op = ReduceOp::sum});
      const Handle third = runtime.broadcast_async(std::span(c), {.root_rank = 1});
      const Handle fourth = runtime.allgather_async(std::span(d));
      (runtime.rank() == 0 ? third : first).wait();
      fourth.wait();
      second.wait();
      first.wait();
      third.wait();
      EXPECT_TRUE(all_are(a, 2.0F));
      EXPECT_TRUE(all_are(b, 10.0F));
      EXPECT_TRUE(all_are(c, 7.0));
    }
  });
}

TEST(Names, TooManyOperationsWithoutAreRefused) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(5000);
    std::vector<Handle> handles;
    if (runtime.rank() == 0) {
      for (std::size_t i = 0; i < 4096; ++i)
        handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.op = ReduceOp::sum}));
      EXPECT_EQ(thrown_by<DuplicateNameError>(
                    [&] { return runtime.allreduce_async(std::span(values).last(1), {.op = ReduceOp::sum}); }),
                "allreduce: 4096 operations without a name are in flight; wait for some, or name them");
      expect_sum_works(runtime, "named");
    } else {
      expect_sum_works(runtime, "named");
      for (std::size_t i = 0; i < 4096; ++i)
        handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.op = ReduceOp::sum}));
    }
    for (const Handle& handle : handles) handle.wait();
    EXPECT_TRUE(all_are(std::vector<float>(values.begin(), values.begin() + 4096), 2.0F));
    // The refused one has not shifted the pairing of those that follow.
    std::vector<float> first{1};
    std::vector<float> second{10};
    const Handle one = runtime.allreduce_async(std::span(first), {.op = ReduceOp::sum});
    const Handle other = runtime.allreduce_async(std::span(second), {.op = ReduceOp::sum});
    one.wait();
    other.wait();
    EXPECT_EQ(first[0], 2.0F);
    EXPECT_EQ(second[0], 20.0F);
  });
}

TEST(Names, FiveThousandTensorsInOneStep) {
  run_world(2, [](Runtime& runtime) {
    std::vector<std::vector<float>> values(5000);
    std::vector<Handle> handles(values.size());
    for (int step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i].assign(1 + i % 9, static_cast<float>(i));
      for (std::size_t k = 0; k < values.size(); ++k) {
        const std::size_t i = runtime.rank() == 0 ? k : values.size() - 1 - k;
        handles[i] =
            runtime.allreduce_async(std::span(values[i]), {.name = "layer." + std::to_string(i), .op = ReduceOp::sum});
      }
      for (const Handle& handle : handles) handle.wait();
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(all_are(values[i], 2.0F * static_cast<float>(i)));
    }
  });
}

TEST(Names, R72_HundredsOfLongNamesInOneStep) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    Config config;
    config.test_topology = hosts;
    run_world(2, config, [](Runtime& runtime) {
      std::vector<double> values(400, 1.0);
      std::vector<Handle> handles;
      for (std::size_t i = 0; i < values.size(); ++i) {
        handles.push_back(
            runtime.allreduce_async(std::span(values).subspan(i, 1),
                                    {.name = std::string(8000, 'x') + std::to_string(i), .op = ReduceOp::sum}));
      }
      for (const Handle& handle : handles) handle.wait();
      EXPECT_TRUE(all_are(values, 2.0));
    });
  }
}

// ---- stalls

Config stall_config(std::chrono::duration<double> warning, std::chrono::duration<double> shutdown) {
  Config config;
  config.stall_warning = warning;
  config.stall_shutdown = shutdown;
  return config;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Stall, R01_TheErrorShowsBothSidesOnAllRanks) {
  testing::internal::CaptureStderr();
  std::latch all_failed(4);
  run_world(4, stall_config(50ms, 500ms), [&](Runtime& runtime) {
    std::vector<std::int32_t> flag(1);
    std::vector<float> gradient(8);
    const Handle handle = runtime.rank() == 3 ? runtime.allreduce_async(std::span(flag), {.name = "have_more"})
                                              : runtime.allreduce_async(std::span(gradient), {.name = "grad"});
    const std::string text = thrown_by<StallError>([&] { handle.wait(); });
    EXPECT_THAT(text, StartsWith(runtime.rank() == 3 ? "allreduce 'have_more': stalled for "
                                                     : "allreduce 'grad': stalled for "));
    if (runtime.rank() == 3) {
      EXPECT_THAT(text, HasSubstr("submitted by [3], waits for [0,1,2]"));
    } else {
      EXPECT_THAT(text, HasSubstr("submitted by [0,1,2], waits for [3]"));
    }
    all_failed.arrive_and_wait();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log, AllOf(HasSubstr("'have_more' (allreduce int32[1]) submitted by [3] "), HasSubstr("s ago, waits for [0,1,2]"),
                 HasSubstr("'grad' (allreduce float32[8]) submitted by [0,1,2] "), HasSubstr("s ago, waits for [3]")));
}

TEST(Stall, R03_TheReportSaysWhereTheMissingRankStands) {
  testing::internal::CaptureStderr();
  std::latch all_failed(2);
  run_world(2, stall_config(100ms, 1s), [&](Runtime& runtime) {
    std::vector<float> a = ones(2);
    std::vector<float> b = ones(2);
    const Handle first = runtime.broadcast_async(std::span(a), {.name = "a"});
    const Handle second = runtime.rank() == 0 ? runtime.broadcast_async(std::span(b), {.name = "b"})
                                              : runtime.allreduce_async(std::span(b), {.name = "c"});
    first.wait();
    EXPECT_THAT(thrown_by<StallError>([&] { second.wait(); }),
                StartsWith(runtime.rank() == 0 ? "broadcast 'b': stalled" : "allreduce 'c': stalled"));
    all_failed.arrive_and_wait();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::AnyOf(HasSubstr("rank 1 is at 'c', which waits for [0]"),
                                  HasSubstr("rank 0 is at 'b', which waits for [1]")));
}

TEST(Stall, R04_R05_WarningsAreRareAndALateRankIsWelcome) {
  const auto warning = 20ms;
  testing::internal::CaptureStderr();
  const auto start = Clock::now();
  run_world(4, stall_config(warning, 1h), [&](Runtime& runtime) {
    if (runtime.rank() == 0) std::this_thread::sleep_for(50 * warning);
    expect_sum_works(runtime, "g");
    runtime.barrier();
  });
  const double waited = std::chrono::duration<double>(Clock::now() - start) / warning;
  const std::string log = testing::internal::GetCapturedStderr();
  const int lines = count_of(log, "stall");
  EXPECT_GE(lines, 1) << log;
  EXPECT_LE(lines, std::log2(waited) + 3) << log;  // at each doubling; the barrier may wait as well
  EXPECT_THAT(log, HasSubstr("rank 0 has nothing in flight"));
}

TEST(Stall, R06_AShutdownTimeBelowTheWarningTimeCounts) {
  std::latch given_up(1);
  run_world(2, stall_config(60s, 200ms), [&](Runtime& runtime) {
    if (runtime.rank() == 1) {
      given_up.wait();
      return;
    }
    std::vector<float> values = ones(1);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    const std::string text = thrown_by<StallError>([&] { handle.wait(); });
    EXPECT_THAT(text, AllOf(StartsWith("allreduce 'x': stalled for "), HasSubstr("submitted by [0], waits for [1]"),
                            HasSubstr("rank 1 has nothing in flight")));
    EXPECT_EQ(thrown_by<StallError>([&] { handle.wait(); }), text);
    given_up.count_down();
  });
}

TEST(Stall, ZeroMeansNever) {
  testing::internal::CaptureStderr();
  run_world(2, stall_config(0s, 0s), [&](Runtime& runtime) {
    if (runtime.rank() == 1) std::this_thread::sleep_for(200ms);
    expect_sum_works(runtime, "x");
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Stall, R09_NamesThatDifferByRankAreGuessed) {
  testing::internal::CaptureStderr();
  std::latch all_failed(2);
  run_world(2, stall_config(100ms, 1s), [&](Runtime& runtime) {
    std::vector<float> values = ones(12);
    const TensorView view{std::span(values), Shape{3, 4}};
    EXPECT_NE(thrown_by<StallError>([&] { runtime.allreduce(view, {.name = runtime.rank() == 0 ? "m/w" : "m_1/w"}); }),
              "");
    all_failed.arrive_and_wait();
  });
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AnyOf(
          HasSubstr("'m/w' [0] and 'm_1/w' [1] have the same operation, dtype and shape: do names differ by rank?"),
          HasSubstr("'m_1/w' [1] and 'm/w' [0] have the same operation, dtype and shape: do names differ by rank?")));
}

TEST(Stall, ABarrierHasAKindAndNameOfItsOwn) {
  std::latch given_up(1);
  run_world(2, stall_config(0s, 200ms), [&](Runtime& runtime) {
    if (runtime.rank() == 0) {
      given_up.wait();
      return;
    }
    EXPECT_THAT(thrown_by<StallError>([&] { runtime.barrier(); }),
                AllOf(StartsWith("barrier 'barrier.noname.0': stalled for "),
                      HasSubstr("'barrier.noname.0' (barrier) submitted by [1] ")));
    EXPECT_THAT(thrown_by<StallError>([&] { runtime.barrier({.name = "epoch end"}); }),
                StartsWith("barrier 'epoch end': stalled for "));
    given_up.count_down();
  });
}

TEST(Stall, ARankThatComesAfterTheErrorPairsWithTheNextAttempt) {
  std::latch given_up(1);
  run_world(2, stall_config(0s, 200ms), [&](Runtime& runtime) {
    std::vector<float> values = ones(3);
    if (runtime.rank() == 0) {
      EXPECT_NE(thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }), "");
      given_up.count_down();
    } else {
      given_up.wait();
    }
    while (true) {  // who comes alone again waits again
      try {
        runtime.allreduce(std::span(values), {.name = "x", .op = ReduceOp::sum});
        break;
      } catch (const StallError&) {
      }
    }
    EXPECT_TRUE(all_are(values, 2.0F));
  });
}

// ---- threads

TEST(Threads, R27_EachWithItsOwnPrefixGetsItsOwnValues) {
  run_world(2, [](Runtime& runtime) {
    const auto errors = run_threads(2, [&](int thread) {
      for (int round = 0; round < repetitions(100); ++round) {
        for (int k = 0; k < 10; ++k) {
          std::vector<double> values(3, 1000 * thread + 10 * round + k + runtime.rank());
          runtime.allreduce(std::span(values), {.name = std::to_string(thread) + "/w" + std::to_string(k)});
          ASSERT_TRUE(all_are(values, 1000 * thread + 10 * round + k + 0.5));
        }
      }
    });
    for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
  });
}

TEST(Threads, R27_WithoutAPrefixTheSecondGetsACleanErrorAndNoDataMix) {
  std::latch refused(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> first(4, 1.0F);
    std::vector<float> second(4, 100.0F);
    if (runtime.rank() == 1) refused.wait();
    const Handle handle = runtime.allreduce_async(std::span(first), {.name = "w0", .op = ReduceOp::sum});
    if (runtime.rank() == 0) {
      std::thread other([&] {
        EXPECT_NE(thrown_by<DuplicateNameError>([&] { runtime.allreduce(std::span(second), {.name = "w0"}); }), "");
      });
      other.join();
      refused.count_down();
    }
    handle.wait();
    EXPECT_TRUE(all_are(first, 2.0F));
    EXPECT_TRUE(all_are(second, 100.0F));
  });
}

TEST(Threads, R75_EightWithManySmallOperationsEach) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    Config config;
    config.test_topology = hosts;
    run_world(2, config, [](Runtime& runtime) {
      const auto errors = run_threads(8, [&](int thread) {
        for (int round = 0; round < repetitions(50); ++round) {
          const std::string name = std::to_string(thread) + "." + std::to_string(round % 7);
          std::vector<std::int64_t> sum(4, thread * round);
          std::vector<float> root(5, static_cast<float>(100 * runtime.rank() + thread));
          const Handle a = runtime.allreduce_async(std::span(sum), {.name = name + "a", .op = ReduceOp::sum});
          const Handle b = runtime.broadcast_async(std::span(root), {.name = name + "b", .root_rank = 1});
          const Tensor all = runtime.allgather(
              std::span<const std::int64_t>(std::vector<std::int64_t>{thread, runtime.rank()}), {.name = name + "c"});
          b.wait();
          a.wait();
          ASSERT_TRUE(all_are(sum, 2 * thread * round));
          ASSERT_TRUE(all_are(root, static_cast<float>(100 + thread)));
          ASSERT_THAT(all.values<std::int64_t>(), testing::ElementsAre(thread, 0, thread, 1));
        }
      });
      for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
    });
  }
}

// A waiter that nobody wakes looks by itself, but only after a second.
TEST(Threads, NobodySleepsThroughNews) {
  std::atomic<int> slow{0};
  run_world(4, [&](Runtime& runtime) {
    run_threads(4, [&](int thread) {
      std::vector<float> values(10);
      for (int round = 0; round < repetitions(1000); ++round) {
        const auto start = Clock::now();
        runtime.allreduce(std::span(values), {.name = std::to_string(thread)});
        if (Clock::now() - start > 900ms) slow.fetch_add(1);
      }
    });
  });
  EXPECT_LE(slow.load(), 1) << "the machine may be busy once";
}

TEST(Threads, SeveralMayWaitForOneHandle) {
  std::latch waiting(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(100);
    if (runtime.rank() == 1) waiting.wait();
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    run_threads(4, [&](int thread) {
      if (thread == 3 && runtime.rank() == 0) {
        std::this_thread::sleep_for(20ms);
        waiting.count_down();
      }
      handle.wait();
      EXPECT_TRUE(handle.ready());
      EXPECT_TRUE(all_are(values, 2.0F));
    });
  });
}

}  // namespace
}  // namespace hvd::test
