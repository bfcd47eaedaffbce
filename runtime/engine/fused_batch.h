#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "engine/batch.h"

namespace hvd::detail {

// Those tensors of a batch that have one dtype, as one stretch of memory.
class FusedBatch {
 public:
  FusedBatch(ExecutableBatch& batch, ChunkStream& stream, DataType dtype);

  const Request& request() const { return batch_.request(); }
  DataType dtype() const { return dtype_; }
  // Of the set; without those that have joined; with the root as the only one that takes the result.
  Participants participants() const;
  Participants participants_with_taker() const;
  int root() const { return position(request().root); }
  int rank() const { return stream_.topology().rank(); }
  std::size_t ranks() const { return static_cast<std::size_t>(stream_.topology().size()); }
  bool absent() const { return batch_.operations.front()->absent; }

  std::size_t bytes() const;
  FusedInput inputs() const;
  FusedOutput outputs() const;
  // What the operations have allocated.
  FusedOutput results() const;
  bool in_place() const;

  // For each tensor: `visit(operation, index of the tensor in it, rows by position)`.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < batch_.operations.size(); ++i) {
      PendingOperation& operation = *batch_.operations[i];
      for (std::size_t k = 0; k < operation.request.tensors.size(); ++k) {
        if (operation.request.tensors[k].dtype == dtype_) visit(i, operation, k);
      }
    }
  }
  // What the ranks have said besides, of an operation: by position, by tensor.
  const std::vector<std::vector<std::int64_t>>& extents(std::size_t operation) const {
    return batch_.extents[operation];
  }
  // Allocates the result of a tensor.
  Tensor& allocate(PendingOperation& operation, std::size_t tensor, const TensorSpec& spec) const;

 private:
  int position(int world_rank) const;
  std::vector<int> present() const;

  ExecutableBatch& batch_;
  ChunkStream& stream_;
  DataType dtype_;
};

}  // namespace hvd::detail
