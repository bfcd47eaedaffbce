#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "../support/mpi_world.h"
#include "../support/steps/matrix.h"
#include "../support/steps/running_step.h"
#include "../support/world.h"

// No MPI call is given more than 1000 elements, as if that were what its int counts hold; every rank is a host of its
// own, so that all data goes through MPI.
namespace hvd::test {
namespace {

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

class LargeCounts : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    Config config;
    config.mpi_max_count = GetParam();
    config.test_topology.assign(static_cast<std::size_t>(world_size()), 1);
    hvd::init(config);
  }
  void TearDown() override { hvd::shutdown(); }

  static void run(const std::vector<Step>& steps) {
    std::vector<std::string> errors;
    run_together(hvd::runtime(), {{}}, steps, errors);
    run_one_by_one(hvd::runtime(), {{}}, steps, errors);
    hvd::barrier();  // who has no part in a message waits for those who have
    for (const std::string& error : errors) ADD_FAILURE() << error;
    if (world_size() > 1) {
      EXPECT_GT(hvd::stats().bytes_sent, 0U) << "nothing went through MPI";
    }
  }
  static Step step(Operation operation, DataType dtype, const Shape& shape) {
    Step step{
        .name = std::string(to_string(operation)) + std::to_string(shape.elements()) + std::string(to_string(dtype)),
        .operation = operation,
        .tensors = {{.dtype = dtype, .shape = shape}},
        .ranks = std::vector<int>(static_cast<std::size_t>(world_size())),
        .root = world_size() - 1,
        .seed = static_cast<std::uint64_t>(shape.elements())};
    std::iota(step.ranks.begin(), step.ranks.end(), 0);
    return step;
  }
};

TEST_P(LargeCounts, R68_EveryOperationOfMoreElementsThanACallTakesGivesTheReference) {
  std::vector<Step> steps{
      step(Operation::allreduce, DataType::f32, {5001}), step(Operation::allreduce, DataType::f16, {3, 667}),
      step(Operation::reduce, DataType::c128, {2001}),   step(Operation::reduce_scatter, DataType::i64, {5003}),
      step(Operation::broadcast, DataType::u8, {10007}), step(Operation::broadcast, DataType::boolean, {1000}),
      step(Operation::gather, DataType::f64, {1700}),    step(Operation::scatter, DataType::f32, {4099, 3}),
  };
  Step rows = step(Operation::allgather, DataType::f32, {1});
  for (std::size_t rank = 0; rank < rows.size(); ++rank) rows.rows.push_back(rank % 2 == 0 ? 700 : 800);
  steps.push_back(rows);
  if (world_size() > 1) {
    Step message = step(Operation::send_recv, DataType::f32, {3001});
    message.ranks = {0, world_size() - 1};
    message.root = 1;
    steps.push_back(message);
  }
  run(steps);
}

TEST_P(LargeCounts, R70_CountsAreOfElementsAndAddUpBeyondTheLimit) {
  std::vector<Step> steps{step(Operation::allgather, DataType::f32, {400}),
                          step(Operation::allgather, DataType::c128, {999, 2}),
                          step(Operation::allgather, DataType::i8, {1000})};
  Step exchange = step(Operation::alltoall, DataType::f32, {1600});
  exchange.splits.assign(exchange.size(), equal_shares(1600, exchange.size()));
  steps.push_back(exchange);
  Step to_one = step(Operation::alltoall, DataType::i16, {1601, 3});
  for (std::size_t rank = 0; rank < to_one.size(); ++rank) {
    to_one.splits.emplace_back(to_one.size(), 0);
    to_one.splits.back()[rank % 2] = 1601;
  }
  if (world_size() > 1) steps.push_back(to_one);
  run(steps);
}

INSTANTIATE_TEST_SUITE_P(Limits, LargeCounts, testing::Values(std::int64_t{1000}, std::int64_t{7}));

}  // namespace
}  // namespace hvd::test
