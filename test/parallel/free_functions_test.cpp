#include <gtest/gtest.h>
#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../support/world.h"

// Each function of hvd/hvd.h once: that it is there, and hands on to the runtime what it is given.
namespace hvd::test {
namespace {

using Values = std::vector<float>;

constexpr std::size_t count = 4;

ConstTensorView seen(const Values& values) { return std::span<const float>(values); }
TensorView view(Values& values) { return std::span<float>(values); }
auto values_of(const Tensor& tensor) { return tensor.values<float>(); }

// Rank r has r + 1; the last rank is the root of what has one.
class FreeFunctions : public testing::Test {
 protected:
  void SetUp() override {
    hvd::init(MPI_COMM_WORLD, Config{});
    rank = hvd::rank();
    size = hvd::size();
    last = size - 1;
    total = static_cast<float>(size * (size + 1) / 2);
    input.assign(count, static_cast<float>(rank + 1));
    output.assign(count, -1);
    other.assign(count, -1);
  }
  void TearDown() override {
    hvd::barrier();
    hvd::shutdown();
  }
  // A result on the root, where it is one.
  testing::AssertionResult is_total_on_root(const Values& values) const {
    return rank == last ? all_are(values, total) : testing::AssertionSuccess();
  }
  testing::AssertionResult is_gathered(const Tensor& tensor) const {
    for (int r = 0; r < size; ++r) {
      const auto rows = values_of(tensor).subspan(static_cast<std::size_t>(r) * count, count);
      if (const auto right = all_are(rows, static_cast<float>(r + 1)); !right) return right;
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult is_gathered_on_root(const Tensor& tensor) const {
    return rank == last ? is_gathered(tensor) : testing::AssertionSuccess();
  }

  int rank = 0;
  int size = 0;
  int last = 0;
  float total = 0;
  Values input;
  Values output;
  Values other;
};

TEST_F(FreeFunctions, TellWhereARankIs) {
  EXPECT_EQ(hvd::runtime().rank(), rank);
  EXPECT_EQ(hvd::local_rank(), rank);  // all on one host
  EXPECT_EQ(hvd::local_size(), size);
  EXPECT_EQ(hvd::cross_rank(), 0);
  EXPECT_EQ(hvd::cross_size(), 1);
  EXPECT_TRUE(hvd::is_homogeneous());
}

TEST_F(FreeFunctions, Allreduce) {
  const AllreduceOptions sum{.op = ReduceOp::sum};
  hvd::allreduce(seen(input), view(output), sum);
  EXPECT_TRUE(all_are(output, total));
  hvd::allreduce_async(seen(input), view(other), sum).wait();
  EXPECT_TRUE(all_are(other, total));
  const std::vector<ConstTensorView> inputs{seen(input), seen(input)};
  const std::vector<TensorView> outputs{view(output), view(other)};
  output.assign(count, -1);
  hvd::grouped_allreduce(inputs, outputs, sum);
  EXPECT_TRUE(all_are(output, total));
  other.assign(count, -1);
  hvd::grouped_allreduce_async(inputs, outputs, sum).wait();
  EXPECT_TRUE(all_are(other, total));
  hvd::grouped_allreduce(outputs, sum);
  EXPECT_TRUE(all_are(output, total * static_cast<float>(size)));
  hvd::grouped_allreduce_async(outputs, {.op = ReduceOp::average}).wait();
  EXPECT_TRUE(all_are(other, total * static_cast<float>(size)));
}

TEST_F(FreeFunctions, Reduce) {
  const ReduceOptions sum{.root_rank = last, .op = ReduceOp::sum};
  hvd::reduce(seen(input), view(output), sum);
  EXPECT_TRUE(is_total_on_root(output));
  hvd::reduce_async(seen(input), view(other), sum).wait();
  EXPECT_TRUE(is_total_on_root(other));
  for (const bool at_once : {false, true}) {
    output = other = input;
    const std::vector<TensorView> both{view(output), view(other)};
    at_once ? hvd::grouped_reduce(both, sum) : hvd::grouped_reduce_async(both, sum).wait();
    EXPECT_TRUE(is_total_on_root(output));
    EXPECT_TRUE(is_total_on_root(other));
    output = input;
    at_once ? hvd::reduce(view(output), sum) : hvd::reduce_async(view(output), sum).wait();
    EXPECT_TRUE(is_total_on_root(output));
  }
}

TEST_F(FreeFunctions, ReduceScatter) {
  const ReduceScatterOptions sum{.op = ReduceOp::sum};
  const Values rows(static_cast<std::size_t>(size) * 2, static_cast<float>(rank + 1));
  const std::vector<ConstTensorView> both{seen(rows), seen(rows)};
  const auto is_share = [&](const Tensor& tensor) {
    return tensor.shape() == Shape{2} ? all_are(values_of(tensor), total) : testing::AssertionFailure();
  };
  EXPECT_TRUE(is_share(hvd::reduce_scatter(seen(rows), sum)));
  EXPECT_TRUE(is_share(hvd::reduce_scatter_async(seen(rows), sum).take_output()));
  EXPECT_TRUE(is_share(hvd::grouped_reduce_scatter(both, sum).at(1)));
  EXPECT_TRUE(is_share(hvd::grouped_reduce_scatter_async(both, sum).take_outputs().at(1)));
  EXPECT_TRUE(all_are(hvd::reduce_scatter(rows, sum), total));
}

TEST_F(FreeFunctions, Broadcast) {
  const BroadcastOptions from_last{.root_rank = last};
  const auto root = static_cast<float>(last + 1);
  hvd::broadcast(seen(input), view(output), from_last);
  EXPECT_TRUE(all_are(output, root));
  hvd::broadcast_async(seen(input), view(other), from_last).wait();
  EXPECT_TRUE(all_are(other, root));
  for (const bool at_once : {false, true}) {
    output = other = input;
    const std::vector<TensorView> both{view(output), view(other)};
    at_once ? hvd::grouped_broadcast(both, from_last) : hvd::grouped_broadcast_async(both, from_last).wait();
    EXPECT_TRUE(all_are(output, root));
    EXPECT_TRUE(all_are(other, root));
  }
}

TEST_F(FreeFunctions, AllgatherAndGather) {
  const GatherOptions on_last{.root_rank = last};
  const std::vector<ConstTensorView> both{seen(input), seen(input)};
  EXPECT_TRUE(is_gathered(hvd::allgather_async(seen(input)).take_output()));
  EXPECT_TRUE(is_gathered(hvd::grouped_allgather(both).at(1)));
  EXPECT_TRUE(is_gathered(hvd::grouped_allgather_async(both).take_outputs().at(1)));
  EXPECT_TRUE(is_gathered_on_root(hvd::gather(seen(input), on_last)));
  EXPECT_TRUE(is_gathered_on_root(hvd::gather_async(seen(input), on_last).take_output()));
  EXPECT_TRUE(is_gathered_on_root(hvd::grouped_gather(both, on_last).at(1)));
  EXPECT_TRUE(is_gathered_on_root(hvd::grouped_gather_async(both, on_last).take_outputs().at(1)));
}

TEST_F(FreeFunctions, ScatterAndAlltoall) {
  Values rows;
  for (int r = 0; r < size; ++r) rows.push_back(static_cast<float>(r));
  const ConstTensorView from_root = rank == last ? seen(rows) : ConstTensorView();
  EXPECT_TRUE(all_are(values_of(hvd::scatter(from_root, {.root_rank = last})), rows[static_cast<std::size_t>(rank)]));
  const Tensor mine = hvd::scatter_async(from_root, {.root_rank = last}).take_output();
  EXPECT_TRUE(all_are(values_of(mine), rows[static_cast<std::size_t>(rank)]));

  const std::vector<std::int64_t> from_each(static_cast<std::size_t>(size), 1);
  std::vector<std::int64_t> received;
  EXPECT_TRUE(all_are(hvd::alltoall(rows, {}, &received), static_cast<float>(rank)));
  EXPECT_EQ(received, from_each);
  EXPECT_TRUE(all_are(values_of(hvd::alltoall_async(seen(rows)).take_output()), static_cast<float>(rank)));
}

TEST_F(FreeFunctions, SendAndReceive) {
  if (size == 1) GTEST_SKIP() << "needs 2 ranks";
  if (rank == 0) {
    hvd::send(seen(input), {.to_rank = last});
    hvd::send_async(seen(input), {.to_rank = last}).wait();
  } else if (rank == last) {
    hvd::recv(view(output), {.from_rank = 0});
    EXPECT_TRUE(all_are(output, 1.0F));
    hvd::recv_async(view(other), {.from_rank = 0}).wait();
    EXPECT_TRUE(all_are(other, 1.0F));
  }
}

TEST_F(FreeFunctions, MakeAndRemoveProcessSets) {
  if (size == 1) GTEST_SKIP() << "needs 2 ranks";
  const ProcessSet set = hvd::add_process_set({last});
  EXPECT_EQ(hvd::process_set_ranks(set), std::vector<int>{last});
  if (rank == last) {
    EXPECT_EQ(hvd::process_set_rank(set), 0);
  }
  hvd::remove_process_set(set);
  EXPECT_THROW(hvd::process_set_ranks(set), InvalidArgumentError);
}

TEST_F(FreeFunctions, WaitForAllAndCount) {
  hvd::barrier_async().wait();
  EXPECT_EQ(hvd::stats().operations_done, 1U);
  const std::vector<ConstTensorView> tensors{seen(input)};
  const std::vector<std::string> names{"input"};
  if (size == 1) {
    hvd::check_consistency(tensors, names);
  } else {
    EXPECT_THROW(hvd::check_consistency(tensors, names), MismatchError);
  }
  EXPECT_GE(hvd::join(), 0);
  const Handle joined = hvd::join_async();
  joined.wait();
  EXPECT_LT(joined.last_joined_rank(), size);
}

}  // namespace
}  // namespace hvd::test
