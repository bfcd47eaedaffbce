#include "collectives/adasum.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "collectives/adasum_tree.h"
#include "collectives/allreduce.h"
#include "collectives/inner_products.h"

namespace hvd {

Adasum::Adasum(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction,
               std::vector<std::size_t> counts, FusedInput input, FusedOutput output)
    : stream_(stream),
      participants_(std::move(participants)),
      all_take_(stream.topology(), participants_.contributors()),
      reduction_(reduction),
      counts_(std::move(counts)),
      input_(std::move(input)),
      output_(std::move(output)),
      contributes_(participants_.contributes(stream.topology().rank())),
      takes_(participants_.takes(stream.topology().rank())),
      element_bytes_(size_of(reduction.dtype)),
      accumulator_bytes_(reduction.dtype == DataType::f64 ? sizeof(double) : sizeof(float)),
      elements_(std::accumulate(counts_.begin(), counts_.end(), std::size_t{0})),
      pairs_(pair_count(participants_.contributors().size()) * counts_.size()),
      products_(contributes_ ? pairs_ : 0) {
  enter(Stage::multiply);
}

Phase Adasum::phase() const {
  if (stage_ == Stage::done) return Phase::unpacked;
  if (stage_ == Stage::round) return Phase::reduced;
  return stage_ == Stage::multiply ? Phase::started : Phase::packed;
}

// Each stage that ends makes the next; every rank of the set goes through all of them, so that all take the same
// chunks.
Progress Adasum::step() {
  if (stage_ == Stage::done) return Progress::done;
  bool ended = false;
  if (part_ != nullptr) {
    const Progress progress = part_->step();
    if (progress != Progress::done) return progress;
    ended = true;
  } else {
    ended = stage_ == Stage::scale ? scale_some() : round_some();
  }
  if (ended) enter(static_cast<Stage>(static_cast<std::uint8_t>(stage_) + 1));
  return stage_ == Stage::done ? Progress::done : Progress::advanced;
}

void Adasum::enter(Stage stage) {
  stage_ = stage;
  part_ = nullptr;
  tensor_ = at_ = done_elements_ = 0;
  const std::size_t scratch_bytes = elements_ * accumulator_bytes_;
  switch (stage) {
    case Stage::multiply:
      part_ = std::make_unique<InnerProducts>(stream_, all_take_, reduction_.dtype, counts_, input_, products_);
      break;
    case Stage::sum_products:
      part_ = sum(DataType::f64, all_take_, std::as_writable_bytes(std::span(products_)), pairs_ * sizeof(double));
      break;
    case Stage::scale:
      if (!contributes_) break;
      choose_coefficients();
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes);
      ++stream_.stats().allocations;
      break;
    case Stage::sum_scaled:
      part_ = sum(accumulator_bytes_ == sizeof(double) ? DataType::f64 : DataType::f32, participants_,
                  {scratch_.get(), contributes_ ? scratch_bytes : 0}, scratch_bytes);
      break;
    case Stage::round:
      break;
    case Stage::done:
      scratch_ = nullptr;
      break;
  }
}

std::unique_ptr<Collective> Adasum::sum(DataType dtype, const Participants& participants, std::span<std::byte> memory,
                                        std::size_t bytes) {
  FusedInput input;
  FusedOutput output;
  input.append(memory.data(), memory.size());
  if (participants.takes(stream_.topology().rank())) output.append(memory.data(), memory.size());
  return std::make_unique<Allreduce>(stream_, participants, cpu::Reduction{.dtype = dtype}, bytes, std::move(input),
                                     std::move(output));
}

void Adasum::choose_coefficients() {
  const auto ranks = participants_.contributors();
  const auto me = static_cast<std::size_t>(std::ranges::lower_bound(ranks, stream_.topology().rank()) - ranks.begin());
  const std::size_t pairs = pair_count(ranks.size());
  for (std::size_t t = 0; t < counts_.size(); ++t) {
    const auto all = adasum_coefficients(std::span(products_).subspan(t * pairs, pairs), ranks.size());
    coefficients_.push_back(all[me] * reduction_.prescale * reduction_.postscale);
  }
}

// A chunk's worth of one tensor, so that one step stays short. True when all is scaled.
bool Adasum::scale_some() {
  if (!contributes_ || done_elements_ == elements_) return true;
  while (at_ == counts_[tensor_]) {
    ++tensor_;
    at_ = 0;
  }
  const std::size_t count = std::min(stream_.chunk_bytes() / accumulator_bytes_, counts_[tensor_] - at_);
  const cpu::Reduction scaling{.dtype = reduction_.dtype, .prescale = coefficients_[tensor_]};
  std::byte* scaled = scratch_.get() + done_elements_ * accumulator_bytes_;
  input_.for_each_part(done_elements_ * element_bytes_, count * element_bytes_,
                       [&](const std::byte* memory, std::size_t bytes, std::size_t at) {
                         const std::array sources{memory};
                         cpu::reduce_to_accumulators(scaling, sources,
                                                     scaled + at / element_bytes_ * accumulator_bytes_,
                                                     bytes / element_bytes_);
                       });
  at_ += count;
  done_elements_ += count;
  return done_elements_ == elements_;
}

bool Adasum::round_some() {
  if (!takes_ || done_elements_ == elements_) return true;
  const std::size_t count = std::min(stream_.chunk_bytes() / accumulator_bytes_, elements_ - done_elements_);
  const std::byte* sums = scratch_.get() + done_elements_ * accumulator_bytes_;
  output_.for_each_part(done_elements_ * element_bytes_, count * element_bytes_,
                        [&](std::byte* memory, std::size_t bytes, std::size_t at) {
                          const std::array sources{sums + at / element_bytes_ * accumulator_bytes_};
                          cpu::reduce_accumulators({.dtype = reduction_.dtype}, sources, memory,
                                                   bytes / element_bytes_);
                        });
  done_elements_ += count;
  return done_elements_ == elements_;
}

}  // namespace hvd
