#include <algorithm>
#include <optional>

#include "torch_fixture.h"

namespace hvd::test {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using torch::DistributedOptimizer;
using ::torch::optim::SGD;

// Each test looks at gradients through plain SGD with rate 1, which moves a parameter by minus its gradient.
class AdapterTest : public TorchTest {
 protected:
  // The mean over the ranks of f(rank).
  template <typename F>
  static float mean(F&& f) {
    float sum = 0;
    for (int rank = 0; rank < hvd::size(); ++rank) sum += static_cast<float>(f(rank));
    return sum / static_cast<float>(hvd::size());
  }
  static float mean_rank() {
    return mean([](int rank) { return rank; });
  }

  // A backward pass after which each element of the parameter's gradient has grown by `gradient`.
  static void backward(const ::torch::Tensor& tensor, double gradient) { (tensor * gradient).sum().backward(); }

  static std::string step_error(DistributedOptimizer& optimizer) {
    return error_of<Error>([&] { optimizer.step(); });
  }
};

TEST_F(AdapterTest, GradientsAreAveragedOverTheRanks) {
  const auto w = parameter({1, 2});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  backward(w, hvd::rank() + 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(FloatEq(0 - mean_rank()), FloatEq(1 - mean_rank())));
}

TEST_F(AdapterTest, WithSumTheyAreAddedUp) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}}, {.op = ReduceOp::sum});
  backward(w, 2);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(1 - 2 * hvd::size()));
}

TEST_F(AdapterTest, R20ASecondWrapRaisesAndNamesTheParameter) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  std::optional<DistributedOptimizer> optimizer(std::in_place, sgd, Parameters{{"fc.weight", w}});
  EXPECT_EQ(error_of<InvalidArgumentError>([&] {
              DistributedOptimizer(sgd, Parameters{{"fc.weight", w}});
            }),
            "DistributedOptimizer: parameter 'fc.weight' already belongs to another DistributedOptimizer");
  backward(w, 1);
  optimizer->step();
  EXPECT_THAT(values_of(w), ElementsAre(0));
  optimizer.reset();
  optimizer.emplace(sgd, Parameters{{"fc.weight", w}});  // once the first is gone, it may be wrapped again
  optimizer->zero_grad();
  backward(w, 1);
  optimizer->step();
  EXPECT_THAT(values_of(w), ElementsAre(-1));
}

TEST_F(AdapterTest, R22WithoutNamesParametersAreNamedByTheirPlace) {
  SGD sgd({::torch::optim::OptimizerParamGroup({parameter({1}), parameter({2})}),
           ::torch::optim::OptimizerParamGroup({parameter({3}), parameter({4})})},
          ::torch::optim::SGDOptions(1.0));
  DistributedOptimizer optimizer(sgd);
  EXPECT_THAT(optimizer.parameter_names(), ElementsAre("group0.0", "group0.1", "group1.0", "group1.1"));
  for (const auto& group : sgd.param_groups()) {
    for (const auto& each : group.params()) backward(each, 1);
  }
  optimizer.step();
  EXPECT_THAT(values_of(sgd.param_groups()[1].params()[1]), ElementsAre(3));
}

TEST_F(AdapterTest, R23ParametersWithoutANameAreListedByPlaceAndShape) {
  const auto named = parameter({1});
  const auto unnamed = parameter({1, 2, 3});
  SGD sgd({::torch::optim::OptimizerParamGroup({named, unnamed}),
           ::torch::optim::OptimizerParamGroup({::torch::ones({2, 3}).set_requires_grad(true)})},
          ::torch::optim::SGDOptions(1.0));
  EXPECT_EQ(error_of<InvalidArgumentError>([&] {
              DistributedOptimizer(sgd, Parameters{{"a", named}});
            }),
            "DistributedOptimizer: parameters without a name: group 0 position 1 float32[3]; group 1 position 0 "
            "float32[2, 3]");
}

TEST_F(AdapterTest, R23ANameForTwoParametersIsAnError) {
  const auto a = parameter({1});
  const auto b = parameter({1, 2});
  SGD sgd({a, b}, 1.0);
  EXPECT_EQ(error_of<InvalidArgumentError>([&] {
              DistributedOptimizer(sgd, Parameters{{"w", a}, {"w", b}});
            }),
            "DistributedOptimizer: two parameters are named 'w': float32[1] and float32[2]");
}

