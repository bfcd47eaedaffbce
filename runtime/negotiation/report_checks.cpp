#include "negotiation/report_checks.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <limits>

#include "negotiation/process_sets.h"
#include "negotiation/titles.h"
#include "types/dtype_rules.h"

namespace hvd {

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// So many times so many rows of it can be counted, and so can their bytes.
bool countable(const TensorSpec& tensor, std::int64_t rows, std::size_t times) {
  const std::int64_t each = most / static_cast<std::int64_t>(times);
  return rows >= 0 && rows <= each && (tensor.row_bytes() == 0 || rows <= each / tensor.row_bytes());
}

// None but scatter's, which come besides; one for a message; more in a group.
bool has_its_tensors(const Request& request) {
  if (!takes_tensor(request.operation) || request.operation == Operation::scatter) return request.tensors.empty();
  return request.operation == Operation::send_recv ? request.tensors.size() == 1 : !request.tensors.empty();
}

bool needs_rows(const Request& request) {
  return request.rows_may_differ() || request.operation == Operation::reduce_scatter;
}

bool good_scatter(const std::vector<std::int64_t>& extents, std::size_t ranks) {
  const auto layouts = decode_scatter(extents, ranks);
  return std::ranges::all_of(layouts, [&](const ScatterLayout& layout) {
    std::int64_t left = layout.tensor.rows();
    for (const std::int64_t rows : layout.splits) left = rows < 0 || rows > left ? -1 : left - rows;
    return left == 0 && countable(layout.tensor, layout.tensor.rows(), layouts.size());
  });
}

}  // namespace

void check_request(int rank, int size, const Request& request) {
  const auto is_rank = [size](int value) { return value >= 0 && value < size; };
  const bool pair = request.operation == Operation::send_recv;
  bool good = has_its_tensors(request) && (!(pair || request.has_root()) || is_rank(request.root)) &&
              (!pair || (is_rank(request.peer) && request.peer != request.root));
  std::int64_t total = 0;
  for (const TensorSpec& tensor : request.tensors) {
    std::int64_t bytes = 0;
    good = good && (!needs_rows(request) || tensor.shape.rank() > 0) &&
           !__builtin_mul_overflow(tensor.shape.elements(), static_cast<std::int64_t>(size_of(tensor.dtype)), &bytes) &&
           !__builtin_add_overflow(total, bytes, &total);
  }
  if (!good) {
    throw InternalError(fmt::format("rank {} reported {} '{}' with a description that cannot be", rank,
                                    to_string(request.operation), request.name));
  }
}

void check_extents(int rank, const OperationState& state, const Request& request,
                   const std::vector<std::int64_t>& extents) {
  const std::size_t ranks = state.participants.size();
  bool good = !request.has_root() || position_in(state.participants, request.root).has_value();
  if (good && request.operation == Operation::scatter) {
    good = rank != request.root || good_scatter(extents, ranks);
  } else if (good && request.rows_may_differ()) {
    const std::size_t each = request.operation == Operation::alltoall ? ranks : 1;
    good = extents.size() == request.tensors.size() * each;
    for (std::size_t i = 0; good && i < extents.size(); ++i) {
      good = countable(request.tensors[i / each], extents[i], extents.size() * ranks);
    }
  }
  if (!good) throw InternalError(fmt::format("rank {} reported {} with rows that cannot be", rank, title(state)));
}

}  // namespace hvd
