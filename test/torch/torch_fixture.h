#pragma once

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/hvd.h>
#include <hvd/torch.h>

namespace hvd::test {

// Every rank runs each test between init() and shutdown().
class TorchTest : public testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    hvd::init();
    ::torch::manual_seed(7);
  }
  void TearDown() override { hvd::shutdown(); }
};

using Parameters = std::vector<std::pair<std::string, ::torch::Tensor>>;

inline ::torch::Tensor parameter(std::vector<float> values) { return ::torch::tensor(values).set_requires_grad(true); }

inline std::vector<float> values_of(const ::torch::Tensor& tensor) {
  const auto flat = tensor.detach().contiguous().view(-1);
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

// The same float32 values on all ranks, bit for bit.
inline bool equal_on_all_ranks(const ::torch::Tensor& tensor) {
  const std::vector<float> mine = values_of(tensor);
  const std::vector<float> all = hvd::allgather(mine, {.name = "equal_on_all_ranks"});
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k] != mine[k % mine.size()]) return false;
  }
  return all.size() == mine.size() * static_cast<std::size_t>(hvd::size());
}

// Text of the error of type E that the action throws; empty when it throws none.
template <typename E, typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

// Counts the allreduces under names that end in `suffix`.
class AllreduceCounter : public Observer {
 public:
  explicit AllreduceCounter(std::string suffix) : suffix_(std::move(suffix)) {}
  void on_event(const TensorEvent& event) override {
    if (event.stage == Stage::done && event.operation == Operation::allreduce && event.name.ends_with(suffix_))
      ++count_;
  }
  int count() const { return count_; }

 private:
  std::string suffix_;
  std::atomic<int> count_{0};
};

}  // namespace hvd::test
