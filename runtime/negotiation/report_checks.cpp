#include "negotiation/report_checks.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "negotiation/process_sets.h"
#include "negotiation/titles.h"
#include "types/dtype_rules.h"

namespace hvd {

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// So many times so many rows of it can be counted, and so can their bytes.
bool is_countable(const TensorSpec& tensor, std::int64_t rows, std::size_t times) {
  const std::int64_t each = most / static_cast<std::int64_t>(times);
  return rows >= 0 && rows <= each && (tensor.row_bytes() == 0 || rows <= each / tensor.row_bytes());
}

// The bytes of the elements, unless there are more than can be counted.
std::optional<std::int64_t> bytes_of(const Shape& shape, DataType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), static_cast<std::int64_t>(size_of(dtype)), &bytes)) return std::nullopt;
  return bytes;
}

// None but scatter's, which come besides; one for a message; more in a group.
bool has_its_tensors(const Request& request) {
  if (!takes_tensor(request.operation) || request.operation == Operation::scatter) return request.tensors.empty();
  return request.operation == Operation::send_recv ? request.tensors.size() == 1 : !request.tensors.empty();
}

// Even of one that has none, the bytes of a row can be counted.
bool has_rows(const TensorSpec& tensor) {
  return tensor.shape.rank() > 0 && bytes_of(tensor.shape.with_rows(1), tensor.dtype);
}

bool needs_rows(const Request& request) {
  return request.rows_may_differ() || request.operation == Operation::reduce_scatter;
}

// All is made for all ranks, and the set of all ranks stays.
bool is_good_change(const Request& request) {
  return request.process_set == 0 && (request.operation == Operation::add_process_set || request.root > 0);
}

bool is_good(const Request& request, int size) {
  const auto is_rank = [size](int value) { return value >= 0 && value < size; };
  const bool pair = request.operation == Operation::send_recv;
  bool good = has_its_tensors(request) && (!(pair || request.has_root()) || is_rank(request.root)) &&
              (!pair || (is_rank(request.peer) && request.peer != request.root)) &&
              (!request.changes_process_sets() || is_good_change(request)) && request.timeout >= 0 &&
              std::isfinite(request.timeout);
  std::int64_t total = 0;
  for (const TensorSpec& tensor : request.tensors) {
    const auto bytes = bytes_of(tensor.shape, tensor.dtype);
    good =
        good && (!needs_rows(request) || has_rows(tensor)) && bytes && !__builtin_add_overflow(total, *bytes, &total);
  }
  return good;
}

bool is_good_layout(const ScatterLayout& layout, std::size_t times) {
  std::int64_t left = layout.tensor.rows();
  if (!has_rows(layout.tensor) || !is_countable(layout.tensor, left, times)) return false;
  for (const std::int64_t rows : layout.splits) {
    if (rows < 0 || rows > left) return false;
    left -= rows;
  }
  return left == 0;
}

bool are_good_layouts(const std::vector<std::int64_t>& numbers, std::size_t ranks) {
  std::vector<ScatterLayout> layouts;
  try {
    layouts = decode_scatter(numbers, ranks);
  } catch (const Error&) {
    return false;
  }
  return std::ranges::all_of(
      layouts, [&](const ScatterLayout& layout) { return is_good_layout(layout, layouts.size() * ranks); });
}

// Ranks in order; whether they can be a set is told to all.
bool are_ranks(const std::vector<std::int64_t>& numbers) {
  return std::ranges::is_sorted(numbers) &&
         std::ranges::all_of(numbers, [](std::int64_t number) { return std::in_range<int>(number); });
}

bool are_good(const std::vector<std::int64_t>& extents, int rank, const Request& request, std::size_t ranks) {
  switch (request.operation) {
    case Operation::scatter:
      return rank == request.root ? are_good_layouts(extents, ranks) : extents.empty();
    case Operation::add_process_set:
      return are_ranks(extents);
    case Operation::alltoall:
    case Operation::allgather:
    case Operation::gather: {
      const std::size_t each = request.operation == Operation::alltoall ? ranks : 1;
      const std::size_t count = request.tensors.size() * each;
      bool good = extents.size() == count;
      for (std::size_t i = 0; good && i < count; ++i)
        good = is_countable(request.tensors[i / each], extents[i], ranks * count);
      return good;
    }
    default:
      return extents.empty();
  }
}

}  // namespace

Report read_report(int rank, BytesView bytes) {
  try {
    return decode_report(bytes);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("rank {} sent no report: {}", rank, error.what()));
  }
}

void check_described(int rank, int size, const Ready& ready) {
  const Request& request = *ready.request;
  if (!is_good(request, size)) {
    throw InternalError(fmt::format("rank {} reported {} '{}' with a description that cannot be", rank,
                                    to_string(request.operation), request.name));
  }
  if (ready.fingerprint != fingerprint(request)) {
    throw InternalError(fmt::format("rank {} reported {} '{}' with a fingerprint that is not its description's", rank,
                                    to_string(request.operation), request.name));
  }
}

void check_extents(int rank, const OperationState& state, const Request& request,
                   const std::vector<std::int64_t>& extents) {
  const bool root_takes_part = !request.has_root() || position_in(state.participants, request.root);
  if (root_takes_part && are_good(extents, rank, request, state.participants.size())) return;
  throw InternalError(fmt::format("rank {} reported {} with rows that cannot be", rank, title(state)));
}

}  // namespace hvd
