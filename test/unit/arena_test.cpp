#include <hvd/arena.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../support/world.h"
#include "cpu/copy.h"

namespace hvd::test {
namespace {

using testing::HasSubstr;

std::span<float> floats(TensorView tensor) {
  return {static_cast<float*>(tensor.data()), static_cast<std::size_t>(tensor.shape().elements())};
}

// Element i of rank r, and of the sum of the ranks 0 to size - 1.
float value(int rank, std::size_t i) { return static_cast<float>(rank + 1) * static_cast<float>(i % 1000); }
float sum(int size, std::size_t i) { return static_cast<float>(size * (size + 1) / 2) * static_cast<float>(i % 1000); }

void fill(std::span<float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, i);
}
std::size_t wrong(std::span<const float> values, int size) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) count += values[i] == sum(size, i) ? 0 : 1;
  return count;
}

// What the data plane copied for one call.
template <typename Call>
std::uint64_t copied(Runtime& runtime, const Call& call) {
  const Stats before = runtime.stats();
  call();
  const Stats after = runtime.stats();
  return after.bytes_packed - before.bytes_packed + after.bytes_unpacked - before.bytes_unpacked;
}

Config small_chunks() {
  Config config;
  config.chunk_bytes = 4096;
  return config;
}

TEST(Arena, WhatLiesInItIsReducedWithoutACopy) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_world(ranks, small_chunks(), [](Runtime& runtime) {
      Arena arena = runtime.make_arena(1 << 20);
      const TensorView tensor = arena.allocate({50000}, DataType::f32);
      fill(floats(tensor), runtime.rank());
      EXPECT_EQ(copied(runtime, [&] { runtime.allreduce(tensor, {.name = "x", .op = ReduceOp::sum}); }), 0U);
      EXPECT_EQ(wrong(floats(tensor), runtime.size()), 0U);
      runtime.barrier();
    });
  }
}

// Pieces of any sizes, in unlike places on each rank, some of them outside, in a batch or a group.
TEST(Arena, RanksMayHaveTheirTensorsInUnlikePlaces) {
  for (const int ranks : {2, 3}) {
    run_world(ranks, small_chunks(), [](Runtime& runtime) {
      Arena first = runtime.make_arena(1 << 18);
      Arena second = runtime.make_arena(static_cast<std::size_t>(runtime.rank() + 1) << 18);
      const std::vector<std::int64_t> sizes{3, 1, 5000, 0, 17, 3000, 2, 4096, 100};
      for (int round = 0; round < 12; ++round) {
        first.clear();
        second.clear();
        std::vector<std::vector<float>> outside(sizes.size());
        std::vector<TensorView> tensors(sizes.size());
        for (std::size_t k = 0; k < sizes.size(); ++k) {
          // From both ends, so that neighbours lie in another order.
          const std::size_t t = runtime.rank() % 2 == 0 ? k : sizes.size() - 1 - k;
          const int place = (round + static_cast<int>(t) * (runtime.rank() + 1)) % 4;
          outside[t].resize(static_cast<std::size_t>(sizes[t]));
          tensors[t] = place == 0   ? TensorView(std::span<float>(outside[t]))
                       : place == 1 ? second.allocate({sizes[t]}, DataType::f32)
                                    : first.allocate({sizes[t]}, DataType::f32);
          fill(floats(tensors[t]), runtime.rank());
        }
        runtime.grouped_allreduce(tensors, {.name = "x", .op = ReduceOp::sum});
        for (const TensorView& tensor : tensors) ASSERT_EQ(wrong(floats(tensor), runtime.size()), 0U) << round;
      }
      runtime.barrier();
    });
  }
}

TEST(Arena, InputsInItStayWhenTheResultGoesElsewhere) {
  run_world(3, small_chunks(), [](Runtime& runtime) {
    Arena arena = runtime.make_arena(1 << 18);
    const TensorView input = arena.allocate({20000}, DataType::f32);
    std::vector<float> output(20000);
    fill(floats(input), runtime.rank());
    runtime.allreduce(ConstTensorView(input), TensorView(std::span(output)), {.name = "x", .op = ReduceOp::sum});
    EXPECT_EQ(wrong(output, 3), 0U);
    runtime.reduce(input, {.name = "y", .root_rank = 1, .op = ReduceOp::sum});
    if (runtime.rank() == 1) {
      EXPECT_EQ(wrong(floats(input), 3), 0U);
    } else {
      for (std::size_t i = 0; i < 20000; ++i) ASSERT_EQ(floats(input)[i], value(runtime.rank(), i));
    }
    // Nobody reads it any more: the next values do not disturb the last ones.
    for (int round = 0; round < 50; ++round) {
      fill(floats(input), runtime.rank());
      runtime.reduce(input, {.name = "y", .root_rank = 0, .op = ReduceOp::sum});
      if (runtime.rank() == 0) {
        ASSERT_EQ(wrong(floats(input), 3), 0U);
      }
      std::ranges::fill(floats(input), -1.0F);
    }
    runtime.barrier();
  });
}

