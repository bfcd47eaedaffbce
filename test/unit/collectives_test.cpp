#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "../support/cases.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

struct WorldCase {
  int size;
  std::vector<int> ranks_per_host;
  std::int64_t chunk_bytes;
  std::int64_t fusion_threshold;
};

std::string name_of(const WorldCase& world) {
  std::string text = std::to_string(world.size) + "Ranks";
  if (!world.ranks_per_host.empty()) text += "OnHostsOf";
  for (const int ranks : world.ranks_per_host) text += std::to_string(ranks);
  return text + "Chunk" + std::to_string(world.chunk_bytes) + "Fusion" + std::to_string(world.fusion_threshold);
}

void PrintTo(const WorldCase& world, std::ostream* out) { *out << name_of(world); }

constexpr std::int64_t no_fusion = 0;
constexpr std::int64_t small_fusion = 4096;
const std::int64_t default_fusion = Config{}.fusion_threshold;

class Collectives : public testing::TestWithParam<WorldCase> {
 protected:
  // Sanitizers are slow over many elements: shorter chunks need fewer.
  static std::int64_t chunk_bytes() {
    return sanitized ? std::min<std::int64_t>(GetParam().chunk_bytes, 1024) : GetParam().chunk_bytes;
  }
  Config config() const {
    Config config;
    config.chunk_bytes = chunk_bytes();
    config.fusion_threshold = GetParam().fusion_threshold;
    config.test_topology = GetParam().ranks_per_host;
    return config;
  }
  Program program() const { return {GetParam().size, GetParam().ranks_per_host}; }
  std::vector<Shape> shapes(DataType dtype) const {
    std::vector<Shape> all = small_shapes();
    if (chunk_bytes() > 4096) return all;  // the border is elsewhere, see below
    for (const Shape& shape : shapes_around_chunks(chunk_bytes(), dtype)) all.push_back(shape);
    return all;
  }
  void run(const Program& program) const {
    run_world(program.ranks(), config(), [&](Runtime& runtime) {
      run_together(runtime, program.cases());
      if (!HasFailure()) run_one_by_one(runtime, program.cases(), sanitized ? 97 : 23);
    });
  }
};

TEST_P(Collectives, R66_AllreduceGivesTheReferenceBitsOnEveryRankForEveryDtypeShapeAndOp) {
  Program all = program();
  for (const DataType dtype : all_dtypes) {
    for (const ReduceOp op : all_reduce_ops) {
      for (const Shape& shape : shapes(dtype)) {
        all.allreduce(dtype, shape, op, true);
        if (!sanitized) all.allreduce(dtype, shape, op, false);
      }
    }
  }
  run(all);
}

TEST_P(Collectives, PrescaleAndPostscaleAreAppliedInsideTheReduction) {
  Program all = program();
  for (const DataType dtype : all_dtypes) {
    for (const ReduceOp op : all_reduce_ops) {
      all.allreduce(dtype, {7, 3}, op, true, 0.5, 1.0);
      all.allreduce(dtype, {7, 3}, op, false, 1.0, 1.0 / 3.0);
      all.allreduce(dtype, {211}, op, false, 0.3, -2.0);
    }
  }
  run(all);
}

TEST_P(Collectives, R66_BroadcastFromEachRootGivesItsValuesToAll) {
  Program all = program();
  for (const DataType dtype : all_dtypes) {
    for (const Shape& shape : shapes(dtype)) {
      for (int root = 0; root < GetParam().size; ++root) {
        all.broadcast(dtype, shape, root, (root + static_cast<int>(shape.rank())) % 2 == 0);
        if (!sanitized) all.broadcast(dtype, shape, root, (root + static_cast<int>(shape.rank())) % 2 != 0);
      }
    }
  }
  run(all);
}

