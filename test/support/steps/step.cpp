#include "step.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hvd::test {

namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string list(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

std::string list(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "{" + text + "}";
}

const char* to_string(Mismatch mismatch) {
  static constexpr const char* names[] = {"none", "shape", "dtype", "reduce op", "scale", "root", "operation", "group"};
  return names[static_cast<std::size_t>(mismatch)];
}

// Unequal shares of unlike tensors, none of them for those who have joined.
std::vector<std::int64_t> splits_in_group(const Step& step, std::size_t tensor, int position) {
  auto splits = equal_shares(step.tensors[tensor].shape[0], step.size());
  const std::size_t turn = (tensor + at(position)) % step.size();
  std::ranges::rotate(splits, splits.begin() + static_cast<std::ptrdiff_t>(turn));
  const int keeper = step.operation == Operation::scatter ? step.root : position;
  for (int to = 0; to < static_cast<int>(step.size()); ++to) {
    if (step.has_joined(to) && to != keeper) splits[at(keeper)] += std::exchange(splits[at(to)], 0);
  }
  return splits;
}

std::vector<std::int64_t> splits_of(const Step& step, std::size_t tensor, int position) {
  const bool has_splits = step.operation == Operation::scatter || step.operation == Operation::alltoall;
  if (step.grouped && has_splits) return splits_in_group(step, tensor, position);
  if (!step.splits.empty()) return step.splits[at(position)];
  return equal_shares(step.shape_of(tensor, position)[0], step.size());
}

Array concatenated(const Step& step, std::size_t tensor) {
  Array all(step.tensors[tensor].dtype, step.tensors[tensor].shape.with_rows(0));
  for (int position = 0; position < static_cast<int>(step.size()); ++position) {
    if (!step.has_joined(position)) append_rows(all, input_of(step, tensor, position));
  }
  return all;
}

Array reduced(const Step& step, std::size_t tensor) {
  std::vector<Array> inputs;  // of those present: also Adasum pairs them as if there were no others
  for (int position = 0; position < static_cast<int>(step.size()); ++position) {
    if (!step.has_joined(position)) inputs.push_back(input_of(step, tensor, position));
  }
  Rule rule = step.rule;
  rule.divisor = static_cast<int>(step.join_average == JoinAverage::all ? step.size() : inputs.size());
  return reduction(rule, inputs);
}

// The rows of `whole` that are this position's share.
Array share(const Array& whole, const std::vector<std::int64_t>& splits, int position) {
  return rows_of(whole, std::accumulate(splits.begin(), splits.begin() + position, std::int64_t{0}),
                 splits[at(position)]);
}

Array exchanged(const Step& step, std::size_t tensor, int position) {
  Array received(step.tensors[tensor].dtype, step.tensors[tensor].shape.with_rows(0));
  for (int sender = 0; sender < static_cast<int>(step.size()); ++sender) {
    if (step.has_joined(sender)) continue;
    append_rows(received, share(input_of(step, tensor, sender), splits_of(step, tensor, sender), position));
  }
  return received;
}

}  // namespace

