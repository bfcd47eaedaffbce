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
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
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

std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1.0F); }

void expect_sum_works(Runtime& runtime, std::string_view name, std::size_t count = 4) {
  std::vector<float> values = ones(count);
  runtime.allreduce(std::span(values), {.name = name, .op = ReduceOp::sum});
  EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(runtime.size())));
}

// Every rank calls its wrong operation; all must throw this text, and a right one under that name must work afterwards.
void expect_mismatch(int size, const std::string& text, const std::function<void(Runtime&)>& wrong, const Config& config = {}) {
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
    runtime.allreduce(runtime.rank() == 2 ? TensorView(std::span(integers)) : TensorView(std::span(floats)), {.name = "x"});
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
      handles.push_back(runtime.allreduce_async(std::span(right[i]), {.name = "right." + std::to_string(i), .op = ReduceOp::sum}));
      if (i == 10) handles.push_back(runtime.allreduce_async(std::span(wrong), {.name = "wrong"}));
    }
    EXPECT_EQ(thrown_by<MismatchError>([&] { handles[11].wait(); }), "allreduce 'wrong': shapes differ: [0,1] float32[2]; [2] float32[1]");
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
      EXPECT_THAT(thrown_by<DuplicateNameError>([&] { return runtime.allreduce_async(std::span(second), {.name = "w"}); }),
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
  const std::vector<std::string> names{"g:1", "g:2", "0:g:1", std::string(4096, 'n'), std::string(max_name_bytes, 'm'),
                                       "with 'quotes' and \"more\"", "two\nlines", "\xce\xb3\xcf\x81\xce\xb1\xce\xb4\xce\xad\xce\xbd\xcf\x84", "\xff\xfe", " ", "{}%s",
                                       "barrier.noname.0"};
  run_world(3, [&](Runtime& runtime) {
    std::vector<std::vector<double>> values;
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < names.size(); ++i) values.emplace_back(3, static_cast<double>(i) + runtime.rank());
    for (std::size_t k = 0; k < names.size(); ++k) {
      const std::size_t i = (k + 5 * static_cast<std::size_t>(runtime.rank())) % names.size();  // another order on each rank
      handles.push_back(runtime.allreduce_async(std::span(values[i]), {.name = names[i]}));
    }
    for (const Handle& handle : handles) handle.wait();
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_TRUE(all_are(values[i], static_cast<double>(i) + 1.0)) << names[i];
  });
}

TEST(Names, R26_WithNulOrTooLongAreRefusedAtOnce) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    using namespace std::string_literals;
    const std::string too_long(max_name_bytes + 1, 'x');
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.allreduce(std::span(values), {.name = "a\0b"s}); }),
              "allreduce: the name holds a NUL byte");
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { runtime.barrier({.name = "\0"s}); }), "barrier: the name holds a NUL byte");
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
      for (std::size_t i = 0; i < 4096; ++i) handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.op = ReduceOp::sum}));
      EXPECT_EQ(thrown_by<DuplicateNameError>([&] { return runtime.allreduce_async(std::span(values).last(1), {.op = ReduceOp::sum}); }),
                "allreduce: 4096 operations without a name are in flight; wait for some, or name them");
      expect_sum_works(runtime, "named");
    } else {
      expect_sum_works(runtime, "named");
      for (std::size_t i = 0; i < 4096; ++i) handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.op = ReduceOp::sum}));
    }
    for (const Handle& handle : handles) handle.wait();
    EXPECT_TRUE(all_are(std::vector<float>(values.begin(), values.begin() + 4096), 2.0F));
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
        handles[i] = runtime.allreduce_async(std::span(values[i]), {.name = "layer." + std::to_string(i), .op = ReduceOp::sum});
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
        handles.push_back(runtime.allreduce_async(std::span(values).subspan(i, 1), {.name = std::string(8000, 'x') + std::to_string(i), .op = ReduceOp::sum}));
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
    EXPECT_THAT(text, StartsWith(runtime.rank() == 3 ? "allreduce 'have_more': stalled for " : "allreduce 'grad': stalled for "));
    if (runtime.rank() == 3) {
      EXPECT_THAT(text, HasSubstr("submitted by [3], waits for [0,1,2]"));
    } else {
      EXPECT_THAT(text, HasSubstr("submitted by [0,1,2], waits for [3]"));
    }
    all_failed.arrive_and_wait();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("'have_more' (allreduce int32[1]) submitted by [3] "), HasSubstr("s ago, waits for [0,1,2]"),
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
    EXPECT_THAT(thrown_by<StallError>([&] { second.wait(); }), StartsWith(runtime.rank() == 0 ? "broadcast 'b': stalled" : "allreduce 'c': stalled"));
    all_failed.arrive_and_wait();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::AnyOf(HasSubstr("rank 1 is at 'c', which waits for [0]"), HasSubstr("rank 0 is at 'b', which waits for [1]")));
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
    EXPECT_THAT(text, AllOf(StartsWith("allreduce 'x': stalled for "), HasSubstr("submitted by [0], waits for [1]"), HasSubstr("rank 1 has nothing in flight")));
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
    EXPECT_NE(thrown_by<StallError>([&] { runtime.allreduce(view, {.name = runtime.rank() == 0 ? "m/w" : "m_1/w"}); }), "");
    all_failed.arrive_and_wait();
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AnyOf(HasSubstr("'m/w' [0] and 'm_1/w' [1] have the same operation, dtype and shape: do names differ by rank?"),
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
                AllOf(StartsWith("barrier 'barrier.noname.0': stalled for "), HasSubstr("'barrier.noname.0' (barrier) submitted by [1] ")));
    EXPECT_THAT(thrown_by<StallError>([&] { runtime.barrier({.name = "epoch end"}); }), StartsWith("barrier 'epoch end': stalled for "));
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
      std::thread other([&] { EXPECT_NE(thrown_by<DuplicateNameError>([&] { runtime.allreduce(std::span(second), {.name = "w0"}); }), ""); });
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
          const Tensor all = runtime.allgather(std::span<const std::int64_t>(std::vector<std::int64_t>{thread, runtime.rank()}), {.name = name + "c"});
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

