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

// So many rows of it, from so many ranks, can be counted, and so can their bytes.
bool countable(const TensorSpec& tensor, std::int64_t rows, std::size_t ranks) {
  const std::int64_t per_rank = most / static_cast<std::int64_t>(ranks);
  return rows >= 0 && rows <= per_rank && (tensor.row_bytes() == 0 || rows <= per_rank / tensor.row_bytes());
}

// None but scatter's, which comes besides; one for an exchange; more in a group.
bool has_its_tensors(const Request& request) {
  if (!takes_tensor(request.operation) || request.operation == Operation::scatter) return request.tensors.empty();
  const bool one = request.operation == Operation::alltoall || request.operation == Operation::send_recv;
  return one ? request.tensors.size() == 1 : !request.tensors.empty();
}

bool needs_rows(const Request& request) {
  return request.rows_may_differ() || request.operation == Operation::reduce_scatter;
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
    throw InternalError(
        fmt::format("rank {} reported {} '{}' with a description that cannot be", rank, to_string(request.operation),
                    request.name));
  }
}

void check_extents(int rank, const OperationState& state, const Request& request,
                   const std::vector<std::int64_t>& extents) {
  const std::size_t ranks = state.participants.size();
  bool good = !request.has_root() || position_in(state.participants, request.root).has_value();
  if (good && request.operation == Operation::scatter) {
    if (rank == request.root) {
      const ScatterLayout layout = decode_scatter(extents, ranks);
      good = countable(layout.tensor, layout.tensor.rows(), ranks);
      std::int64_t left = layout.tensor.rows();
      for (const std::int64_t rows : layout.splits) {
        good = good && rows >= 0 && rows <= left;
        left -= good ? rows : 0;
      }
      good = good && left == 0;
    }
  } else if (good && request.operation == Operation::alltoall) {
    good = extents.size() == ranks && std::ranges::all_of(extents, [&](std::int64_t rows) {
             return countable(request.tensors.front(), rows, ranks * ranks);
           });
  } else if (good && request.rows_may_differ()) {
    good = extents.size() == request.tensors.size();
    for (std::size_t i = 0; good && i < extents.size(); ++i) good = countable(request.tensors[i], extents[i], ranks);
  }
  if (!good) throw InternalError(fmt::format("rank {} reported {} with rows that cannot be", rank, title(state)));
}

}  // namespace hvd