TEST_F(AdapterTest, ParametersOfATypeThatIsNotCarriedAreNamed) {
  const auto z = ::torch::empty({2}, ::torch::kComplexHalf).set_requires_grad(true);
  SGD sgd({z}, 1.0);
  EXPECT_EQ(error_of<InvalidArgumentError>([&] {
              DistributedOptimizer(sgd, Parameters{{"fc.z", z}});
            }),
            "DistributedOptimizer: parameter 'fc.z': tensors of type ComplexHalf are not supported");
}

TEST_F(AdapterTest, RanksWithOtherParametersAreAnErrorOnAllRanks) {
  if (hvd::size() != 2) GTEST_SKIP() << "needs two ranks";
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  const std::string name = hvd::rank() == 0 ? "a" : "b";
  EXPECT_EQ(error_of<MismatchError>([&] {
              DistributedOptimizer(sgd, Parameters{{name, w}});
            }),
            "DistributedOptimizer: rank 0 lacks 'b'; rank 1 lacks 'a'");
}

TEST_F(AdapterTest, R85MoreBackwardPassesThanAnnouncedAreAnError) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"fc.w", w}}, {.backward_passes_per_step = 8});
  const auto epoch = [&] {
    optimizer.set_backward_passes_per_step(8);
    for (int batch = 1; batch <= 20; ++batch) {
      backward(w, 1);
      if (batch % 8 == 0) {
        optimizer.step();
        optimizer.zero_grad();
      }
    }
  };
  epoch();
  EXPECT_EQ(error_of<InvalidArgumentError>(epoch),
            "parameter 'fc.w': 9th backward, backward_passes_per_step=8, 4 left over from before");
  EXPECT_THAT(values_of(w.grad()), ElementsAre(8));  // autograd was stopped before it wrote to memory in flight
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(1 - 24));
}

TEST_F(AdapterTest, R85AStepOnAPartOfTheGroupTakesTheSumOfWhatIsThere) {
  const auto w = parameter({0});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}}, {.backward_passes_per_step = 8});
  for (int pass = 0; pass < 4; ++pass) backward(w, 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(-4));
  EXPECT_THROW(optimizer.set_backward_passes_per_step(0), InvalidArgumentError);
}

TEST_F(AdapterTest, R87StepAfterSynchronizeDoesNotReduceAgain) {
  const auto w = parameter({3, 4});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  const auto counter = std::make_shared<AllreduceCounter>(".w");
  hvd::runtime().add_observer(counter);
  (w * ::torch::tensor({3.0F, 4.0F})).sum().backward();
  optimizer.synchronize();
  ::torch::nn::utils::clip_grad_norm_({w}, 1.0);
  optimizer.step();
  EXPECT_NEAR(values_of(w)[0], 3 - 0.6, 1e-5);
  EXPECT_NEAR(values_of(w)[1], 4 - 0.8, 1e-5);
  EXPECT_EQ(counter->count(), hvd::size() == 1 ? 0 : 1);  // one rank has nothing to reduce
}

TEST_F(AdapterTest, R88StepWithoutReducedGradientsIsAnError) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  w.mutable_grad() = ::torch::autograd::grad({(w * 2).sum()}, {w})[0];  // never went through backward()
  EXPECT_THAT(step_error(optimizer), HasSubstr("no gradient was reduced since the last step"));
  EXPECT_THAT(values_of(w), ElementsAre(1));
  optimizer.zero_grad();
  backward(w, 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(0));
  EXPECT_THAT(step_error(optimizer), HasSubstr("no gradient was reduced since the last step"));
}

TEST_F(AdapterTest, R89ZeroGradDropsWhatIsInFlight) {
  const auto w = parameter({0});
  const auto v = parameter({0});
  SGD sgd({w, v}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}, {"v", v}});
  backward(hvd::rank() == 0 ? w : v, 100);  // in flight on some ranks only
  optimizer.zero_grad();
  backward(w, hvd::rank() + 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(FloatEq(-1 - mean_rank())));
  EXPECT_THAT(values_of(v), ElementsAre(0));
}

TEST_F(AdapterTest, ZeroGradOnSomeRanksAndStepOnOthersIsAnErrorOnAll) {
  if (hvd::size() != 2) GTEST_SKIP() << "needs two ranks";
  const auto w = parameter({0});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  backward(w, 1);
  EXPECT_THAT(
      error_of<MismatchError>([&] { hvd::rank() == 0 ? optimizer.zero_grad() : static_cast<void>(optimizer.step()); }),
      HasSubstr("calls differ: [0] zero_grad() after backward(); [1] step() or synchronize()"));
  optimizer.zero_grad();
  backward(w, 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(-1));
}

