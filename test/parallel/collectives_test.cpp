#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/cases.h"
#include "../support/mpi_world.h"
#include "../support/world.h"

// Every rank runs every test. The data of all ranks is known to each, so that each computes the reference itself.
namespace hvd::test {
namespace {

// Hosts of one and two ranks in turn: 1; 1,1; 1,2; 1,2,1.
std::vector<int> small_hosts() {
  std::vector<int> counts;
  for (int left = world_size(); left > 0; left -= counts.back())
    counts.push_back(std::min(left, counts.size() % 2 == 0 ? 1 : 2));
  return counts;
}

Program every_dtype_op_and_shape(const std::vector<int>& ranks_per_host, std::int64_t chunk_bytes) {
  Program program(world_size(), ranks_per_host);
  const auto ranks = static_cast<std::size_t>(world_size());
  int number = 0;
  for (const DataType dtype : all_dtypes) {
    std::vector<Shape> shapes = small_shapes();
    for (const Shape& shape : shapes_around_chunks(chunk_bytes, dtype)) shapes.push_back(shape);
    for (const Shape& shape : shapes) {
      for (const ReduceOp op : all_reduce_ops) program.allreduce(dtype, shape, op, ++number % 2 == 0);
      ++number;
      program.broadcast(dtype, shape, number % world_size(), number % 2 == 0);
      if (shape.rank() == 0) continue;
      std::vector<std::int64_t> rows(ranks);
      for (std::size_t rank = 0; rank < ranks; ++rank) rows[rank] = shape[0] * static_cast<std::int64_t>(rank) / 2;
      program.allgather(dtype, shape, rows);
    }
    program.allreduce(dtype, {7, 3}, ReduceOp::average, false, 0.5, 3.0);
    program.barrier();
  }
  return program;
}

void init_and_run(const Config& config, const Program& program) {
  hvd::init(config);
  run_together(hvd::runtime(), program.cases());
  run_one_by_one(hvd::runtime(), program.cases(), 7);
  hvd::shutdown();
}

TEST(Collectives, EveryOperationDtypeShapeAndOpGivesTheReferenceBits) {
  Config config;
  config.chunk_bytes = 4096;
  init_and_run(config, every_dtype_op_and_shape({}, config.chunk_bytes));
}

TEST(Collectives, TheSameAcrossPretendedHosts) {
  Config config;
  config.chunk_bytes = 1024;
  config.fusion_threshold = 20'000;
  config.test_topology = small_hosts();
  init_and_run(config, every_dtype_op_and_shape(config.test_topology, config.chunk_bytes));
}

TEST(Collectives, LargeTensorsGoThroughManyChunks) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, small_hosts()}) {
    Config config;
    config.test_topology = hosts;
    Program program(world_size(), hosts);
    const std::int64_t less = sanitized ? 16 : 1;
    config.chunk_bytes /= less;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(world_size()), 300'007 / less);
    rows[0] = 0;
    for (int i = 0; i < 2; ++i) {
      program.allreduce(DataType::f32, {800'003 / less}, ReduceOp::average, i == 0);
      program.broadcast(DataType::f64, {300'001 / less}, world_size() - 1, i == 0);
      program.allgather(DataType::i16, {1}, rows);
      program.allreduce(DataType::bf16, {700'001 / less}, ReduceOp::sum, i == 0);
    }
    init_and_run(config, program);
  }
}

TEST(Collectives, TheFreeFunctionsTakeVectors) {
  hvd::init();
  const int size = world_size();
  std::vector<double> values(5, hvd::rank());
  hvd::allreduce(values, {.name = "a", .op = ReduceOp::sum});
  EXPECT_TRUE(all_are(values, size * (size - 1) / 2.0));
  const std::vector<std::int32_t> mine(static_cast<std::size_t>(hvd::rank()), hvd::rank());
  std::vector<std::int32_t> expected;
  for (int rank = 0; rank < size; ++rank) expected.insert(expected.end(), static_cast<std::size_t>(rank), rank);
  EXPECT_EQ(hvd::allgather(mine, {.name = "b"}), expected);
  std::vector<float> from_last(3, static_cast<float>(hvd::rank()));
  const Handle handle = hvd::broadcast_async(from_last, {.root_rank = size - 1});
  hvd::barrier();
  handle.wait();
  EXPECT_TRUE(all_are(from_last, static_cast<float>(size - 1)));
  hvd::shutdown();
}

TEST(Collectives, TheFreeFunctionsHaveTheGroupsOfRowsForEachRank) {
  hvd::init();
  const auto size = static_cast<std::size_t>(world_size());
  const std::vector<std::int32_t> numbers(size, hvd::rank());
  const std::vector<float> more(2 * size, static_cast<float>(hvd::rank()));
  const std::vector<ConstTensorView> group{std::span(numbers), std::span(more)};
  std::vector<std::int64_t> received;
  EXPECT_EQ(hvd::alltoall(std::span(numbers), {.name = "one"}, &received).shape(), Shape{world_size()});
  EXPECT_EQ(received, std::vector<std::int64_t>(size, 1));
  const std::vector<Tensor> exchanged = hvd::grouped_alltoall(group, {.name = "group"}, &received);
  std::vector<std::int64_t> expected(size, 1);
  expected.resize(2 * size, 2);
  EXPECT_EQ(received, expected);
  for (std::size_t from = 0; from < size; ++from) {
    EXPECT_EQ(exchanged[0].values<std::int32_t>()[from], static_cast<std::int32_t>(from));
    EXPECT_EQ(exchanged[1].values<float>()[2 * from + 1], static_cast<float>(from));
  }
  const bool is_root = hvd::rank() == 0;
  const std::vector<Tensor> shares =
      hvd::grouped_scatter(is_root ? group : std::vector<ConstTensorView>(), {.name = "shares", .root_rank = 0});
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].shape(), Shape{1});
  EXPECT_EQ(shares[1].shape(), Shape{2});
  hvd::grouped_alltoall_async(group).wait();
  EXPECT_EQ(hvd::grouped_scatter_async(group).take_outputs().size(), 2U);
  hvd::shutdown();
}

TEST(Collectives, R11_AMismatchIsAnErrorOnEveryRankAndTheNextCallWorks) {
  const int size = world_size();
  if (size == 1) GTEST_SKIP() << "needs 2 ranks";
  for (const std::vector<int>& hosts : {std::vector<int>{}, small_hosts()}) {
    Config config;
    config.test_topology = hosts;
    hvd::init(config);
    std::string others;
    for (int rank = 0; rank < size - 1; ++rank) others += (rank == 0 ? "" : ",") + std::to_string(rank);
    for (int round = 0; round < 3; ++round) {
      std::vector<float> values(hvd::rank() == size - 1 ? 5 : 4, 1.0F);
      EXPECT_EQ(
          thrown_by<MismatchError>([&] { hvd::allreduce(values, {.name = "w"}); }),
          "allreduce 'w': shapes differ: [" + others + "] float32[4]; [" + std::to_string(size - 1) + "] float32[5]");
      values.assign(4, 1.0F);
      hvd::allreduce(values, {.name = "w", .op = ReduceOp::sum});
      EXPECT_TRUE(all_are(values, static_cast<float>(size)));
    }
    hvd::shutdown();
  }
}

TEST(Collectives, R10_HundredsOfTensorsInAStepInAnotherOrderOnEachRank) {
  hvd::init();
  std::vector<std::vector<float>> values(500);
  std::vector<Handle> handles(values.size());
  for (int step = 0; step < repetitions(10); ++step) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i].assign(1 + i % 50, static_cast<float>(i));
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t i = (k * 7 + 100 * static_cast<std::size_t>(hvd::rank())) % values.size();
      handles[i] = hvd::allreduce_async(values[i], {.name = "layer." + std::to_string(i)});
    }
    for (const Handle& handle : handles) handle.wait();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(all_are(values[i], static_cast<float>(i)));
  }
  hvd::shutdown();
}

