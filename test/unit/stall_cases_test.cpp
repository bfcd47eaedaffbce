#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <chrono>
#include <latch>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../support/world.h"

// Operations that stall after they have started, that nobody waits for, or within a process set.
namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Config impatient(std::chrono::duration<double> shutdown) {
  Config config;
  config.stall_warning = 0s;
  config.stall_shutdown = shutdown;
  return config;
}

TEST(Stall, R08_AnOperationThatHasStartedAndHangsIsReportedAndFailsOnAllRanks) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    testing::internal::CaptureStderr();
    Config config = impatient(1s);
    config.stall_warning = 100ms;
    config.test_hang_op = "x:1";
    config.test_topology = hosts;
    std::latch all_failed(2);
    run_world(2, config, [&](Runtime& runtime) {
      expect_sum_works(runtime, "before");
      std::vector<float> values = ones(100);
      EXPECT_THAT(thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }),
                  HasSubstr("'x' is ready on all ranks and has not moved for "));
      all_failed.arrive_and_wait();
    });
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'x' is ready on all ranks and has not moved for "));
  }
}

TEST(Stall, R17_WithoutAWaiterTheNextCallOfTheRankThrows) {
  std::latch failed(1);
  run_world(2, impatient(200ms), [&](Runtime& runtime) {
    if (runtime.rank() == 1) return failed.wait();
    std::vector<float> values = ones(200);
    std::vector<float> others = ones(1);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    while (!handle.ready()) std::this_thread::sleep_for(10ms);  // user code, which waits for nothing
    EXPECT_THAT(thrown_by<StallError>([&] { return runtime.allreduce_async(std::span(others), {.name = "y"}); }),
                AllOf(StartsWith("allreduce 'x': stalled for "), HasSubstr("waits for [1]")));
    EXPECT_NE(thrown_by<StallError>([&] { handle.wait(); }), "");
    failed.count_down();
  });
}

TEST(Stall, R17_AfterItHasThrownOnceCallsWorkAgain) {
  std::latch told(1);
  run_world(2, impatient(300ms), [&](Runtime& runtime) {
    std::vector<float> values = ones(3);
    if (runtime.rank() == 0) {
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
      while (!handle.ready()) std::this_thread::sleep_for(10ms);
      EXPECT_NE(thrown_by<StallError>([&] { runtime.barrier(); }), "");
      told.count_down();
    }
    told.wait();
    expect_sum_works(runtime, "y");
  });
}

using StallDeathTest = testing::Test;

TEST(StallDeathTest, R17_UnderThePolicyAbortTheProcessEndsWithTheReport) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Config config = impatient(200ms);
  config.stall_policy = StallPolicy::abort;
  EXPECT_DEATH(run_world(2, config,
                         [](Runtime& runtime) {
                           std::vector<float> values = ones(200);
                           if (runtime.rank() == 0)
                             static_cast<void>(runtime.allreduce_async(std::span(values), {.name = "x"}));
                           std::this_thread::sleep_for(30s);
                         }),
               "'x': stalled for .*aborting");
}

TEST(Stall, R05_TheBoundMayBeSetForOneOperation) {
  std::latch failed(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(1);
    if (runtime.rank() == 0) {
      EXPECT_THAT(thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x", .timeout = 200ms}); }),
                  StartsWith("allreduce 'x': stalled for "));
      EXPECT_THAT(thrown_by<StallError>([&] { runtime.barrier({.name = "b", .timeout = 200ms}); }),
                  StartsWith("barrier 'b': stalled for "));
      failed.count_down();
    }
    failed.wait();
    expect_sum_works(runtime, "y");
  });
}

