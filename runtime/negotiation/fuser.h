#pragma once

#include <cstdint>
#include <vector>

#include "negotiation/request.h"
#include "types/pooled.h"

namespace hvd {

struct Fusable {
  const Request* request = nullptr;
  std::int64_t bytes = 0;
  std::vector<int> absent;  // ranks of the set that have joined
};

// Whether two operations may share a batch: the same ranks do the same work on each byte. Groups of unlike dtypes,
// scatters, point-to-point messages, and what moves nothing stay alone.
bool may_fuse(const Fusable& a, const Fusable& b);

// Partitions operations that are ready everywhere into batches of at most `threshold` bytes (a larger one is a batch of
// its own; 0: no fusion). A batch takes all that fits from the whole list, batches are ordered by their first
// operation, operations keep their order within one. Returns indices.
List<List<std::size_t>> fuse(const List<Fusable>& operations, std::int64_t threshold);

}  // namespace hvd