// ---- what is wrong on one rank alone

TEST(Arguments, AreCheckedAtSubmissionOnTheCallerAlone) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(6);
    const auto refused = [](const auto& call) { return thrown_by<InvalidArgumentError>(call); };
    const std::span<float> span(values);
    // One rank alone is enough: nobody waits for anybody.
    if (runtime.rank() == 1) {
      EXPECT_EQ(refused([&] { runtime.allreduce(TensorView(nullptr, Shape{3}, DataType::f32), {.name = "x"}); }), "allreduce 'x': input float32[3] has no memory");
      EXPECT_EQ(refused([&] { runtime.allreduce(span, TensorView(nullptr, Shape{6}, DataType::f32), {.name = "x"}); }), "allreduce 'x': output float32[6] has no memory");
      EXPECT_EQ(refused([&] { return runtime.allgather(ConstTensorView(nullptr, Shape{3}, DataType::u8)); }), "allgather: input uint8[3] has no memory");
      EXPECT_EQ(refused([&] { runtime.allreduce(span.first(4), span.last(4), {.name = "x"}); }), "allreduce 'x': input and output overlap in part");
      EXPECT_EQ(refused([&] { runtime.broadcast(span.last(4), span.first(4), {.name = "x", .root_rank = 1}); }), "broadcast 'x': input and output overlap in part");
      EXPECT_EQ(refused([&] { runtime.allreduce(span.first(4), span.first(3), {.name = "x"}); }), "allreduce 'x': input is float32[4], output float32[3]");
      std::vector<double> doubles(6);
      EXPECT_EQ(refused([&] { runtime.allreduce(span, std::span(doubles), {.name = "x"}); }), "allreduce 'x': input is float32[6], output float64[6]");
      EXPECT_EQ(refused([&] { runtime.broadcast(span, {.name = "x", .root_rank = 2}); }), "broadcast 'x': root rank 2 is not in 0..1");
      EXPECT_EQ(refused([&] { runtime.broadcast(span, {.name = "x", .root_rank = -1}); }), "broadcast 'x': root rank -1 is not in 0..1");
      EXPECT_EQ(refused([&] { runtime.barrier({.name = "x", .process_set = {3}}); }), "barrier 'x': process set 3 does not exist");
      EXPECT_EQ(refused([&] { return runtime.allreduce_async(span, {.process_set = {3}}); }), "allreduce: process set 3 does not exist");
      EXPECT_THAT(refused([&] { runtime.allreduce(TensorView(values.data(), Shape{6}, DataType::f32, {Device::Kind::gpu, 1}), {.name = "x"}); }),
                  StartsWith("allreduce 'x': input is on gpu 1"));
      EXPECT_NE(refused([&] { runtime.allreduce(TensorView(span, Shape{7}), {.name = "x"}); }), "");
    }
    EXPECT_TRUE(all_are(values, 1.0F));
    expect_sum_works(runtime, "x");
  });
}