TEST(Arena, ServesSetsHostsAndTheOtherOperations) {
  Config config = small_chunks();
  config.test_topology = {1, 2};
  run_world(3, config, [](Runtime& runtime) {
    Arena arena = runtime.make_arena(1 << 18);
    const TensorView tensor = arena.allocate({9000}, DataType::f32);
    fill(floats(tensor), runtime.rank());
    runtime.allreduce(tensor, {.name = "all", .op = ReduceOp::sum});
    EXPECT_EQ(wrong(floats(tensor), 3), 0U);
    const ProcessSet pair = runtime.add_process_set({1, 2});
    if (runtime.rank() > 0) {
      fill(floats(tensor), runtime.rank() - 1);
      EXPECT_EQ(copied(runtime,
                       [&] { runtime.allreduce(tensor, {.name = "pair", .op = ReduceOp::sum, .process_set = pair}); }),
                0U);
      EXPECT_EQ(wrong(floats(tensor), 2), 0U);
    }
    if (runtime.rank() == 2) fill(floats(tensor), 7);
    runtime.broadcast(tensor, {.name = "b", .root_rank = 2});
    for (std::size_t i = 0; i < 9000; ++i) ASSERT_EQ(floats(tensor)[i], value(7, i));
    runtime.barrier();
  });
}

TEST(Arena, SaysWhenItIsFull) {
  run_world(2, [](Runtime& runtime) {
    Arena arena = runtime.make_arena(1000);
    EXPECT_EQ(arena.memory().size(), 1000U);
    static_cast<void>(arena.allocate({100}, DataType::f32));
    EXPECT_EQ(arena.used(), 448U);
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return arena.allocate({200}, DataType::f32); }),
              "arena: float32[200] does not fit, 552 of 1000 bytes are left");
    static_cast<void>(arena.allocate({138}, DataType::f32));
    EXPECT_EQ(arena.used(), 1000U);
    arena.clear();
    EXPECT_EQ(floats(arena.allocate({250}, DataType::f32)).size(), 250U);
    EXPECT_THAT(thrown_by<InvalidArgumentError>([] { return Arena().allocate({1}, DataType::f32); }),
                HasSubstr("0 of 0 bytes are left"));
    const std::int64_t many = std::int64_t{1} << 61;
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return arena.allocate({many}, DataType::f64); }),
                HasSubstr("does not fit"));
    runtime.barrier();
  });
}

TEST(Arena, SizesThatCannotBeAreAnErrorOnAllRanksAndTheNextOneIsMade) {
  run_world(2, [](Runtime& runtime) {
    for (const std::size_t bytes : {~std::size_t{0}, std::size_t{1} << 62}) {
      EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return runtime.make_arena(bytes); }),
                  HasSubstr("the ranks of host 0 ask for too much"));
    }
    EXPECT_EQ(runtime.make_arena(5000).memory().size(), 5000U);
    runtime.barrier();
  });
}

TEST(Arena, ARankThatHasJoinedIsAnErrorAndItsNextCallFindsTheOthersAgain) {
  Config config;
  config.test_topology = {2, 1};
  run_world(3, config, [](Runtime& runtime) {
    if (runtime.rank() == 1) {
      const Handle join = runtime.join_async();
      EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return runtime.make_arena(100); }), HasSubstr("has joined"));
      join.wait();
    } else {
      EXPECT_THAT(thrown_by<InvalidArgumentError>([&] { return runtime.make_arena(100); }),
                  HasSubstr("only 2 of 3 ranks take part"));
      runtime.join();
    }
    Arena arena = runtime.make_arena(1 << 16);
    const TensorView tensor = arena.allocate({10000}, DataType::f32);
    fill(floats(tensor), runtime.rank());
    runtime.allreduce(tensor, {.name = "x", .op = ReduceOp::sum});
    EXPECT_EQ(wrong(floats(tensor), 3), 0U);
    runtime.barrier();
  });
}

TEST(Arena, ItsMemoryOutlivesTheRuntime) {
  std::vector<Arena> arenas(2);
  run_world(2, [&](Runtime& runtime) {
    arenas[static_cast<std::size_t>(runtime.rank())] = runtime.make_arena(1 << 12);
    runtime.barrier();
  });
  for (Arena& arena : arenas) std::ranges::fill(arena.memory(), std::byte{1});
}

TEST(CopyPastCaches, CopiesAnyBytesToAnyAlignment) {
  std::vector<std::byte> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  for (std::size_t skip = 0; skip < 70; skip += 3) {
    for (const std::size_t count : {0, 1, 63, 64, 65, 127, 128, 200, 777}) {
      std::vector<std::byte> to(1000, std::byte{0xee});
      cpu::copy_past_caches(to.data() + skip, from.data() + 5, count);
      ASSERT_TRUE(std::equal(to.begin() + static_cast<std::ptrdiff_t>(skip),
                             to.begin() + static_cast<std::ptrdiff_t>(skip + count), from.begin() + 5));
      ASSERT_EQ(to[skip + count], std::byte{0xee});
      ASSERT_TRUE(skip == 0 || to[skip - 1] == std::byte{0xee});
    }
  }
}

}  // namespace
}  // namespace hvd::test