TEST_P(Collectives, R66_AllgatherOfUnequalRowsGivesThemInRankOrder) {
  Program all = program();
  const auto ranks = static_cast<std::size_t>(GetParam().size);
  for (const DataType dtype : all_dtypes) {
    const std::int64_t chunk = std::min<std::int64_t>(chunk_bytes(), 4096) / static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t most : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, chunk + 1, 3 * chunk + 5}) {
      std::vector<std::int64_t> equal(ranks, most);
      std::vector<std::int64_t> unequal(ranks);
      std::vector<std::int64_t> one_empty(ranks, most);
      one_empty[static_cast<std::size_t>(most) % ranks] = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) unequal[rank] = most * static_cast<std::int64_t>(rank % 3) / 2;
      all.allgather(dtype, {1}, equal);
      all.allgather(dtype, {1}, unequal);
      all.allgather(dtype, {1}, one_empty);
      all.allgather(dtype, {1, 0, 2}, unequal);
      if (most <= 5) all.allgather(dtype, {1, 3, 2}, unequal);
    }
  }
  run(all);
}

TEST_P(Collectives, OperationsOfAllKindsInFlightTogetherKeepApart) {
  Program all = program();
  std::vector<std::int64_t> rows(static_cast<std::size_t>(GetParam().size));
  for (std::size_t rank = 0; rank < rows.size(); ++rank) rows[rank] = static_cast<std::int64_t>(rank);
  for (int round = 0; round < 60; ++round) {
    const DataType dtype = all_dtypes[round % data_type_count];
    all.allreduce(dtype, {round, 3}, all_reduce_ops[round % 5], round % 2 == 0);
    all.broadcast(dtype, {round}, round % GetParam().size, round % 3 == 0);
    all.allgather(dtype, {1, round % 4}, rows);
  }
  run(all);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, Collectives,
    testing::Values(WorldCase{1, {}, 1024, default_fusion}, WorldCase{2, {}, 1024, default_fusion},
                    WorldCase{2, {}, 4096, no_fusion}, WorldCase{3, {}, 256, small_fusion},
                    WorldCase{4, {}, 4096, default_fusion}, WorldCase{5, {}, 1024, small_fusion},
                    WorldCase{8, {}, 512 << 10, default_fusion}, WorldCase{2, {1, 1}, 1024, default_fusion},
                    WorldCase{3, {2, 1}, 4096, small_fusion}, WorldCase{4, {1, 2, 1}, 1024, default_fusion},
                    WorldCase{4, {2, 2}, 4096, default_fusion}, WorldCase{4, {3, 1}, 256, no_fusion},
                    WorldCase{3, {1, 1, 1}, 512 << 10, default_fusion}),
    [](const auto& info) { return name_of(info.param); });

// ---- single properties

template <typename T>
std::vector<T> allreduced(Runtime& runtime, std::vector<T> values, ReduceOp op = ReduceOp::average) {
  runtime.allreduce(std::span<T>(values), {.name = "x", .op = op});
  return values;
}

TEST(Allreduce, R42_HalfPrecisionIsSummedInSinglePrecisionAndRoundedOnce) {
  run_world(4, [](Runtime& runtime) {
    const std::vector<float16> large(5, float16(30000.0F));
    EXPECT_EQ(allreduced(runtime, large), large);
    const std::vector<float16> tiny(5, float16(6e-8F));
    EXPECT_NE(tiny[0].bits, 0);
    EXPECT_EQ(allreduced(runtime, tiny), tiny);
    const std::vector<float16> largest(5, float16(65504.0F));
    EXPECT_EQ(allreduced(runtime, largest, ReduceOp::sum),
              std::vector<float16>(5, float16(std::numeric_limits<float>::infinity())));
    EXPECT_EQ(allreduced(runtime, largest), largest);
    const std::vector<bfloat16> huge(5, bfloat16(3e37F));
    EXPECT_EQ(allreduced(runtime, huge), huge);
  });
}