TEST_F(AdapterTest, R90ABranchUsedOnSomeRanksCountsAsZeroOnTheOthers) {
  const auto a = parameter({0});
  const auto b = parameter({0});
  SGD sgd({a, b}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}});
  backward(hvd::rank() == 0 ? a : b, 6);
  optimizer.step();
  EXPECT_THAT(values_of(a), ElementsAre(FloatEq(-mean([](int rank) { return rank == 0 ? 6 : 0; }))));
  EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-mean([](int rank) { return rank == 0 ? 0 : 6; }))));
}

TEST_F(AdapterTest, R91UnusedParametersAreLeftAloneAndListedByName) {
  const auto used = parameter({0});
  const auto unused = parameter({5});
  const auto frozen = parameter({5});
  frozen.set_requires_grad(false);
  SGD sgd({used, unused, frozen}, ::torch::optim::SGDOptions(1.0).weight_decay(0.1));
  DistributedOptimizer optimizer(sgd, Parameters{{"used", used}, {"head.unused", unused}, {"frozen", frozen}});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    backward(used, 1);
    optimizer.step();
    EXPECT_THAT(optimizer.unused_parameters(), ElementsAre("head.unused"));
  }
  EXPECT_FALSE(unused.grad().defined());  // so that the optimizer skips it, weight decay included
  EXPECT_THAT(values_of(unused), ElementsAre(5));
  optimizer.zero_grad();
  backward(used, 1);
  if (hvd::rank() == 0) backward(unused, 1);
  optimizer.step();
  EXPECT_THAT(optimizer.unused_parameters(), ElementsAre());
}

TEST_F(AdapterTest, R92PassesThatUseDifferentLayersReduceThemAll) {
  const auto a = parameter({0});
  const auto b = parameter({0});
  SGD sgd({a, b}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}}, {.backward_passes_per_step = 2});
  for (int step = 1; step <= 2; ++step) {
    optimizer.zero_grad();
    backward(a, hvd::rank());
    backward(b, hvd::rank() + 1);
    optimizer.step();
    EXPECT_THAT(values_of(a), ElementsAre(FloatEq(-static_cast<float>(step) * mean_rank())));
    EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-static_cast<float>(step) * (mean_rank() + 1))));
  }
}

TEST_F(AdapterTest, R93UnlikeInitialWeightsAreNamedAtTheFirstStep) {
  if (hvd::size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto same = parameter({1});
  const auto unlike = parameter({static_cast<float>(hvd::rank())});
  SGD sgd({same, unlike}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"same", same}, {"unlike", unlike}});
  backward(same, 1);
  const auto text = error_of<MismatchError>([&] { optimizer.step(); });
  EXPECT_THAT(text, HasSubstr("weights differ between ranks before the first step: 'unlike'"));
  EXPECT_THAT(text, testing::Not(HasSubstr("'same'")));
  EXPECT_THAT(values_of(same), ElementsAre(1));
}

TEST_F(AdapterTest, R95HooksFollowRequiresGrad) {
  const auto a = parameter({0});
  const auto b = parameter({0});
  a.set_requires_grad(false);  // frozen when wrapped
  SGD sgd({a, b}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}});
  const auto steps = [&](bool train_a) {
    a.set_requires_grad(train_a);
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      (train_a ? (a * hvd::rank()).sum() + (b * hvd::rank()).sum() : (b * hvd::rank()).sum()).backward();
      optimizer.step();
    }
  };
  steps(false);
  EXPECT_THAT(values_of(a), ElementsAre(0));
  steps(true);
  steps(false);
  EXPECT_THAT(values_of(a), ElementsAre(FloatEq(-2 * mean_rank())));
  EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-6 * mean_rank())));
}

TEST_F(AdapterTest, R95AnAddedParameterGroupIsReducedToo) {
  const auto a = parameter({0});
  const auto b = parameter({0});
  const auto c = parameter({0});
  SGD sgd({a}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}});
  sgd.add_param_group(::torch::optim::OptimizerParamGroup({b}));
  for (int step = 0; step < 2; ++step) {  // before the first backward, the wrapper has not heard of b
    backward(a, 1);
    backward(b, hvd::rank() + 1);
    optimizer.step();
    optimizer.zero_grad();
  }
  EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-2 * (mean_rank() + 1))));
  sgd.add_param_group(::torch::optim::OptimizerParamGroup({c}));
  EXPECT_THAT(step_error(optimizer), HasSubstr("parameters without a name: group 2 position 0 float32[1]"));
}

