#include <hvd/torch/sampler.h>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <numeric>
#include <random>

#include <hvd/hvd.h>

namespace hvd::torch {

struct DistributedSampler::State {
  std::size_t size = 0;
  std::size_t replicas = 1;
  std::size_t rank = 0;
  bool shuffle = true;
  bool drop_last = false;
  std::uint64_t seed = 0;

  std::size_t epoch = 0;
  std::size_t position = 0;
  std::vector<std::size_t> indices;  // this rank's, in order; filled when the epoch's first batch is drawn
  bool filled = false;

  std::size_t count() const { return drop_last ? size / replicas : (size + replicas - 1) / replicas; }
  void fill();
};

// std::shuffle and std::uniform_int_distribution differ between standard libraries, and ranks may run different ones;
// std::mt19937_64 and std::seed_seq do not. The bias of the remainder is below size / 2^64.
void DistributedSampler::State::fill() {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (shuffle) {
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    std::seed_seq seeds{low(seed), low(seed >> 32U), low(epoch), low(epoch >> 32U)};
    std::mt19937_64 random(seeds);
    for (std::size_t k = size; k > 1; --k) std::swap(order[k - 1], order[random() % k]);  // Fisher-Yates
  }
  indices.resize(count());
  for (std::size_t k = 0; k < indices.size(); ++k) indices[k] = order[(rank + k * replicas) % size];
  filled = true;
}

DistributedSampler::DistributedSampler(std::size_t size, const DistributedSamplerOptions& options)
    : state_(std::make_shared<State>()) {
  state_->size = size;
  state_->replicas = options.num_replicas.has_value() ? *options.num_replicas : static_cast<std::size_t>(hvd::size());
  state_->rank = options.rank.has_value() ? *options.rank : static_cast<std::size_t>(hvd::rank());
  state_->shuffle = options.shuffle;
  state_->drop_last = options.drop_last;
  state_->seed = options.seed;
  if (state_->rank >= state_->replicas) {
    throw InvalidArgumentError(
        fmt::format("DistributedSampler: rank {} of {} replicas does not exist", state_->rank, state_->replicas));
  }
}

void DistributedSampler::set_epoch(std::size_t epoch) {
  state_->epoch = epoch;
  reset();
}

std::size_t DistributedSampler::epoch() const { return state_->epoch; }

std::size_t DistributedSampler::local_size() const { return state_->count(); }

void DistributedSampler::reset(::torch::optional<std::size_t> new_size) {
  if (new_size.has_value()) state_->size = *new_size;
  state_->position = 0;
  state_->filled = false;
}

::torch::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (!state_->filled) state_->fill();
  const std::size_t begin = std::min(state_->position, state_->indices.size());
  const std::size_t end = begin + std::min(batch_size, state_->indices.size() - begin);
  if (begin == end) return ::torch::nullopt;
  state_->position = end;
  const auto first = state_->indices.begin();
  return std::vector<std::size_t>(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
}

void DistributedSampler::save(::torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", ::c10::IValue(static_cast<std::int64_t>(state_->epoch)));
  archive.write("position", ::c10::IValue(static_cast<std::int64_t>(state_->position)));
}

void DistributedSampler::load(::torch::serialize::InputArchive& archive) {
  ::c10::IValue epoch;
  ::c10::IValue position;
  archive.read("epoch", epoch);
  archive.read("position", position);
  set_epoch(static_cast<std::size_t>(epoch.toInt()));
  state_->position = static_cast<std::size_t>(position.toInt());
}

}  // namespace hvd::torch
