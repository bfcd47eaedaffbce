#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../support/world.h"

namespace hvd::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// 200 steps of gradient descent on data of each rank's own; then all have the same weights, bit by bit.
TEST(Consistency, R50_OneWeightChangedByHandIsFoundByTensorAndRank) {
  run_world(4, [](Runtime& runtime) {
    std::vector<float> weights(7, 0.5F);
    std::vector<double> bias(3, 0.25);
    for (int step = 0; step < repetitions(200); ++step) {
      std::vector<float> gradient(7);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = weights[i] - 0.1F * static_cast<float>(runtime.rank() + static_cast<int>(i));
      runtime.allreduce(std::span(gradient), {.name = "gradient"});
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1F * gradient[i];
    }
    const std::array<ConstTensorView, 2> tensors{std::span<const float>(weights), std::span<const double>(bias)};
    const std::array<std::string, 2> names{"weights", "bias"};
    EXPECT_NO_THROW(runtime.check_consistency(tensors, names));
    if (runtime.rank() == 2) bias[1] = -bias[1];
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.check_consistency(tensors, names); }),
                AllOf(StartsWith("check_consistency: 'bias' float64[3] differs: [0,1,3] "), HasSubstr("; [2] ")));
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.check_consistency(tensors); }),
                StartsWith("check_consistency: tensor 1 float64[3] differs: [0,1,3] "));
    expect_sum_works(runtime, "after");
  });
}

TEST(Consistency, R50_BitsAreComparedNotValues) {
  run_world(2, [](Runtime& runtime) {
    const std::vector<float> zero{runtime.rank() == 0 ? 0.0F : -0.0F};
    const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
    const std::array<ConstTensorView, 1> zeros{std::span<const float>(zero)};
    const std::array<ConstTensorView, 1> nans{std::span<const float>(nan)};
    EXPECT_NE(thrown_by<MismatchError>([&] { runtime.check_consistency(zeros); }), "");
    EXPECT_NO_THROW(runtime.check_consistency(nans));
  });
}

TEST(Consistency, R50_MoreTensorsAnotherShapeAndAnotherDtypeAreFound) {
  run_world(3, [](Runtime& runtime) {
    const bool odd = runtime.rank() == 1;
    const std::vector<float> floats = ones(6);
    const std::vector<std::int32_t> integers(6, 0x3f800000);  // the same bytes
    const ConstTensorView plain(std::span<const float>(floats), Shape{6});
    const ConstTensorView square(std::span<const float>(floats), Shape{2, 3});
    const auto different = [&](const std::vector<ConstTensorView>& tensors) {
      return thrown_by<MismatchError>([&] { runtime.check_consistency(tensors); });
    };
    EXPECT_EQ(different(std::vector<ConstTensorView>(odd ? 1 : 2, plain)),
              "check_consistency: numbers of tensors differ: [0,2] 2 tensors; [1] 1 tensors");
    EXPECT_THAT(different({plain, odd ? square : plain}), HasSubstr("tensor 1"));
    EXPECT_THAT(different({odd ? ConstTensorView(std::span<const std::int32_t>(integers)) : plain}),
                HasSubstr("tensor 0"));
    EXPECT_NO_THROW(runtime.check_consistency({}));
  });
}

TEST(Consistency, R50_WithinAProcessSet) {
  Config config;
  config.process_sets = {{0, 2}};
  run_world(3, config, [](Runtime& runtime) {
    if (runtime.rank() == 1) return runtime.barrier();
    const std::vector<float> values(3, runtime.rank() == 0 ? 1.0F : 2.0F);
    const std::array<ConstTensorView, 1> tensors{std::span<const float>(values)};
    EXPECT_THAT(thrown_by<MismatchError>([&] { runtime.check_consistency(tensors, {}, {1}); }),
                AllOf(HasSubstr("[0] "), HasSubstr("[2] ")));
    runtime.barrier();
  });
}

TEST(Consistency, R50_NamesForOtherThanAllTensorsAreRefused) {
  run_world(2, [](Runtime& runtime) {
    const std::vector<float> values = ones(3);
    const std::array<ConstTensorView, 1> tensors{std::span<const float>(values)};
    const std::array<std::string, 2> names{"a", "b"};
    EXPECT_NE(thrown_by<InvalidArgumentError>([&] { runtime.check_consistency(tensors, names); }), "");
    expect_sum_works(runtime, "after");
  });
}

}  // namespace
}  // namespace hvd::test
