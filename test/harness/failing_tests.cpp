// Tests that go wrong on purpose, for harness_test.py.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <thread>

namespace {

int rank() {
  int result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &result);
  return result;
}

TEST(Failing, OnRankOne) { EXPECT_NE(rank(), 1) << "wrong here"; }
TEST(Failing, Nowhere) { GTEST_SUCCEED(); }
TEST(Hanging, OnRankOne) {
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace
