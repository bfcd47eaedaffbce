#include "negotiation/fuser.h"

#include <algorithm>

#include "types/dtype_rules.h"

namespace hvd {

namespace {

bool can_share(Operation operation) {
  return takes_tensor(operation) && operation != Operation::scatter && operation != Operation::send_recv;
}

bool all_of_dtype(const Request& request, DataType dtype) {
  return std::ranges::all_of(request.tensors, [&](const TensorSpec& tensor) { return tensor.dtype == dtype; });
}

}  // namespace

bool may_fuse(const Fusable& x, const Fusable& y) {
  const Request& a = *x.request;
  const Request& b = *y.request;
  if (!can_share(a.operation) || a.tensors.empty()) return false;
  const DataType dtype = a.tensors.front().dtype;
  return a.process_set == b.process_set && a.operation == b.operation && a.device == b.device &&
         a.reduce_op == b.reduce_op && a.prescale == b.prescale && a.postscale == b.postscale && a.root == b.root &&
         x.absent == y.absent && all_of_dtype(a, dtype) && all_of_dtype(b, dtype);
}

List<List<std::size_t>> fuse(const List<Fusable>& operations, std::int64_t threshold) {
  List<List<std::size_t>> batches;
  std::vector<bool, Pooled<bool>> taken(operations.size(), false);
  for (std::size_t first = 0; first < operations.size(); ++first) {
    if (taken[first]) continue;
    List<std::size_t> batch;
    batch.reserve(operations.size() - first);
    batch.push_back(first);
    std::int64_t bytes = operations[first].bytes;
    for (std::size_t next = first + 1; next < operations.size() && bytes < threshold; ++next) {
      if (taken[next] || !may_fuse(operations[first], operations[next])) continue;
      if (operations[next].bytes > threshold - bytes) continue;
      bytes += operations[next].bytes;
      taken[next] = true;
      batch.push_back(next);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace hvd
