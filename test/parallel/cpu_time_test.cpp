#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <mpi.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../support/process.h"
#include "../support/world.h"

// What a rank that has nothing to do costs.
namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto pause = 500ms;

// One that spins takes all the time there is; a busy machine makes the share smaller, not larger.
void expect_little_cpu_time(const std::string& what, const std::function<void()>& wait) {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  wait();
  const double cpu = cpu_seconds() - cpu_start;
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  EXPECT_GE(wall, 0.5 * std::chrono::duration<double>(pause).count()) << what << ": did not wait";
  EXPECT_LE(cpu, 0.4 * wall) << what;
}

// Ranks of one host sleep until they are rung; those of several look from time to time.
std::vector<std::vector<int>> topologies() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<std::vector<int>> all{{}};
  if (size > 1) all.emplace_back(static_cast<std::size_t>(size), 1);
  return all;
}

void with_ranks(const std::function<void()>& body) {
  for (const std::vector<int>& hosts : topologies()) {
    Config config;
    config.test_topology = hosts;
    hvd::init(config);
    expect_sum_works(hvd::runtime(), "x");
    hvd::barrier();
    body();
    hvd::barrier();
    hvd::shutdown();
  }
}

TEST(CpuTime, R55_OfARankWithNothingInFlightIsSmall) {
  with_ranks([] { expect_little_cpu_time("idle", [] { std::this_thread::sleep_for(pause); }); });
}

TEST(CpuTime, R55_OfARankThatHasJoinedIsSmall) {
  with_ranks([] {
    if (hvd::size() == 1) return;
    if (hvd::rank() == 0) {
      std::this_thread::sleep_for(pause);
      hvd::join();
    } else {
      expect_little_cpu_time("join", [] { hvd::join(); });
    }
  });
}

TEST(CpuTime, R55_OfARankThatWaitsForAnotherIsSmall) {
  with_ranks([] {
    if (hvd::size() == 1) return;
    std::vector<float> values = ones(10);
    const auto reduce = [&] { hvd::allreduce(values, {.name = "x"}); };
    if (hvd::rank() == 0) {
      std::this_thread::sleep_for(pause);
      reduce();
    } else {
      expect_little_cpu_time("wait", reduce);
    }
  });
}

TEST(CpuTime, R55_OfARankThatPollsAHandleNowAndThenIsSmall) {
  with_ranks([] {
    if (hvd::size() == 1) return;
    std::vector<float> values = ones(10);
    if (hvd::rank() == 0) std::this_thread::sleep_for(pause);
    const Handle handle = hvd::allreduce_async(values, {.name = "x"});
    const auto poll = [&] {
      while (!handle.ready()) std::this_thread::sleep_for(10ms);
    };
    if (hvd::rank() == 0) {
      poll();
    } else {
      expect_little_cpu_time("poll", poll);
    }
  });
}

}  // namespace
}  // namespace hvd::test
