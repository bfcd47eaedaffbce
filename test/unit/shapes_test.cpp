#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../support/world.h"

// Empty tensors, scalars, and rows that do not divide evenly.
namespace hvd::test {
namespace {

using testing::ElementsAre;
using Splits = std::vector<std::int64_t>;

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

template <typename T>
inline constexpr bool is_size = std::is_integral_v<T> && sizeof(T) == 8;

TEST(Shapes, R71_WhereASizeIsSaidItHas64Bits) {
  static_assert(is_size<decltype(Shape().elements())> && is_size<std::decay_t<decltype(Shape()[0])>>);
  static_assert(is_size<decltype(ConstTensorView().bytes())>);
  static_assert(is_size<decltype(ScatterOptions::splits)::value_type>);
  static_assert(is_size<decltype(AlltoallOptions::splits)::value_type>);
  static_assert(is_size<std::decay_t<decltype(Handle().received_splits()[0])>>);
  static_assert(is_size<decltype(TensorEvent::bytes)> && is_size<decltype(TensorEvent::batch)>);
  static_assert(is_size<decltype(Config::fusion_threshold)> && is_size<decltype(Config::chunk_bytes)>);
  static_assert(is_size<decltype(Config::mpi_max_count)> && is_size<decltype(Stats::bytes_sent)>);
  EXPECT_EQ((Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}.elements()), std::int64_t{1} << 62);
}

TEST(Alltoall, R62_WithoutRowsGivesNoneButTheirShape) {
  run_world(2, [](Runtime& runtime) {
    const Splits none{0, 0};
    const ConstTensorView nothing(nullptr, Shape{0, 3}, DataType::f32);
    const Handle handle = runtime.alltoall_async(nothing, {.name = "x", .splits = none});
    EXPECT_EQ(handle.take_output().shape(), Shape({0, 3}));
    EXPECT_EQ(handle.received_splits(), none);
  });
}

TEST(Alltoall, R62_OneRankGetsEverything) {
  run_world(2, [](Runtime& runtime) {
    const bool first = runtime.rank() == 0;
    const std::vector<float> values = first ? counting(2, 1) : counting(3, 10);
    const Splits splits = first ? Splits{2, 0} : Splits{3, 0};
    const Handle handle = runtime.alltoall_async(std::span(values), {.name = "x", .splits = splits});
    const Tensor received = handle.take_output();
    if (first) {
      EXPECT_THAT(received.values<float>(), ElementsAre(1, 2, 10, 11, 12));
      EXPECT_EQ(handle.received_splits(), (Splits{2, 3}));
    } else {
      EXPECT_EQ(received.shape(), Shape{0});
      EXPECT_EQ(handle.received_splits(), (Splits{0, 0}));
    }
  });
}

TEST(Alltoall, R62_SomeRanksNeitherSendNorGet) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{2, 2}, std::vector<int>{1, 3}}) {
    Config config;
    config.test_topology = hosts;
    run_world(4, config, [](Runtime& runtime) {
      const bool idle = runtime.rank() >= 2;
      const std::vector<float> values = counting(idle ? 0 : 3, static_cast<float>(10 * runtime.rank()));
      const Splits splits = idle ? Splits{0, 0, 0, 0} : Splits{1, 2, 0, 0};
      const Handle handle = runtime.alltoall_async(std::span(values), {.name = "x", .splits = splits});
      const Tensor received = handle.take_output();
      const std::vector<std::vector<float>> rows{{0, 10}, {1, 2, 11, 12}, {}, {}};
      const std::vector<Splits> from{{1, 1, 0, 0}, {2, 2, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
      const auto rank = static_cast<std::size_t>(runtime.rank());
      EXPECT_TRUE(std::ranges::equal(received.values<float>(), rows[rank]));
      EXPECT_EQ(handle.received_splits(), from[rank]);
    });
  }
}

TEST(Alltoall, R62_WrongSplitsAreRefusedAtOnce) {
  run_world(2, [](Runtime& runtime) {
    const std::vector<float> values = ones(5);
    const auto refused = [&](const Splits& splits) {
      return thrown_by<InvalidArgumentError>(
          [&] { return runtime.alltoall_async(std::span(values), {.name = "x", .splits = splits}); });
    };
    EXPECT_THAT(refused({1, 2, 2}), testing::StartsWith("alltoall 'x': "));
    EXPECT_THAT(refused({2, 2}), testing::StartsWith("alltoall 'x': "));
    EXPECT_THAT(refused({6, -1}), testing::StartsWith("alltoall 'x': "));
    EXPECT_THAT(refused({}), testing::StartsWith("alltoall 'x': ")) << "5 rows are no equal shares";
    EXPECT_THAT(refused({std::int64_t{1} << 62, std::int64_t{1} << 62}), testing::StartsWith("alltoall 'x': "));
  });
}

TEST(Alltoall, SplitsOfAGroupAreThoseOfOneTensorAfterTheOther) {
  run_world(2, [](Runtime& runtime) {
    const std::vector<float> values = ones(4);
    const std::vector<ConstTensorView> group{std::span(values).first(3), std::span(values)};
    const auto refused = [&](const Splits& splits) {
      return thrown_by<InvalidArgumentError>(
          [&] { return runtime.grouped_alltoall_async(group, {.name = "x", .splits = splits}); });
    };
    EXPECT_EQ(refused({1, 2}), "alltoall 'x': 2 splits for 2 tensors and 2 ranks");
    EXPECT_EQ(refused({1, 2, 3, 2}), "alltoall 'x': the splits 3, 2 do not add up to its 4 rows");
    EXPECT_EQ(refused({}), "alltoall 'x': 3 rows do not divide among 2 ranks: give splits");
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] {
                return runtime.grouped_scatter(group, {.name = "x", .root_rank = runtime.rank(), .splits = Splits{3}});
              }),
              "scatter 'x': 1 splits for 2 tensors and 2 ranks");
    const Handle handle = runtime.grouped_alltoall_async(group, {.name = "x", .splits = Splits{1, 2, 4, 0}});
    EXPECT_EQ(handle.received_splits(), runtime.rank() == 0 ? (Splits{1, 1, 4, 4}) : (Splits{2, 2, 0, 0}));
    EXPECT_EQ(handle.take_outputs()[1].shape(), runtime.rank() == 0 ? Shape{8} : Shape{0});
  });
}