TEST(Stall, R06_TheSmallerOfBothBoundsHolds) {
  std::latch failed(1);
  run_world(2, impatient(200ms), [&](Runtime& runtime) {
    std::vector<float> values = ones(1);
    if (runtime.rank() == 1) return failed.wait();
    EXPECT_NE(thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x", .timeout = 1h}); }), "");
    failed.count_down();
  });
}

TEST(Stall, R06_ACallbackOnRankZeroIsToldEveryReport) {
  testing::internal::CaptureStderr();
  std::mutex mutex;
  std::vector<std::string> reports;
  std::latch reported(1);
  const auto config_of = [&](int rank) {
    Config config = impatient(0s);
    config.stall_warning = 50ms;
    if (rank == 0) {
      config.on_stall = [&](const std::string& report) {
        const std::scoped_lock lock(mutex);
        reports.push_back(report);
        if (reports.size() == 1) reported.count_down();
      };
    }
    return config;
  };
  const auto errors = run_ranks(2, config_of, [&](Runtime& runtime) {
    if (runtime.rank() == 0) reported.wait();
    expect_sum_works(runtime, "x");
  });
  for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(reports.empty());
  for (const std::string& report : reports) EXPECT_THAT(log, HasSubstr("warning: stall: " + report + "\n"));
  EXPECT_THAT(reports[0], AllOf(HasSubstr("'x' (allreduce float32[4]) submitted by [1] "), HasSubstr("waits for [0]")));
}

TEST(Stall, R06_TheCallbackOfARankIsToldOfWhatHasStartedThereAndHangs) {
  testing::internal::CaptureStderr();
  std::mutex mutex;
  std::vector<std::string> reports;
  std::latch all_failed(2);
  Config config = impatient(1s);
  config.stall_warning = 100ms;
  config.test_hang_op = "x:1";
  config.on_stall = [&](const std::string& report) {
    const std::scoped_lock lock(mutex);
    reports.push_back(report);
  };
  run_world(2, config, [&](Runtime& runtime) {
    std::vector<float> values = ones(100);
    EXPECT_NE(thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }), "");
    all_failed.arrive_and_wait();
  });
  static_cast<void>(testing::internal::GetCapturedStderr());
  ASSERT_FALSE(reports.empty());
  EXPECT_THAT(reports, testing::Each(StartsWith("allreduce 'x' is ready on all ranks and has not moved for ")));
}

TEST(Stall, R01_InAProcessSetOnlyItsRanksAreWaitedFor) {
  Config config = impatient(300ms);
  config.process_sets = {{1, 3}};
  std::latch all_done(4);
  run_world(4, config, [&](Runtime& runtime) {
    std::vector<float> values = ones(2);
    if (runtime.rank() == 3) {
      EXPECT_THAT(
          thrown_by<StallError>([&] { runtime.allreduce(std::span(values), {.name = "x", .process_set = {1}}); }),
          AllOf(StartsWith("allreduce 'x' process set 1: stalled for "), HasSubstr("submitted by [3], waits for [1]")));
    }
    all_done.arrive_and_wait();
  });
}

TEST(Stall, R03_OperationsOfEveryKindHaveTheirNameInTheError) {
  std::latch failed(1);
  run_world(2, impatient(100ms), [&](Runtime& runtime) {
    if (runtime.rank() == 1) return failed.wait();
    std::vector<float> values = ones(4);
    const std::span<float> span(values);
    const auto stalls = [](const std::string& start, const auto& call) {
      EXPECT_THAT(thrown_by<StallError>(call), AllOf(StartsWith(start + ": stalled for "), HasSubstr("waits for [1]")));
    };
    stalls("reduce 'x'", [&] { runtime.reduce(span, {.name = "x"}); });
    stalls("reduce_scatter 'x'", [&] { return runtime.reduce_scatter(span, {.name = "x"}); });
    stalls("gather 'x'", [&] { return runtime.gather(span, {.name = "x"}); });
    stalls("scatter 'x'", [&] { return runtime.scatter(span, {.name = "x"}); });
    stalls("alltoall 'x'", [&] { return runtime.alltoall(span, {.name = "x"}); });
    stalls("send/recv 'x'", [&] { runtime.send(span, {.name = "x", .to_rank = 1}); });
    stalls("send/recv 'x'", [&] { runtime.recv(span, {.name = "x", .from_rank = 1}); });
    failed.count_down();
  });
}

}  // namespace
}  // namespace hvd::test