// ---- handles

TEST(Handles, WaitForGivesUpAndTheOperationGoesOn) {
  std::latch gave_up(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(4);
    if (runtime.rank() == 1) gave_up.wait();
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    if (runtime.rank() == 0) {
      EXPECT_FALSE(handle.wait_for(0s));
      EXPECT_FALSE(handle.wait_for(-1s));
      EXPECT_FALSE(handle.wait_for(20ms));
      EXPECT_FALSE(handle.ready());
      gave_up.count_down();
    }
    EXPECT_TRUE(handle.wait_for(40s));
    EXPECT_TRUE(handle.ready());
    EXPECT_TRUE(handle.wait_for(0s));
    EXPECT_TRUE(all_are(values, 2.0F));
  });
}

TEST(Handles, WaitForEverIsNoOverflow) {
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    EXPECT_TRUE(handle.wait_for(std::chrono::duration<double>::max()));
  });
}

TEST(Handles, AreCopiesOfOneOperationAndMayBeWaitedForAgain) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    const Handle copy = handle;  // NOLINT(performance-unnecessary-copy-initialization): that is the point
    copy.wait();
    handle.wait();
    handle.wait();
    EXPECT_TRUE(copy.ready());
    EXPECT_TRUE(all_are(values, 2.0F));
    const Handle gather = runtime.allgather_async(std::span<const float>(values), {.name = "y"});
    const Tensor taken = gather.take_output();
    EXPECT_EQ(taken.shape(), Shape({8}));
    EXPECT_EQ(gather.take_output().data(), nullptr) << "taken already";
    EXPECT_EQ(handle.take_output().data(), nullptr) << "has none";
  });
}

TEST(Handles, AnErrorIsTheSameAtEveryWait) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(runtime.rank() == 0 ? 1 : 2);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    const std::string text = thrown_by<MismatchError>([&] { handle.wait(); });
    EXPECT_EQ(thrown_by<MismatchError>([&] { handle.wait(); }), text);
    EXPECT_EQ(thrown_by<MismatchError>([&] { return handle.wait_for(1s); }), text);
    EXPECT_EQ(thrown_by<MismatchError>([&] { return handle.take_output(); }), text);
    EXPECT_TRUE(handle.ready());
  });
}

TEST(Handles, AnEmptyOneIsAnErrorToWaitFor) {
  const Handle empty;
  EXPECT_FALSE(empty);
  EXPECT_TRUE(empty.ready());
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { empty.wait(); }), "the handle is empty");
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return empty.wait_for(1s); }), "the handle is empty");
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return empty.take_output(); }), "the handle is empty");
}

TEST(Handles, DroppingOneLeavesTheOperationAlone) {
  run_world(3, [](Runtime& runtime) {
    std::vector<std::vector<float>> values(50, ones(100));
    for (std::size_t i = 0; i < values.size(); ++i) {
      static_cast<void>(runtime.allreduce_async(std::span(values[i]), {.name = std::to_string(i), .op = ReduceOp::sum}));
    }
    runtime.barrier();  // batches run in the order in which they became ready
    for (const auto& value : values) EXPECT_TRUE(all_are(value, 3.0F));
  });
}

TEST(Handles, BecomeReadyThoughNobodyWaits) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    Config config;
    config.test_topology = hosts;
    run_world(2, config, [](Runtime& runtime) {
      std::vector<float> values = ones(100'000);
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
      while (!handle.ready()) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(all_are(values, 2.0F));
    });
  }
}

// ---- observers

class Recorder : public Observer {
 public:
  struct Seen {
    Stage stage;
    Operation operation;
    std::int64_t bytes;
    std::uint64_t batch;
    Clock::time_point time;
    std::string error;
  };