TEST(Allreduce, R43_AnAverageOfIntegersTruncatesTowardZero) {
  run_world(2, [](Runtime& runtime) {
    const bool first = runtime.rank() == 0;
    EXPECT_THAT(allreduced(runtime, first ? std::vector<std::int32_t>{3, -3} : std::vector<std::int32_t>{0, 0}),
                testing::ElementsAre(1, -1));
    EXPECT_THAT(allreduced(runtime,
                           first ? std::vector<std::int8_t>{127, -128, 127} : std::vector<std::int8_t>{127, -128, 126}),
                testing::ElementsAre(127, -128, 126));
    EXPECT_THAT(allreduced(runtime, std::vector<std::uint64_t>{~std::uint64_t{0}, 1}),
                testing::ElementsAre(~std::uint64_t{0}, 1U));
    EXPECT_THAT(allreduced(runtime, std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}),
                testing::ElementsAre(std::numeric_limits<std::int64_t>::min()));
  });
}

TEST(Allreduce, R44_AnAverageDependsOnTheNumberOfRanksNotOfElements) {
  run_world(2, [](Runtime& runtime) {
    EXPECT_EQ(allreduced(runtime, std::vector<float>(5, 1.0F)), std::vector<float>(5, 1.0F));
  });
  run_world(3, [](Runtime& runtime) {
    EXPECT_EQ(allreduced(runtime, std::vector<std::int64_t>(7, 10 + runtime.rank())), std::vector<std::int64_t>(7, 11));
    EXPECT_EQ(allreduced(runtime, std::vector<float>(7, 0.1F)), std::vector<float>(7, (0.1F + 0.1F + 0.1F) / 3.0F));
  });
}

TEST(Allreduce, AverageIsTheDefault) {
  run_world(2, [](Runtime& runtime) {
    std::vector<double> values(3, runtime.rank());
    runtime.allreduce(std::span(values));
    EXPECT_EQ(values, std::vector<double>(3, 0.5));
  });
}

TEST(Collective, R64_ScalarsAreReducedAndBroadcastButNotGathered) {
  run_world(2, [](Runtime& runtime) {
    float value = static_cast<float>(runtime.rank()) + 1.0F;
    const TensorView scalar(&value, Shape{}, DataType::f32);
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return runtime.allgather(scalar, {.name = "x"}); }),
              "allgather 'x': needs 1 or more dimensions, got a scalar");
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return runtime.allgather_async(scalar, {.name = "x"}); }),
              "allgather 'x': needs 1 or more dimensions, got a scalar");
    runtime.allreduce(scalar, {.name = "x", .op = ReduceOp::sum});
    EXPECT_EQ(value, 3.0F);
    value = static_cast<float>(runtime.rank());
    runtime.broadcast(scalar, {.name = "x", .root_rank = 1});
    EXPECT_EQ(value, 1.0F);
  });
}

TEST(Collective, R66_WithoutElementsMemoryIsNotNeeded) {
  for (const int size : {1, 4}) {
    run_world(size, [](Runtime& runtime) {
      const TensorView nothing(nullptr, Shape{1, 0, 2}, DataType::f64);
      runtime.allreduce(nothing, {.name = "x"});
      runtime.allreduce(ConstTensorView(nothing), nothing, {.name = "x"});
      runtime.broadcast(nothing, {.name = "x"});
      const Tensor gathered = runtime.allgather(nothing, {.name = "x"});
      EXPECT_EQ(gathered.shape(), Shape({runtime.size(), 0, 2}));
      EXPECT_EQ(gathered.dtype(), DataType::f64);
      const Tensor rows = runtime.allgather(TensorView(nullptr, Shape{0, 3}, DataType::i8), {.name = "x"});
      EXPECT_EQ(rows.shape(), Shape({0, 3}));
      EXPECT_EQ(rows.dtype(), DataType::i8);
    });
  }
}

