#include <functional>

#include "torch_fixture.h"

namespace hvd::test {
namespace {

using Named = ::torch::OrderedDict<std::string, ::torch::Tensor>;
using BroadcastTest = TorchTest;

Named named(const std::vector<std::pair<std::string, ::torch::Tensor>>& tensors) {
  Named result;
  for (const auto& [name, tensor] : tensors) result.insert(name, tensor);
  return result;
}

TEST_F(BroadcastTest, ParametersAndBuffersOfAModuleBecomeTheRoots) {
  ::torch::manual_seed(static_cast<std::uint64_t>(hvd::rank()));
  ::torch::nn::Sequential net(::torch::nn::Linear(3, 4), ::torch::nn::BatchNorm1d(4));
  net->forward(::torch::randn({5, 3}) + hvd::rank());  // moves the running mean and variance
  const int root = hvd::size() - 1;
  torch::broadcast_parameters(*net, root);

  ::torch::manual_seed(static_cast<std::uint64_t>(root));
  ::torch::nn::Sequential expected(::torch::nn::Linear(3, 4), ::torch::nn::BatchNorm1d(4));
  expected->forward(::torch::randn({5, 3}) + root);
  for (const auto& item : expected->named_parameters()) {
    EXPECT_TRUE(net->named_parameters()[item.key()].equal(item.value())) << item.key();
  }
  for (const auto& item : expected->named_buffers()) {
    EXPECT_TRUE(net->named_buffers()[item.key()].equal(item.value())) << item.key();
  }
}

TEST_F(BroadcastTest, EveryCarriedTypeAndAnyStridesArrive) {
  using namespace ::torch::indexing;
  const auto filled = [](::torch::ScalarType type) {
    return ::torch::full({2, 3}, hvd::rank() == 0 ? 1 : 0, ::torch::dtype(type));
  };
  Named tensors;
  for (const auto type : {::torch::kBool, ::torch::kUInt8, ::torch::kInt8, ::torch::kInt16, ::torch::kInt32,
                          ::torch::kInt64, ::torch::kFloat16, ::torch::kBFloat16, ::torch::kFloat32, ::torch::kFloat64,
                          ::torch::kComplexFloat, ::torch::kComplexDouble}) {
    tensors.insert(::c10::toString(type), filled(type));
  }
  auto wide = ::torch::zeros({2, 6});
  tensors.insert("transposed", filled(::torch::kFloat32).t());
  tensors.insert("every second column", wide.index({Slice(), Slice(None, None, 2)}));
  tensors.insert("scalar", ::torch::tensor(hvd::rank() == 0 ? 1.0 : 0.0));
  tensors.insert("empty", ::torch::empty({0, 3}));
  if (hvd::rank() == 0) tensors["every second column"].fill_(1);
  torch::broadcast_parameters(tensors);
  for (const auto& item : tensors) EXPECT_TRUE(item.value().eq(1).all().item<bool>()) << item.key();
  EXPECT_EQ(wide.sum().item<float>(), 6);
}

TEST_F(BroadcastTest, ATypeThatIsNotCarriedIsNamed) {
  const auto tensors = named({{"z", ::torch::empty({2}, ::torch::kComplexHalf)}});
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { torch::broadcast_parameters(tensors); }),
              testing::HasSubstr("ComplexHalf"));
}

// What rank 1 has in place of {w: f32[4], b: f32[2]}, and what all ranks are told of it.
struct Difference {
  const char* name;
  std::function<Named()> on_rank_1;
  std::string at_two_ranks;
};

class R104 : public TorchTest, public testing::WithParamInterface<Difference> {};

