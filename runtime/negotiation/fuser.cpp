#include "negotiation/fuser.h"

namespace hvd {

bool may_fuse(const Request& a, const Request& b) {
  return a.process_set == b.process_set && a.operation == b.operation && a.operation != Operation::barrier &&
         a.dtype == b.dtype && a.device == b.device && a.reduce_op == b.reduce_op && a.prescale == b.prescale &&
         a.postscale == b.postscale && a.root == b.root;
}

std::vector<std::vector<std::size_t>> fuse(const std::vector<Fusable>& tensors, std::int64_t threshold) {
  std::vector<std::vector<std::size_t>> batches;
  std::vector<bool> taken(tensors.size(), false);
  for (std::size_t first = 0; first < tensors.size(); ++first) {
    if (taken[first]) continue;
    std::vector<std::size_t> batch{first};
    std::int64_t bytes = tensors[first].bytes;
    for (std::size_t next = first + 1; next < tensors.size() && bytes < threshold; ++next) {
      if (taken[next] || !may_fuse(*tensors[first].request, *tensors[next].request)) continue;
      if (tensors[next].bytes > threshold - bytes) continue;
      bytes += tensors[next].bytes;
      taken[next] = true;
      batch.push_back(next);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace hvd