TEST(Shapes, R64_AScalarIsRefusedWhereThereAreRowsToShare) {
  run_world(2, [](Runtime& runtime) {
    float value = 1.0F;
    const TensorView scalar(&value, Shape{}, DataType::f32);
    const auto refused = [](const auto& call) { return thrown_by<InvalidArgumentError>(call); };
    const std::string needs = " 'x': needs 1 or more dimensions, got a scalar";
    EXPECT_EQ(refused([&] { return runtime.reduce_scatter(scalar, {.name = "x"}); }), "reduce_scatter" + needs);
    EXPECT_EQ(refused([&] { return runtime.alltoall(scalar, {.name = "x"}); }), "alltoall" + needs);
    EXPECT_EQ(refused([&] { return runtime.gather(scalar, {.name = "x"}); }), "gather" + needs);
    EXPECT_EQ(refused([&] { return runtime.scatter(scalar, {.name = "x", .root_rank = runtime.rank()}); }),
              "scatter" + needs);
    const std::array<ConstTensorView, 1> group{scalar};
    EXPECT_EQ(refused([&] { return runtime.grouped_allgather(group, {.name = "x"}); }), "allgather" + needs);
    EXPECT_EQ(refused([&] { return runtime.grouped_reduce_scatter(group, {.name = "x"}); }), "reduce_scatter" + needs);
    runtime.reduce(scalar, {.name = "x", .op = ReduceOp::sum});
    EXPECT_EQ(value, runtime.rank() == 0 ? 2.0F : 1.0F);
    value = 3.0F;
    runtime.rank() == 0 ? runtime.send(scalar, {.name = "x", .to_rank = 1})
                        : runtime.recv(scalar, {.name = "x", .from_rank = 0});
    EXPECT_EQ(value, 3.0F);
  });
}