TEST_P(R104, DifferentModelsAreAnErrorOnAllRanksBeforeAnythingIsSent) {
  if (hvd::size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto usual = named({{"w", ::torch::zeros({4})}, {"b", ::torch::zeros({2})}});
  const auto mine = hvd::rank() == 1 ? GetParam().on_rank_1() : usual;
  const auto text = error_of<MismatchError>([&] { torch::broadcast_parameters(mine); });
  if (hvd::size() == 2) {
    EXPECT_EQ(text, GetParam().at_two_ranks);
  } else {
    EXPECT_THAT(text, testing::StartsWith("broadcast_parameters: "));
  }
  torch::broadcast_parameters(usual);  // the next call works
}

INSTANTIATE_TEST_SUITE_P(
    Rank1Has, R104,
    testing::Values(Difference{"OneLess",
                               [] {
                                 return named({{"w", ::torch::zeros({4})}});
                               },
                               "broadcast_parameters: rank 1 lacks 'b'"},
                    Difference{"OneMore",
                               [] {
                                 return named({{"w", ::torch::zeros({4})},
                                               {"b", ::torch::zeros({2})},
                                               {"bn.num_batches_tracked", ::torch::zeros({}, ::torch::kInt64)}});
                               },
                               "broadcast_parameters: rank 0 lacks 'bn.num_batches_tracked'"},
                    Difference{"OneRenamed",
                               [] {
                                 return named({{"w", ::torch::zeros({4})}, {"bias", ::torch::zeros({2})}});
                               },
                               "broadcast_parameters: rank 0 lacks 'bias'; rank 1 lacks 'b'"},
                    Difference{"AnotherShape",
                               [] {
                                 return named({{"w", ::torch::zeros({5})}, {"b", ::torch::zeros({2})}});
                               },
                               "broadcast_parameters: 'w': shapes differ: [0] float32[4]; [1] float32[5]"},
                    Difference{
                        "AnotherType",
                        [] {
                          return named({{"w", ::torch::zeros({4}, ::torch::kFloat64)}, {"b", ::torch::zeros({2})}});
                        },
                        "broadcast_parameters: 'w': dtypes differ: [0] float32[4]; [1] float64[4]"},
                    Difference{"NothingAtAll", [] { return named({}); }, "broadcast_parameters: rank 1 lacks 'b', 'w'"},
                    Difference{"TiedTensors",
                               [] {
                                 const auto both = ::torch::zeros({4});
                                 return named({{"w", both}, {"b", both}});
                               },
                               "broadcast_parameters: 'b': shapes differ: [0] float32[2]; [1] float32[4] tied to 'w'"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(BroadcastTest, R104LikeModelsMayListTheirTensorsInAnyOrder) {
  const auto value = ::torch::full({2}, static_cast<float>(hvd::rank()));
  const auto other = ::torch::full({3}, static_cast<float>(hvd::rank()));
  torch::broadcast_parameters(hvd::rank() == 0 ? named({{"a", value}, {"b", other}})
                                               : named({{"b", other}, {"a", value}}));
  EXPECT_THAT(values_of(value), testing::Each(0));
  EXPECT_THAT(values_of(other), testing::Each(0));
}

TEST_F(BroadcastTest, ATensorUnderTwoNamesIsSentOnce) {
  const auto both = ::torch::full({3}, static_cast<float>(hvd::rank()));
  torch::broadcast_parameters(named({{"encoder.weight", both}, {"decoder.weight", both}}));
  EXPECT_THAT(values_of(both), testing::Each(0));
}

using ::torch::optim::Optimizer;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<::torch::Tensor>)>;

TEST_F(BroadcastTest, R98AndR100StateAndOptionsOfOptimizersBecomeTheRoots) {
  using namespace ::torch::optim;
  const std::vector<Make> makes = {
      [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9)); },
      [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1)); },
      [](auto p) { return std::make_unique<Adam>(p, AdamOptions(0.1)); },
      [](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.1)); },
      [](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.1)); },
      [](auto p) { return std::make_unique<RMSprop>(p, RMSpropOptions(0.1)); },
  };
  for (int root = 0; root < hvd::size(); ++root) {
    for (const Make& make : makes) {
      const auto w = parameter({1, 2});
      const auto optimizer = make({w});
      const auto step = [&] {
        optimizer->zero_grad();
        w.pow(2).sum().backward();
        optimizer->step();
      };
      if (hvd::rank() == 0) {
        for (int k = 0; k < 3; ++k) step();
        optimizer->param_groups()[0].options().set_lr(0.03);
      }
      torch::broadcast_parameters(named({{"w", w}}), root);
      torch::broadcast_optimizer_state(*optimizer, root);
      EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), root == 0 ? 0.03 : 0.1);
      step();
      EXPECT_TRUE(equal_on_all_ranks(w));
    }
  }
}

}  // namespace
}  // namespace hvd::test
