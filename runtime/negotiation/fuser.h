#pragma once

#include <cstdint>
#include <vector>

#include "negotiation/request.h"

namespace hvd {

// Whether two tensors may share a batch: the same work on each byte. Barriers move nothing and stay alone.
bool may_fuse(const Request& a, const Request& b);

struct Fusable {
  const Request* request = nullptr;
  std::int64_t bytes = 0;
};

// Partitions tensors that are ready everywhere into batches of at most `threshold` bytes (a larger tensor is a batch of
// its own; 0: no fusion). A batch takes all that fits from the whole list, batches are ordered by their first tensor,
// tensors keep their order within one. Returns indices.
std::vector<std::vector<std::size_t>> fuse(const std::vector<Fusable>& tensors, std::int64_t threshold);

}  // namespace hvd