TEST(ReduceScatter, R65_TheFirstRanksGetARowMoreWhenThereIsARemainder) {
  run_world(3, [](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    const std::vector<std::pair<std::int64_t, Splits>> cases{{7, {3, 2, 2}}, {2, {1, 1, 0}}, {0, {0, 0, 0}}};
    for (const auto& [rows, shares] : cases) {
      const std::vector<float> values = counting(static_cast<std::size_t>(2 * rows), 0);
      const Tensor share = runtime.reduce_scatter(ConstTensorView(std::span(values), Shape{rows, 2}),
                                                  {.name = "x", .op = ReduceOp::sum});
      EXPECT_EQ(share.shape(), Shape({shares[rank], 2}));
      const std::int64_t before = std::accumulate(shares.begin(), shares.begin() + runtime.rank(), std::int64_t{0});
      for (std::size_t i = 0; i < share.values<float>().size(); ++i)
        EXPECT_EQ(share.values<float>()[i], 3.0F * static_cast<float>(2 * before + static_cast<std::int64_t>(i)));
    }
  });
}

TEST(Shapes, R66_EveryOperationTakesTensorsWithoutElements) {
  for (const int size : {1, 4}) {
    run_world(size, [&](Runtime& runtime) {
      for (const Shape& shape : {Shape{0}, Shape{1, 0, 2}}) {
        const TensorView nothing(nullptr, shape, DataType::f64);
        const std::int64_t rows = shape[0];
        runtime.reduce(nothing, {.name = "x"});
        const Tensor share = runtime.reduce_scatter(nothing, {.name = "x"});
        EXPECT_EQ(share.shape(), shape.with_rows(runtime.rank() == 0 ? rows : 0));
        EXPECT_EQ(share.dtype(), DataType::f64);
        const Tensor gathered = runtime.gather(nothing, {.name = "x", .root_rank = size - 1});
        EXPECT_EQ(gathered.shape(), shape.with_rows(runtime.rank() == size - 1 ? size * rows : 0));
        EXPECT_EQ(gathered.dtype(), DataType::f64);
        const Tensor scattered = runtime.scatter(nothing, {.name = "x"});
        EXPECT_EQ(scattered.shape(), shape.with_rows(runtime.rank() == 0 ? rows : 0));
        EXPECT_EQ(scattered.dtype(), DataType::f64);
        Splits splits(static_cast<std::size_t>(size), 0);
        splits.back() = rows;
        const Tensor exchanged = runtime.alltoall(nothing, {.name = "x", .splits = splits});
        EXPECT_EQ(exchanged.shape(), shape.with_rows(runtime.rank() == size - 1 ? size * rows : 0));
        const std::array<TensorView, 2> group{nothing, nothing};
        runtime.grouped_allreduce(group, {.name = "x"});
        runtime.grouped_broadcast(group, {.name = "x"});
        if (size > 1 && runtime.rank() == 0) runtime.send(nothing, {.name = "p", .to_rank = 1});
        if (runtime.rank() == 1) runtime.recv(nothing, {.name = "p", .from_rank = 0});
      }
      runtime.barrier();
    });
  }
}

TEST(Shapes, R66_AWorldOfOneRankIsTheIdentity) {
  run_world(1, [](Runtime& runtime) {
    const std::vector<float> values = counting(6, 1);
    std::vector<float> copy(6);
    const ConstTensorView view{std::span(values), Shape{3, 2}};
    for (const ReduceOp op :
         {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product, ReduceOp::adasum}) {
      copy.assign(6, 0.0F);
      runtime.allreduce(view, TensorView(std::span(copy), Shape{3, 2}), {.op = op});
      EXPECT_EQ(copy, values) << to_string(op);
    }
    copy.assign(6, 0.0F);
    runtime.reduce(view, TensorView(std::span(copy), Shape{3, 2}));
    EXPECT_EQ(copy, values);
    const auto expect_same = [&](const Tensor& result) {
      EXPECT_EQ(result.shape(), Shape({3, 2}));
      EXPECT_TRUE(std::ranges::equal(result.values<float>(), values));
    };
    expect_same(runtime.reduce_scatter(view));
    expect_same(runtime.allgather(view));
    expect_same(runtime.gather(view));
    expect_same(runtime.scatter(view));
    expect_same(runtime.alltoall(view));
    EXPECT_EQ(runtime.join(), 0);
  });
}

}  // namespace
}  // namespace hvd::test
