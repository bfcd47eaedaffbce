#include <algorithm>
#include <map>
#include <set>

#include "torch_fixture.h"

namespace hvd::test {
namespace {

using torch::DistributedSampler;
using torch::DistributedSamplerOptions;

std::vector<std::size_t> draw(DistributedSampler& sampler, std::size_t batch_size = 3) {
  std::vector<std::size_t> drawn;
  while (const auto batch = sampler.next(batch_size)) {
    EXPECT_LE(batch->size(), batch_size);
    drawn.insert(drawn.end(), batch->begin(), batch->end());
  }
  return drawn;
}

class SamplerTest : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(SamplerTest, ShardsHaveOneSizeAndCoverAllSamples) {
  const auto [size, replicas] = GetParam();
  for (const bool shuffle : {false, true}) {
    for (const bool drop_last : {false, true}) {
      std::map<std::size_t, int> times;
      const std::size_t each = drop_last ? size / replicas : (size + replicas - 1) / replicas;
      for (std::size_t rank = 0; rank < replicas; ++rank) {
        DistributedSampler sampler(
            size, {.shuffle = shuffle, .seed = 4, .drop_last = drop_last, .num_replicas = replicas, .rank = rank});
        EXPECT_EQ(sampler.local_size(), each);
        const auto drawn = draw(sampler);
        EXPECT_EQ(drawn.size(), each);
        for (const std::size_t index : drawn) {
          EXPECT_LT(index, size);
          ++times[index];
        }
      }
      std::size_t repeated = 0;
      for (const auto& [index, count] : times) repeated += static_cast<std::size_t>(count) - 1;
      EXPECT_LE(repeated, drop_last ? 0 : replicas - 1);
      EXPECT_GE(times.size(), drop_last ? each * replicas : size);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SamplerTest,
                         testing::Values(std::pair(0, 3), std::pair(1, 1), std::pair(1, 4), std::pair(2, 7),
                                         std::pair(10, 1), std::pair(10, 2), std::pair(10, 3), std::pair(64, 8),
                                         std::pair(1001, 7)),
                         [](const auto& info) {
                           return std::to_string(info.param.first) + "Over" + std::to_string(info.param.second);
                         });

TEST(DistributedSamplerTest, TheOrderDependsOnSeedAndEpochOnly) {
  const auto order = [](std::uint64_t seed, std::size_t epoch) {
    DistributedSampler sampler(100, {.seed = seed, .num_replicas = 2, .rank = 1});
    sampler.set_epoch(epoch);
    return draw(sampler);
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
}

TEST(DistributedSamplerTest, WithoutShufflingRanksTakeTurns) {
  DistributedSampler sampler(7, {.shuffle = false, .num_replicas = 3, .rank = 1});
  EXPECT_THAT(draw(sampler), testing::ElementsAre(1, 4, 0));
  EXPECT_FALSE(sampler.next(1).has_value());
  sampler.reset(9);
  EXPECT_THAT(draw(sampler), testing::ElementsAre(1, 4, 7));
}

TEST(DistributedSamplerTest, SetEpochReachesTheCopyInsideADataLoader) {
  DistributedSampler sampler(50, {.seed = 1, .num_replicas = 1, .rank = 0});
  DistributedSampler inside = sampler;
  const auto first = draw(inside);
  sampler.set_epoch(1);
  EXPECT_EQ(inside.epoch(), 1U);
  EXPECT_NE(draw(inside), first);
}

TEST(DistributedSamplerTest, GoesOnWhereItWasSaved) {
  DistributedSampler sampler(20, {.num_replicas = 2, .rank = 0});
  sampler.set_epoch(3);
  const auto before = sampler.next(4);
  ::torch::serialize::OutputArchive saved;
  sampler.save(saved);
  std::stringstream stream;
  saved.save_to(stream);
  const auto rest = draw(sampler);

  DistributedSampler other(20, {.num_replicas = 2, .rank = 0});
  ::torch::serialize::InputArchive archive;
  archive.load_from(stream);
  other.load(archive);
  EXPECT_EQ(other.epoch(), 3U);
  EXPECT_EQ(draw(other), rest);
}

TEST(DistributedSamplerTest, ARankOutOfRangeIsAnError) {
  EXPECT_EQ(error_of<InvalidArgumentError>([] { DistributedSampler(10, {.num_replicas = 2, .rank = 2}); }),
            "DistributedSampler: rank 2 of 2 replicas does not exist");
}

TEST(LearningRateWarmupTest, RisesLinearlyToTheScaledRateOfEveryGroup) {
  ::torch::optim::SGD sgd(
      {::torch::optim::OptimizerParamGroup({parameter({1})}),
       ::torch::optim::OptimizerParamGroup({parameter({2})}, std::make_unique<::torch::optim::SGDOptions>(0.4))},
      ::torch::optim::SGDOptions(0.1));
  torch::LearningRateWarmup warmup(sgd, {.warmup_epochs = 2.0, .scale = 5.0});
  const auto rates = [&](double epochs) {
    warmup.set_progress(epochs);
    return std::pair(sgd.param_groups()[0].options().get_lr(), sgd.param_groups()[1].options().get_lr());
  };
  for (const auto& [epochs, factor] :
       {std::pair(0.0, 1.0), std::pair(0.5, 2.0), std::pair(2.0, 5.0), std::pair(9.0, 5.0)}) {
    EXPECT_DOUBLE_EQ(warmup.factor(epochs), factor);
    EXPECT_DOUBLE_EQ(rates(epochs).first, 0.1 * factor);
    EXPECT_DOUBLE_EQ(rates(epochs).second, 0.4 * factor);
  }
}

TEST(LearningRateWarmupTest, WithoutWarmupTheRateIsScaledAtOnce) {
  ::torch::optim::SGD sgd({parameter({1})}, 0.1);
  const torch::LearningRateWarmup warmup(sgd, {.warmup_epochs = 0.0, .scale = 8.0});
  EXPECT_DOUBLE_EQ(warmup.factor(0.0), 8.0);
  EXPECT_THROW(torch::LearningRateWarmup(sgd, {.warmup_epochs = -1.0, .scale = 1.0}), InvalidArgumentError);
  EXPECT_THROW(torch::LearningRateWarmup(sgd, {.warmup_epochs = 1.0, .scale = 0.0}), InvalidArgumentError);
}

}  // namespace
}  // namespace hvd::test