  void on_event(const TensorEvent& event) override {
    const std::scoped_lock lock(mutex_);
    seen_[std::string(event.name)].push_back({event.stage, event.operation, event.bytes, event.batch, event.time, std::string(event.error)});
  }
  std::map<std::string, std::vector<Seen>> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(seen_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Seen>> seen_;
};

// submitted, negotiated, then what there was of packed, reduced and unpacked in this order, then done; or failed after submitted.
void expect_legal(const std::string& name, const std::vector<Recorder::Seen>& events) {
  SCOPED_TRACE("operation '" + name + "'");
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.front().stage, Stage::submitted);
  EXPECT_EQ(events.front().batch, 0U);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].stage, events[i].stage);
    EXPECT_LE(events[i - 1].time, events[i].time);
    EXPECT_EQ(events[i].operation, events[0].operation);
    EXPECT_EQ(events[i].bytes, events[0].bytes);
  }
  if (events.back().stage == Stage::failed) {
    EXPECT_EQ(events.size(), 2U);
    EXPECT_NE(events.back().error, "");
    return;
  }
  EXPECT_EQ(events.back().stage, Stage::done);
  EXPECT_EQ(events[1].stage, Stage::negotiated);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i].batch, events[1].batch);
    EXPECT_GT(events[i].batch, 0U);
    EXPECT_EQ(events[i].error, "");
  }
}

TEST(Observers, SeeTheStagesOfEveryOperationInOrder) {
  Config hosts;
  hosts.test_topology = {2, 1};
  for (const Config& config : {Config{}, hosts}) {
    Program program(3, config.test_topology);
    for (int i = 0; i < 20; ++i) {
      program.allreduce(DataType::f32, {i * i}, ReduceOp::sum, i % 2 == 0);
      program.broadcast(DataType::f64, {7 * i}, i % 3, false);
      program.allgather(DataType::i8, {1, 3}, {i, 0, 2});
    }
    run_world(3, config, [&](Runtime& runtime) {
      const auto recorder = std::make_shared<Recorder>();
      runtime.add_observer(recorder);
      run_together(runtime, program.cases());
      runtime.barrier({.name = "the end"});
      std::vector<float> wrong = ones(runtime.rank() == 0 ? 1 : 2);
      const std::string text = thrown_by<MismatchError>([&] { runtime.allreduce(std::span(wrong), {.name = "wrong"}); });

      const auto seen = recorder->take();
      EXPECT_EQ(seen.size(), program.cases().size() + 2);
      for (const auto& [name, events] : seen) expect_legal(name, events);
      for (const Case& c : program.cases()) {
        const auto& events = seen.at(c.name);
        EXPECT_EQ(events[0].operation, c.operation);
        EXPECT_EQ(events[0].bytes, static_cast<std::int64_t>(c.inputs[static_cast<std::size_t>(runtime.rank())].bytes().size()));
      }
      EXPECT_EQ(seen.at("the end").front().operation, Operation::barrier);
      EXPECT_EQ(seen.at("wrong").back().stage, Stage::failed);
      EXPECT_EQ(seen.at("wrong").back().error, text);
    });
  }
}

TEST(Observers, SeeAnOperationWithoutANameUnderOneName) {
  run_world(2, [&](Runtime& runtime) {
    const auto recorder = std::make_shared<Recorder>();
    runtime.add_observer(recorder);
    std::vector<float> values = ones(3);
    runtime.allreduce(std::span(values));
    runtime.barrier();
    const auto seen = recorder->take();
    EXPECT_EQ(seen.size(), 2U);
    for (const auto& [name, events] : seen) expect_legal(name, events);
  });
}

TEST(Observers, SeeNothingOfASubmissionThatWasRefused) {
  std::latch refused(1);
  run_world(2, [&](Runtime& runtime) {
    const auto recorder = std::make_shared<Recorder>();
    runtime.add_observer(recorder);
    std::vector<float> values = ones(3);
    if (runtime.rank() == 1) refused.wait();
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    if (runtime.rank() == 0) {
      EXPECT_NE(thrown_by<DuplicateNameError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }), "");
      EXPECT_NE(thrown_by<InvalidArgumentError>([&] { runtime.broadcast(std::span(values), {.name = "y", .root_rank = 9}); }), "");
      refused.count_down();
    }
    handle.wait();
    const auto seen = recorder->take();
    EXPECT_EQ(seen.size(), 1U);
    for (const auto& [name, events] : seen) expect_legal(name, events);
  });
}

TEST(Observers, TwoSeeTheSame) {
  run_world(2, [&](Runtime& runtime) {
    const auto one = std::make_shared<Recorder>();
    const auto two = std::make_shared<Recorder>();
    runtime.add_observer(one);
    runtime.add_observer(two);
    expect_sum_works(runtime, "x");
    EXPECT_EQ(one->take().at("x").size(), two->take().at("x").size());
  });
}

}  // namespace
}  // namespace hvd::test
