#include <functional>

#include "torch_fixture.h"

// Training on n ranks against training of one process, which sees the joined batch.
namespace hvd::test {
namespace {

using ::torch::optim::Optimizer;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<::torch::Tensor>)>;

constexpr std::int64_t rows_of_rank = 4;

::torch::nn::Sequential make_net() {
  ::torch::manual_seed(3);
  return ::torch::nn::Sequential(::torch::nn::Linear(6, 8), ::torch::nn::Tanh(), ::torch::nn::Linear(8, 3));
}

// The same on all ranks: the joined batch of one backward pass.
std::pair<::torch::Tensor, ::torch::Tensor> joined_batch(int step, int pass) {
  ::torch::manual_seed(static_cast<std::uint64_t>(1000 * step + pass));
  const std::int64_t rows = rows_of_rank * hvd::size();
  return {::torch::randn({rows, 6}), ::torch::randint(3, {rows}, ::torch::kInt64)};
}

void backward(::torch::nn::Sequential& net, const ::torch::Tensor& input, const ::torch::Tensor& target, int passes) {
  (::torch::nn::functional::cross_entropy(net->forward(input), target) / passes).backward();
}

std::vector<::torch::Tensor> train_alone(const MakeOptimizer& make, int steps, int passes) {
  auto net = make_net();
  const auto optimizer = make(net->parameters());
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    for (int pass = 0; pass < passes; ++pass) {
      const auto [input, target] = joined_batch(step, pass);
      backward(net, input, target, passes);
    }
    optimizer->step();
  }
  return net->parameters();
}

std::vector<::torch::Tensor> train_together(const MakeOptimizer& make, int steps, int passes) {
  auto net = make_net();
  const auto plain = make(net->parameters());
  torch::broadcast_parameters(*net);
  torch::DistributedOptimizer optimizer(*plain, net->named_parameters(), {.backward_passes_per_step = passes});
  const std::int64_t first = rows_of_rank * hvd::rank();
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    for (int pass = 0; pass < passes; ++pass) {
      const auto [input, target] = joined_batch(step, pass);
      backward(net, input.slice(0, first, first + rows_of_rank), target.slice(0, first, first + rows_of_rank), passes);
    }
    optimizer.step();
  }
  return net->parameters();
}

struct Case {
  const char* name;
  MakeOptimizer make;
  int passes;
};

std::vector<Case> cases() {
  using ::torch::optim::AdamOptions;
  using ::torch::optim::SGDOptions;
  const MakeOptimizer sgd = [](auto parameters) {
    return std::make_unique<::torch::optim::SGD>(std::move(parameters), SGDOptions(0.2));
  };
  const MakeOptimizer momentum = [](auto parameters) {
    return std::make_unique<::torch::optim::SGD>(std::move(parameters),
                                                 SGDOptions(0.1).momentum(0.9).weight_decay(1e-3));
  };
  const MakeOptimizer adam = [](auto parameters) {
    return std::make_unique<::torch::optim::Adam>(std::move(parameters), AdamOptions(0.01));
  };
  return {{"Sgd", sgd, 1},          {"Momentum", momentum, 1},          {"Adam", adam, 1},
          {"SgdIn3Passes", sgd, 3}, {"MomentumIn3Passes", momentum, 3}, {"AdamIn3Passes", adam, 3}};
}

class ReferenceTest : public TorchTest, public testing::WithParamInterface<Case> {};