TEST(Collective, ManyChunksOfTheDefaultSizeArePipelined) {
  Config config;
  if (sanitized) config.chunk_bytes /= 16;
  const std::int64_t less = sanitized ? 16 : 1;
  Program program(3, {});
  program.allreduce(DataType::f32, {1'000'003 / less}, ReduceOp::average, false);
  program.broadcast(DataType::u8, {5'000'011 / less}, 2, true);
  program.allgather(DataType::i16, {1}, {700'001 / less, 0, 1'300'003 / less});
  program.allreduce(DataType::f16, {1'000'003 / less}, ReduceOp::sum, true);
  run_world(3, config, [&](Runtime& runtime) { run_together(runtime, program.cases()); });
}

// Which tensors share a batch depends on timing; a batch that is under way lets the rest gather.
TEST(Collective, AFusedBroadcastFillsTheRootsOutputsBesideTensorsInPlace) {
  Program program(2, {});
  for (int i = 0; i < 2; ++i) program.allreduce(DataType::f32, {repetitions(300'000)}, ReduceOp::sum, true);
  for (int i = 0; i < 40; ++i) program.broadcast(DataType::i32, {10 + i}, 1, i % 2 == 0);
  run_world(2, [&](Runtime& runtime) { run_together(runtime, program.cases()); });
}

TEST(Collective, R44_TheBitsDoNotDependOnWhatIsFused) {
  Program program(3, {});
  for (int i = 0; i < 100; ++i)
    program.allreduce(i % 2 == 0 ? DataType::f32 : DataType::bf16, {1 + 7 * i}, ReduceOp::average, i % 3 == 0);
  for (const std::int64_t threshold : {no_fusion, std::int64_t{600}, small_fusion, default_fusion}) {
    Config config;
    config.fusion_threshold = threshold;
    run_world(3, config, [&](Runtime& runtime) {
      run_together(runtime, program.cases());
      run_one_by_one(runtime, program.cases(), 1);
    });
  }
}

TEST(Collective, NamesAreReusedStepAfterStep) {
  Program program(2, {});
  for (int i = 0; i < 50; ++i) program.allreduce(DataType::f32, {i}, ReduceOp::average, true);
  run_world(2, [&](Runtime& runtime) {
    for (int step = 0; step < repetitions(50); ++step) run_together(runtime, program.cases());
  });
}

TEST(Barrier, NobodyPassesBeforeAllHaveCome) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{2, 1, 1}}) {
    Config config;
    config.test_topology = hosts;
    std::atomic<int> come{0};
    run_world(4, config, [&](Runtime& runtime) {
      for (int round = 1; round <= 20; ++round) {
        come.fetch_add(1);
        runtime.barrier();
        EXPECT_GE(come.load(), 4 * round);
        runtime.barrier({.name = "named"});
        EXPECT_LE(come.load(), 4 * (round + 1));
      }
    });
  }
}

TEST(Topology, PretendedHostsShowInTheQueries) {
  Config config;
  config.test_topology = {3, 1};
  run_world(4, config, [](Runtime& runtime) {
    const bool last = runtime.rank() == 3;
    EXPECT_EQ(runtime.size(), 4);
    EXPECT_EQ(runtime.local_size(), last ? 1 : 3);
    EXPECT_EQ(runtime.local_rank(), last ? 0 : runtime.rank());
    EXPECT_EQ(runtime.cross_size(), runtime.local_rank() == 0 ? 2 : 1);
    EXPECT_EQ(runtime.cross_rank(), last ? 1 : 0);
    EXPECT_FALSE(runtime.is_homogeneous());
  });
  config.test_topology = {2, 2};
  run_world(4, config, [](Runtime& runtime) {
    EXPECT_EQ(runtime.local_rank(), runtime.rank() % 2);
    EXPECT_EQ(runtime.cross_rank(), runtime.rank() / 2);
    EXPECT_EQ(runtime.cross_size(), 2);
    EXPECT_TRUE(runtime.is_homogeneous());
  });
}

}  // namespace
}  // namespace hvd::test
