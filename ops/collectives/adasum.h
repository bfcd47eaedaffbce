#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "cpu/reduce.h"

namespace hvd {

// Adaptive summation (Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021) of each tensor
// of a batch, of f16, bf16, f32 or f64, over any number of contributors, combined as a binary tree in rank order. All
// results on the way are linear combinations of the inputs, so that their inner products are all that must be known:
//
//   inner products of all pairs, a slice on each rank ──► sum them over the ranks ──► coefficients c, on every rank
//   alike
//     ──► scale own input by its c, in f32 (f64 for f64) ──► sum over the ranks ──► round once into the outputs
//
// The bits are the same on all ranks and do not depend on what is fused. Bytes: those of InnerProducts and of an
// Allreduce of f32 (f64), and 8 for each tensor and pair of ranks.
class Adasum final : public Collective {
 public:
  // counts[t]: elements of tensor t. `input` has all tensors where this rank contributes, `output` where it takes; else
  // they are empty. Their memory outlives the collective and may be the same. Only dtype and scales of the reduction
  // count.
  Adasum(ChunkStream& stream, Participants participants, const cpu::Reduction& reduction,
         std::vector<std::size_t> counts, FusedInput input, FusedOutput output);

  Progress step() override;
  Phase phase() const override;

 private:
  enum class Stage : std::uint8_t { multiply, sum_products, scale, sum_scaled, round, done };

  void enter(Stage stage);
  bool scale_some();
  bool round_some();
  void choose_coefficients();
  std::unique_ptr<Collective> sum(DataType dtype, const Participants& participants, std::span<std::byte> memory,
                                  std::size_t bytes);

  ChunkStream& stream_;
  Participants participants_;
  Participants all_take_;
  cpu::Reduction reduction_;
  std::vector<std::size_t> counts_;
  FusedInput input_;
  FusedOutput output_;
  bool contributes_;
  bool takes_;
  std::size_t element_bytes_;
  std::size_t accumulator_bytes_;
  std::size_t elements_ = 0;
  std::size_t pairs_;  // of contributors, in all tensors
  std::vector<double> products_;
  std::vector<double> coefficients_;  // of this rank, by tensor
  std::unique_ptr<std::byte[]> scratch_;
  std::size_t tensor_ = 0;  // the next elements to scale or to round: tensor, place in it, place in the batch
  std::size_t at_ = 0;
  std::size_t done_elements_ = 0;
  Stage stage_ = Stage::multiply;
  std::unique_ptr<Collective> part_;  // under way
};

}  // namespace hvd
