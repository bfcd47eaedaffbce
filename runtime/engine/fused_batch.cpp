#include "engine/fused_batch.h"

#include <algorithm>

#include "negotiation/process_sets.h"

namespace hvd::detail {

FusedBatch::FusedBatch(ExecutableBatch& batch, ChunkStream& stream, DataType dtype)
    : batch_(batch), stream_(stream), dtype_(dtype) {}

int FusedBatch::position(int world_rank) const {
  return static_cast<int>(position_in(stream_.members().ranks, world_rank).value());
}

std::vector<int> FusedBatch::present() const {
  std::vector<int> positions;
  const std::vector<int>& ranks = stream_.members().ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (std::ranges::count(batch_.absent, ranks[i]) == 0) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

Participants FusedBatch::participants() const {
  return batch_.absent.empty() ? stream_.everyone() : Participants(stream_.topology(), present());
}
Participants FusedBatch::participants_with_taker() const { return Participants(stream_.topology(), present(), root()); }

std::size_t FusedBatch::bytes() const {
  std::size_t total = 0;
  for_each([&](std::size_t, const PendingOperation& operation, std::size_t k) {
    total += static_cast<std::size_t>(operation.request.tensors[k].bytes());
  });
  return total;
}

FusedInput FusedBatch::inputs() const {
  FusedInput fused;
  fused.reserve(batch_.operations.size());
  if (absent()) return fused;
  for_each([&](std::size_t, const PendingOperation& operation, std::size_t k) {
    fused.append(static_cast<const std::byte*>(operation.memory[k].input),
                 static_cast<std::size_t>(operation.request.tensors[k].bytes()));
  });
  return fused;
}

FusedOutput FusedBatch::outputs() const {
  FusedOutput fused;
  fused.reserve(batch_.operations.size());
  if (absent()) return fused;
  for_each([&](std::size_t, const PendingOperation& operation, std::size_t k) {
    fused.append(static_cast<std::byte*>(operation.memory[k].output),
                 static_cast<std::size_t>(operation.request.tensors[k].bytes()));
  });
  return fused;
}

FusedOutput FusedBatch::results() const {
  FusedOutput fused;
  fused.reserve(batch_.operations.size());
  for_each([&](std::size_t, PendingOperation& operation, std::size_t k) {
    Tensor& result = operation.results[k];
    fused.append(static_cast<std::byte*>(result.data()), result.view().bytes());
  });
  return fused;
}

bool FusedBatch::in_place() const {
  bool all = true;
  if (absent()) return all;
  for_each([&](std::size_t, const PendingOperation& operation, std::size_t k) {
    all = all && operation.memory[k].input == operation.memory[k].output;
  });
  return all;
}

Tensor& FusedBatch::allocate(PendingOperation& operation, std::size_t tensor, const TensorSpec& spec) const {
  operation.results.resize(std::max(operation.results.size(), operation.request.tensors.size()));
  if (tensor >= operation.results.size()) operation.results.resize(tensor + 1);
  operation.results[tensor] = Tensor(spec.shape, spec.dtype);
  ++stream_.stats().allocations;
  return operation.results[tensor];
}

}  // namespace hvd::detail