int Step::position_of(int rank) const {
  const auto found = std::ranges::find(ranks, rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

Shape Step::shape_of(std::size_t tensor, int position) const {
  const Shape& shape = tensors[tensor].shape;
  return rows.empty() ? shape : shape.with_rows(rows[at(position)]);
}

std::string to_string(const Step& step) {
  std::string text = std::string(hvd::to_string(step.operation)) + " '" + step.name + "'";
  for (const TensorSpec& tensor : step.tensors) text += " " + describe(tensor.dtype, tensor.shape);
  if (reduces(step.operation)) {
    text += " " + std::string(hvd::to_string(step.rule.op));
    if (step.rule.prescale != 1.0) text += " prescale " + std::to_string(step.rule.prescale);
    if (step.rule.postscale != 1.0) text += " postscale " + std::to_string(step.rule.postscale);
  }
  text += " of ranks " + list(step.ranks) + ", set " + std::to_string(step.set) + ", root " +
          std::to_string(step.ranks[at(step.root)]);
  if (!step.rows.empty()) text += ", rows " + list(step.rows);
  for (const auto& splits : step.splits) text += ", splits " + list(splits);
  if (step.grouped) text += ", grouped";
  if (step.in_place) text += ", in place";
  if (step.blocking) text += ", blocking";
  for (std::size_t position = 0; position < step.joined.size(); ++position) {
    if (step.joined[position]) text += ", " + std::to_string(step.ranks[position]) + " has joined";
  }
  if (step.mismatch != Mismatch::none)
    text += ", another " + std::string(to_string(step.mismatch)) + " on " + std::to_string(step.ranks[at(step.odd)]);
  return text;
}

bool reduces(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce || operation == Operation::reduce_scatter;
}

bool has_group_form(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce ||
         operation == Operation::reduce_scatter || operation == Operation::broadcast ||
         operation == Operation::allgather || operation == Operation::gather || operation == Operation::scatter ||
         operation == Operation::alltoall;
}

bool has_in_place_form(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce || operation == Operation::broadcast;
}

bool groups_only_in_place(Operation operation) {
  return operation == Operation::reduce || operation == Operation::broadcast;
}

bool needs_rows(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::allgather ||
         operation == Operation::gather || operation == Operation::scatter || operation == Operation::alltoall;
}

std::vector<std::int64_t> equal_shares(std::int64_t rows, std::size_t ranks) {
  const auto count = static_cast<std::int64_t>(ranks);
  std::vector<std::int64_t> shares(ranks, rows / count);
  for (std::size_t rank = 0; rank < at(static_cast<int>(rows % count)); ++rank) ++shares[rank];
  return shares;
}

Array input_of(const Step& step, std::size_t tensor, int position) {
  const std::uint64_t seed =
      (step.seed * 64 + tensor) * 64 + static_cast<std::uint64_t>(step.ranks[static_cast<std::size_t>(position)]);
  const Shape shape = step.shape_of(tensor, position);
  const DataType dtype = step.tensors[tensor].dtype;
  return reduces(step.operation) ? exact_data(dtype, shape, step.rule, seed) : any_data(dtype, shape, seed);
}

Array blank(DataType dtype, const Shape& shape) {
  Array data(dtype, shape);
  std::ranges::fill(data.bytes(), std::byte{1});
  return data;
}

Array expected_of(const Step& step, std::size_t tensor, int position) {
  const auto untouched = [&] {
    if (step.in_place) return input_of(step, tensor, position);
    return blank(step.tensors[tensor].dtype, step.tensors[tensor].shape);
  };
  const bool root = position == step.root;
  switch (step.operation) {
    case Operation::allreduce:
      return reduced(step, tensor);
    case Operation::reduce:
      return root ? reduced(step, tensor) : untouched();
    case Operation::reduce_scatter:
      return share(reduced(step, tensor), splits_of(step, tensor, position), position);
    case Operation::broadcast:
      return input_of(step, tensor, step.root);
    case Operation::allgather:
      return concatenated(step, tensor);
    case Operation::gather:
      return root ? concatenated(step, tensor)
                  : Array(step.tensors[tensor].dtype, step.tensors[tensor].shape.with_rows(0));
    case Operation::scatter:
      return share(input_of(step, tensor, step.root), splits_of(step, tensor, step.root), position);
    case Operation::alltoall:
      return exchanged(step, tensor, position);
    case Operation::send_recv:
      return root ? input_of(step, tensor, 1 - step.root) : untouched();
    default:
      return {};
  }
}

std::vector<std::int64_t> given_splits(const Step& step, int position) {
  if (!step.grouped) return step.splits.empty() ? std::vector<std::int64_t>() : step.splits[at(position)];
  std::vector<std::int64_t> splits;
  for (std::size_t tensor = 0; tensor < step.tensors.size(); ++tensor) {
    const auto of_tensor = splits_in_group(step, tensor, position);
    splits.insert(splits.end(), of_tensor.begin(), of_tensor.end());
  }
  return splits;
}

std::vector<std::int64_t> received_splits_of(const Step& step, int position) {
  std::vector<std::int64_t> received;
  for (std::size_t tensor = 0; tensor < step.tensors.size(); ++tensor) {
    for (int sender = 0; sender < static_cast<int>(step.size()); ++sender)
      received.push_back(step.has_joined(sender) ? 0 : splits_of(step, tensor, sender)[at(position)]);
  }
  return received;
}

}  // namespace hvd::test
