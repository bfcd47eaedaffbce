#pragma once

#include <torch/data/samplers/base.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <hvd/export.h>

namespace hvd::torch {

struct DistributedSamplerOptions {
  bool shuffle = true;
  std::uint64_t seed = 0;  // equal on all ranks
  // Leave out the last (size mod replicas) samples of the order instead of repeating the first ones.
  bool drop_last = false;
  std::optional<std::size_t> num_replicas = std::nullopt;  // hvd::size()
  std::optional<std::size_t> rank = std::nullopt;          // hvd::rank()
};

// Splits the indices [0, size) over the ranks: rank r takes positions r, r + n, r + 2n, ... of an order that is the
// same on all ranks and depends on seed and epoch only. Every rank gets equally many; together they cover all samples,
// and at most n - 1 of them twice.
//
// Copies share their state, so that set_epoch() reaches the copy inside a data loader.
class HVD_API DistributedSampler : public ::torch::data::samplers::Sampler<> {
 public:
  // Throws InvalidArgumentError when the rank is not below the number of replicas.
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {});

  // Starts another order; call it before each epoch.
  void set_epoch(std::size_t epoch);
  std::size_t epoch() const;
  // Samples that this rank draws in an epoch.
  std::size_t local_size() const;

  // Starts the epoch again, with another number of samples if given.
  void reset(::torch::optional<std::size_t> new_size = ::torch::nullopt) override;
  // At most batch_size indices; nothing at the end of the epoch.
  ::torch::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  // Epoch and position.
  void save(::torch::serialize::OutputArchive& archive) const override;
  void load(::torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hvd::torch