TEST_F(AdapterTest, R96TheResultOfTheCallersOwnHookIsReduced) {
  const auto w = parameter({0});
  w.register_hook([](const ::torch::Tensor& gradient) { return gradient * 10; });
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  backward(w, hvd::rank());
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(FloatEq(-10 * mean_rank())));
}

TEST_F(AdapterTest, R106LoadingWrappingAndBroadcastingWorkInAnyOrder) {
  std::vector<int> order{0, 1, 2};
  do {
    const auto w = parameter({static_cast<float>(hvd::rank())});
    SGD sgd({w}, 1.0);
    std::optional<DistributedOptimizer> optimizer;
    const auto load = [&] {
      const ::torch::NoGradGuard no_grad;
      if (hvd::rank() == 0) w.fill_(5);
    };
    for (const int action : order) {
      if (action == 0) load();
      if (action == 1) optimizer.emplace(sgd, Parameters{{"w", w}});
      if (action == 2) torch::broadcast_parameters({{"w", w}}, 0);
    }
    const bool loaded_too_late = std::find(order.begin(), order.end(), 0) > std::find(order.begin(), order.end(), 2);
    backward(w, 1);
    if (loaded_too_late && hvd::size() > 1) {
      EXPECT_THAT(step_error(*optimizer), HasSubstr("weights differ between ranks before the first step: 'w'"));
    } else {
      optimizer->step();
      EXPECT_THAT(values_of(w), ElementsAre(4));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(AdapterTest, TiedWeightsAreReducedOnce) {
  const auto w = parameter({0});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"encoder.weight", w}, {"decoder.weight", w}});
  EXPECT_THAT(optimizer.parameter_names(), ElementsAre("encoder.weight"));
  (w * hvd::rank() + w * 2).sum().backward();
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(FloatEq(-mean_rank() - 2)));
}

TEST_F(AdapterTest, NamesMayHoldAnything) {
  const auto w = parameter({0});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w e/i'r\nd \xc3\xa9.{}%s", w}});
  backward(w, 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(-1));
}

TEST_F(AdapterTest, R78_GradientsOfAnyStridesAreReduced) {
  const auto w = ::torch::zeros({3, 2}).t().set_requires_grad(true);  // its gradient takes over the strides
  ASSERT_FALSE(w.is_contiguous());
  const auto coefficients = ::torch::arange(6, ::torch::kFloat32).view({2, 3});
  SGD sgd({w}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  for (int step = 1; step <= 2; ++step) {
    optimizer.zero_grad();
    (w * coefficients * (hvd::rank() + 1)).sum().backward();
    EXPECT_FALSE(w.grad().is_contiguous());
    optimizer.step();
    EXPECT_TRUE(::torch::allclose(w, -static_cast<float>(step) * (mean_rank() + 1) * coefficients));
  }
}

TEST_F(AdapterTest, GradientsThatShareMemoryAreReducedApart) {
  const auto a = parameter({0, 0});
  const auto b = parameter({0, 0});
  SGD sgd({a, b}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}});
  const auto both = ::torch::zeros({2, 2});
  a.mutable_grad() = both[0];
  b.mutable_grad() = both[0];  // the very same memory
  (a * 0 + b * (hvd::rank() + 1)).sum().backward();
  optimizer.step();
  EXPECT_THAT(values_of(a), testing::Each(FloatEq(-mean_rank() - 1)));
  EXPECT_THAT(values_of(b), testing::Each(FloatEq(-mean_rank() - 1)));
}

TEST_F(AdapterTest, R86SparseGradientsAreReducedAsDenseOnes) {
  ::torch::nn::Embedding embedding(::torch::nn::EmbeddingOptions(4, 2).sparse(true));
  ::torch::nn::init::zeros_(embedding->weight);
  SGD sgd(embedding->parameters(), 1.0);
  DistributedOptimizer optimizer(sgd, embedding->named_parameters());
  const std::int64_t row = hvd::rank() % 4;
  embedding->forward(::torch::tensor({row, row})).sum().backward();
  EXPECT_TRUE(embedding->weight.grad().is_sparse());
  optimizer.step();
  auto expected = ::torch::zeros({4, 2});
  for (int rank = 0; rank < hvd::size(); ++rank) expected[rank % 4] -= 2.0F / static_cast<float>(hvd::size());
  EXPECT_EQ(embedding->weight.grad().is_sparse(), hvd::size() == 1);
  EXPECT_TRUE(::torch::allclose(embedding->weight, expected));
}

