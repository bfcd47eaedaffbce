#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../support/mpi_world.h"
#include "../support/process.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void expect_sum_works(std::string_view name = "sum") {
  std::vector<float> values(7, 1.0F);
  hvd::allreduce(values, {.name = name, .op = ReduceOp::sum});
  EXPECT_TRUE(all_are(values, static_cast<float>(hvd::size())));
}

// The program's own MPI.
void expect_mpi_works() {
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(sum, world_size());
}

TEST(Lifetime, R38_RoundsOfInitAndShutdownGiveRightValuesAndNothingGrows) {
  Resources before;
  for (int round = 0; round < 5; ++round) {
    EXPECT_FALSE(hvd::is_initialized());
    std::vector<float> values(3);
    EXPECT_NE(thrown_by<NotInitializedError>([&] { hvd::allreduce(values); }), "");
    hvd::init();
    expect_sum_works();
    hvd::shutdown();
    EXPECT_NE(thrown_by<NotInitializedError>([&] { return hvd::rank(); }), "");
    if (round == 1) before = Resources::now();
  }
  expect_no_more_than(before);
}

TEST(Lifetime, R39_TheProgramsOwnMpiGoesOnAfterRuntimesOnSubcommunicators) {
  const int half = world_rank() < (world_size() + 1) / 2 ? 0 : 1;
  for (const int active : {0, 1}) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, half, -world_rank(), &part);  // ranks in reverse order
    if (half == active) {
      hvd::init(part);
      int rank = -1;
      int size = -1;
      MPI_Comm_rank(part, &rank);
      MPI_Comm_size(part, &size);
      EXPECT_EQ(hvd::rank(), rank);
      EXPECT_EQ(hvd::size(), size);
      expect_sum_works();
      const std::vector<int> order = hvd::allgather(std::vector<int>{world_rank()});
      EXPECT_TRUE(std::is_sorted(order.rbegin(), order.rend()));
      hvd::shutdown();
    }
    MPI_Barrier(part);
    MPI_Comm_free(&part);
    expect_mpi_works();
  }
}

TEST(Lifetime, TheProgramMayUseMpiWhileOperationsAreInFlight) {
  hvd::init();
  for (int round = 0; round < repetitions(50); ++round) {
    std::vector<float> values(10'000, 1.0F);
    const Handle handle = hvd::allreduce_async(values, {.name = "x", .op = ReduceOp::sum});
    expect_mpi_works();
    handle.wait();
    EXPECT_TRUE(all_are(values, static_cast<float>(hvd::size())));
  }
  hvd::shutdown();
}

TEST(Lifetime, SeveralRuntimesLiveSideBySide) {
  hvd::init();
  const std::unique_ptr<Runtime> further = make_runtime(MPI_COMM_WORLD);
  std::vector<float> a(100, 1.0F);
  std::vector<float> b(100, 2.0F);
  for (int round = 0; round < repetitions(20); ++round) {
    a.assign(a.size(), 1.0F);
    b.assign(b.size(), 2.0F);
    const Handle first = hvd::allreduce_async(a, {.name = "x", .op = ReduceOp::sum});
    const Handle second = further->allreduce_async(std::span(b), {.name = "x", .op = ReduceOp::sum});
    first.wait();
    second.wait();
    EXPECT_TRUE(all_are(a, static_cast<float>(world_size())));
    EXPECT_TRUE(all_are(b, 2.0F * static_cast<float>(world_size())));
  }
  further->shutdown();
  expect_sum_works();
  hvd::shutdown();
}

TEST(Lifetime, R40_RoundsOfInitBarrierShutdownWithRandomPauses) {
  std::minstd_rand random(static_cast<unsigned>(world_rank() + 1));
  for (int round = 0; round < repetitions(30); ++round) {
    const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000)); };
    pause();
    hvd::init();
    pause();
    hvd::barrier();
    pause();
    hvd::shutdown();
  }
}

TEST(Lifetime, R40_WhatAllHaveSubmittedCompletesThoughNobodyWaits) {
  for (int round = 0; round < repetitions(5); ++round) {
    hvd::init();
    std::vector<std::vector<float>> values(20, std::vector<float>(5000, 1.0F));
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < values.size(); ++i)
      handles.push_back(hvd::allreduce_async(values[i], {.name = std::to_string(i), .op = ReduceOp::sum}));
    hvd::shutdown();
    for (const Handle& handle : handles) EXPECT_NO_THROW(handle.wait());
    for (const auto& value : values) EXPECT_TRUE(all_are(value, static_cast<float>(world_size())));
  }
}

TEST(Lifetime, R28_OperationsAfterARankHasLeftFailWithItsNameAndReason) {
  if (world_size() == 1) GTEST_SKIP() << "needs 2 ranks";
  for (const int leaver : {0, world_size() - 1}) {
    hvd::init();
    expect_sum_works();
    if (world_rank() == leaver) {
      hvd::runtime().shutdown("its work is done");
    } else {
      std::vector<float> values(4);
      EXPECT_THAT(thrown_by<ShutDownError>([&] { hvd::allreduce(values, {.name = "x"}); }),
                  HasSubstr("rank " + std::to_string(leaver) + " has left: its work is done"));
    }
    hvd::shutdown();
    expect_mpi_works();
  }
}

TEST(Lifetime, UnlikeConfigsAreAnErrorOnAllRanksAndInitMayFollow) {
  if (world_size() == 1) GTEST_SKIP() << "needs 2 ranks";
  Config config;
  if (world_rank() == 0) config.fusion_threshold = 64 << 20;
  EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { hvd::init(config); }),
              HasSubstr("config differs: fusion_threshold: [0] 64 MiB; [1"));
  EXPECT_FALSE(hvd::is_initialized());
  hvd::init();
  expect_sum_works();
  hvd::shutdown();
}

TEST(Lifetime, AnIdleRuntimeUsesNoCpu) {
  hvd::init();
  expect_sum_works();
  std::this_thread::sleep_for(100ms);  // until all have gone to sleep
  const double before = cpu_seconds();
  std::this_thread::sleep_for(2s);
  EXPECT_LT(cpu_seconds() - before, sanitized ? 0.1 : 0.02);
  expect_sum_works();
  hvd::shutdown();
}

}  // namespace
}  // namespace hvd::test