TEST_P(ReferenceTest, WeightsAfter20StepsEqualThoseOfOneProcess) {
  const auto together = train_together(GetParam().make, 20, GetParam().passes);
  const auto alone = train_alone(GetParam().make, 20, GetParam().passes);
  for (std::size_t k = 0; k < alone.size(); ++k) {
    EXPECT_TRUE(equal_on_all_ranks(together[k]));
    EXPECT_TRUE(::torch::allclose(together[k], alone[k], 1e-4, 1e-5))
        << "parameter " << k << ": largest difference " << (together[k] - alone[k]).abs().max().item<float>();
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ReferenceTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

using ClosureTest = TorchTest;

// The line search looks at the loss, so the ranks stay together only if they see the same one.
TEST_F(ClosureTest, LbfgsWithLineSearchEqualsOneProcess) {
  const auto train = [](bool distributed) {
    auto net = make_net();
    ::torch::optim::LBFGS lbfgs(net->parameters(),
                                ::torch::optim::LBFGSOptions(0.5).max_iter(4).line_search_fn("strong_wolfe"));
    const auto batch = joined_batch(0, 0);
    const std::int64_t first = distributed ? rows_of_rank * hvd::rank() : 0;
    const std::int64_t last = distributed ? first + rows_of_rank : batch.first.size(0);
    std::unique_ptr<torch::DistributedOptimizer> optimizer;
    if (distributed) optimizer = std::make_unique<torch::DistributedOptimizer>(lbfgs, net->named_parameters());
    const auto closure = [&] {
      distributed ? optimizer->zero_grad() : lbfgs.zero_grad();
      auto loss = ::torch::nn::functional::cross_entropy(net->forward(batch.first.slice(0, first, last)),
                                                         batch.second.slice(0, first, last));
      loss.backward();
      return loss;
    };
    for (int step = 0; step < 3; ++step) distributed ? optimizer->step(closure) : lbfgs.step(closure);
    return net->parameters();
  };
  const auto together = train(true);
  const auto alone = train(false);
  for (std::size_t k = 0; k < alone.size(); ++k) {
    EXPECT_TRUE(equal_on_all_ranks(together[k]));
    EXPECT_TRUE(::torch::allclose(together[k], alone[k], 1e-3, 1e-4));
  }
}

using GanTest = TorchTest;

// Generator and discriminator, one wrapper each; the generator's loss runs through the discriminator.
TEST_F(GanTest, R21TwoWrappersOverTwoModelsEqualOneProcess) {
  const auto train = [](bool distributed) {
    ::torch::manual_seed(5);
    ::torch::nn::Linear generator(2, 3);
    ::torch::nn::Linear discriminator(3, 1);
    ::torch::optim::SGD plain_g(generator->parameters(), 0.1);
    ::torch::optim::SGD plain_d(discriminator->parameters(), 0.1);
    std::unique_ptr<torch::DistributedOptimizer> g;
    std::unique_ptr<torch::DistributedOptimizer> d;
    if (distributed) {
      g = std::make_unique<torch::DistributedOptimizer>(plain_g, generator->named_parameters());
      d = std::make_unique<torch::DistributedOptimizer>(plain_d, discriminator->named_parameters());
    }
    for (int round = 0; round < 5; ++round) {
      ::torch::manual_seed(static_cast<std::uint64_t>(round));
      auto noise = ::torch::randn({rows_of_rank * hvd::size(), 2});
      if (distributed) noise = noise.slice(0, rows_of_rank * hvd::rank(), rows_of_rank * (hvd::rank() + 1));
      distributed ? g->zero_grad() : plain_g.zero_grad();
      discriminator->forward(generator->forward(noise)).pow(2).mean().backward();
      distributed ? g->step() : plain_g.step();
      distributed ? d->zero_grad() : plain_d.zero_grad();
      (discriminator->forward(generator->forward(noise).detach()) - 1).pow(2).mean().backward();
      distributed ? d->step() : plain_d.step();
    }
    auto parameters = generator->parameters();
    for (const auto& each : discriminator->parameters()) parameters.push_back(each);
    return parameters;
  };
  const auto together = train(true);
  const auto alone = train(false);
  for (std::size_t k = 0; k < alone.size(); ++k) EXPECT_TRUE(::torch::allclose(together[k], alone[k], 1e-4, 1e-6)) << k;
}

}  // namespace
}  // namespace hvd::test