TEST_F(AdapterTest, R86TwoWrappersCountTheirPassesApart) {
  const auto a = parameter({0});
  const auto b = parameter({0});
  SGD sgd_a({a}, 1.0);
  SGD sgd_b({b}, 1.0);
  DistributedOptimizer optimizer_a(sgd_a, Parameters{{"w", a}}, {.backward_passes_per_step = 2});
  DistributedOptimizer optimizer_b(sgd_b, Parameters{{"w", b}}, {.backward_passes_per_step = 3});
  for (int pass = 1; pass <= 6; ++pass) {
    (a * pass + b * (hvd::rank() + pass)).sum().backward();
    if (pass % 2 == 0) {
      optimizer_a.step();
      optimizer_a.zero_grad();
    }
    if (pass % 3 == 0) {
      optimizer_b.step();
      optimizer_b.zero_grad();
    }
  }
  EXPECT_THAT(values_of(a), ElementsAre(FloatEq(-21)));
  EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-21 - 6 * mean_rank())));
}

TEST_F(AdapterTest, HooksSurviveAChangeOfTheParametersType) {
  ::torch::nn::Linear net(::torch::nn::LinearOptions(1, 1).bias(false));
  ::torch::nn::init::zeros_(net->weight);
  SGD sgd(net->parameters(), 1.0);
  DistributedOptimizer optimizer(sgd, net->named_parameters());
  net->to(::torch::kFloat64);
  for (int step = 1; step <= 2; ++step) {
    net->forward(::torch::full({1, 1}, hvd::rank() + 1.0, ::torch::kFloat64)).sum().backward();
    optimizer.step();
    EXPECT_NEAR(net->weight.item<double>(), -static_cast<float>(step) * (mean_rank() + 1), 1e-6);
    optimizer.zero_grad();
  }
}

TEST_F(AdapterTest, HalfPrecisionAndDoubleGradientsAreReduced) {
  for (const auto type : {::torch::kFloat16, ::torch::kBFloat16, ::torch::kFloat64}) {
    const auto w = ::torch::zeros({3}, type).set_requires_grad(true);
    SGD sgd({w}, 1.0);
    DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
    backward(w, hvd::rank() == 0 ? hvd::size() : 0);
    optimizer.step();
    EXPECT_TRUE(w.eq(-1).all().item<bool>()) << type;
  }
}

TEST_F(AdapterTest, AfterAnErrorTheNextStepWorks) {
  if (hvd::size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto a = parameter({0});
  const auto b = parameter({0, 0});
  SGD sgd({a, b}, 1.0);
  DistributedOptimizer optimizer(sgd, Parameters{{"a", a}, {"b", b}});
  backward(a, 1);
  if (hvd::rank() == 0) {
    backward(b, 1);
  } else {
    b.mutable_grad() = ::torch::zeros({2}, ::torch::kFloat32);
    b.mutable_grad().resize_({3});  // reaches the reduction as another shape
    b.mutable_grad().zero_();
  }
  EXPECT_THAT(error_of<MismatchError>([&] { optimizer.step(); }), HasSubstr("shapes differ: [0] float32[2]; [1"));
  b.mutable_grad() = ::torch::Tensor();
  optimizer.zero_grad();
  backward(a, 1);
  backward(b, 1);
  optimizer.step();
  EXPECT_THAT(values_of(a), ElementsAre(-1));
  EXPECT_THAT(values_of(b), ElementsAre(-1, -1));
}

TEST_F(AdapterTest, BackwardWorksAfterTheWrapperIsGone) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  ::torch::Tensor loss;
  {
    const DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
    loss = (w * 3).sum();  // keeps the hooked node alive
  }
  loss.backward();
  EXPECT_THAT(values_of(w.grad()), ElementsAre(3));
}

TEST_F(AdapterTest, AWrapperMayGoWithGradientsInFlight) {
  const auto w = parameter({1});
  SGD sgd({w}, 1.0);
  {
    DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
    backward(w, 1);
  }
  DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
  sgd.zero_grad();
  backward(w, 2);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(-1));
}

TEST_F(AdapterTest, WrappersWorkAfterShutdownAndInit) {
  const auto w = parameter({0});
  SGD sgd({w}, 1.0);
  for (int round = 1; round <= 2; ++round) {
    DistributedOptimizer optimizer(sgd, Parameters{{"w", w}});
    optimizer.zero_grad();
    backward(w, 1);
    optimizer.step();
    EXPECT_THAT(values_of(w), ElementsAre(-round));
    hvd::shutdown();
    hvd::init();
  }
}

}  // namespace
}  // namespace hvd::test