TEST(Topology, IsWhatMpiSaysOfSharedMemory) {
  hvd::init();
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank(), MPI_INFO_NULL, &host);
  EXPECT_EQ(hvd::rank(), world_rank());
  EXPECT_EQ(hvd::size(), world_size());
  EXPECT_EQ(hvd::local_rank(), mpi_value(MPI_Comm_rank, host));
  EXPECT_EQ(hvd::local_size(), mpi_value(MPI_Comm_size, host));
  MPI_Comm cross = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, hvd::local_rank(), world_rank(), &cross);
  EXPECT_EQ(hvd::cross_rank(), mpi_value(MPI_Comm_rank, cross));
  EXPECT_EQ(hvd::cross_size(), mpi_value(MPI_Comm_size, cross));
  int extremes[2] = {hvd::local_size(), -hvd::local_size()};
  MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(hvd::is_homogeneous(), extremes[0] == -extremes[1]);
  MPI_Comm_free(&cross);
  MPI_Comm_free(&host);
  hvd::shutdown();
}

TEST(Topology, MayBePretendedByTheEnvironment) {
  const std::vector<int> hosts = small_hosts();
  std::string text;
  for (const int ranks : hosts) text += (text.empty() ? "" : ",") + std::to_string(ranks);
  setenv("HVD_TEST_TOPOLOGY", text.c_str(), 1);
  hvd::init();
  unsetenv("HVD_TEST_TOPOLOGY");
  int first = 0;
  std::size_t host = 0;
  while (first + hosts[host] <= world_rank()) first += hosts[host++];
  EXPECT_EQ(hvd::local_rank(), world_rank() - first);
  EXPECT_EQ(hvd::local_size(), hosts[host]);
  Program program(world_size(), hosts);
  for (int i = 0; i < 20; ++i) program.allreduce(DataType::f32, {100 * i}, ReduceOp::average, i % 2 == 0);
  run_together(hvd::runtime(), program.cases());
  hvd::shutdown();
}

}  // namespace
}  // namespace hvd::test
