#include "matrix.h"

#include <algorithm>
#include <utility>

#include "running_step.h"

namespace hvd::test {

namespace {

const std::vector<Shape> shapes{Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{0, 4}, Shape{4, 0, 2}};

std::vector<std::vector<int>> all_sets(int size) {
  std::vector<std::vector<int>> sets = matrix_sets(size);
  std::vector<int> all(static_cast<std::size_t>(size));
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = static_cast<int>(rank);
  sets.insert(sets.begin(), std::move(all));
  return sets;
}

// Fills in names, seeds and roots as it goes.
class Column {
 public:
  Column(int size, Operation operation, Way way) : operation_(operation), way_(way), sets_(all_sets(size)) {}

  void add(std::vector<TensorSpec> tensors, ReduceOp op = ReduceOp::sum) {
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      add(set, tensors, op, has_in_place_form(operation_));
      const bool only_in_place = way_ == Way::grouped && groups_only_in_place(operation_);
      if (has_in_place_form(operation_) && !only_in_place) add(set, tensors, op, false);
      if (needs_rows(operation_)) add_unequal(set, tensors, op);
    }
  }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  Step& add(std::size_t set, const std::vector<TensorSpec>& tensors, ReduceOp op, bool in_place) {
    Step& step = steps_.emplace_back();
    const std::vector<int>& ranks = sets_[set];
    const std::size_t number = steps_.size();
    step = {.name = std::to_string(number),
            .operation = operation_,
            .tensors = tensors,
            .rule = {.op = op},
            .set = set,
            .ranks = ranks,
            .root = static_cast<int>(number % ranks.size()),
            .grouped = way_ == Way::grouped,
            .in_place = in_place,
            .blocking = way_ == Way::blocking,
            .seed = number};
    if (number % 5 == 0 && reduces(operation_) && may_be_scaled(tensors[0].dtype)) step.rule.prescale = 0.5;
    if (number % 7 == 0 && reduces(operation_) && may_be_scaled(tensors[0].dtype)) step.rule.postscale = 4.0;
    if (operation_ == Operation::alltoall && !step.grouped &&
        tensors[0].shape[0] % static_cast<std::int64_t>(ranks.size()) != 0)
      step.splits.assign(ranks.size(), equal_shares(tensors[0].shape[0], ranks.size()));
    if (operation_ == Operation::send_recv) as_send(step);
    return step;
  }

  // Two neighbours of the set, in both directions in turn.
  static void as_send(Step& step) {
    const std::size_t ranks = step.ranks.size();
    const std::size_t first = step.seed % ranks;
    int a = step.ranks[first];
    int b = step.ranks[(first + 1) % ranks];
    if (a > b) std::swap(a, b);
    step.ranks = {a, b};
    step.root = static_cast<int>(step.seed / 2 % 2);
  }

  void add_unequal(std::size_t set, const std::vector<TensorSpec>& tensors, ReduceOp op) {
    if (tensors.size() > 1 || tensors[0].shape[0] == 0) return;
    const std::size_t ranks = sets_[set].size();
    Step& step = add(set, tensors, op, false);
    if (operation_ == Operation::reduce_scatter) return;
    if (operation_ != Operation::scatter) {
      for (std::size_t position = 0; position < ranks; ++position)
        step.rows.push_back(static_cast<std::int64_t>((position * 5 + step.seed) % 4));
    }
    if (operation_ != Operation::scatter && operation_ != Operation::alltoall) return;
    step.splits.clear();
    for (std::size_t position = 0; position < ranks; ++position) {
      const std::int64_t rows = step.rows.empty() ? tensors[0].shape[0] : step.rows[position];
      std::vector<std::int64_t> splits = equal_shares(rows, ranks);
      std::ranges::rotate(splits, splits.begin() + static_cast<std::ptrdiff_t>(position));
      if (rows > 1) std::swap(splits.front(), splits.back());
      step.splits.push_back(std::move(splits));
    }
  }

  Operation operation_;
  Way way_;
  std::vector<std::vector<int>> sets_;
  std::vector<Step> steps_;
};

std::vector<ReduceOp> ops_of(DataType dtype, Operation operation) {
  return reduces(operation) ? allowed_ops(dtype, operation) : std::vector<ReduceOp>{ReduceOp::sum};
}

}  // namespace

std::vector<std::vector<int>> matrix_sets(int size) {
  std::vector<std::vector<int>> sets(3);
  for (int rank = 0; rank < size; ++rank) sets[rank % 2 == 0 ? 0 : 1].push_back(rank);
  sets[2] = {size - 1};
  std::erase_if(sets, [&](const auto& set) { return set.empty() || static_cast<int>(set.size()) == size; });
  if (sets.size() == 3 && sets[1] == sets[2]) sets.pop_back();
  if (sets.size() == 2 && sets[0] == sets[1]) sets.pop_back();
  return sets;
}

std::vector<int> small_hosts(int size) {
  std::vector<int> counts;
  for (int left = size; left > 0; left -= counts.back())
    counts.push_back(std::min(left, counts.size() % 2 == 0 ? 1 : 2));
  return counts;
}

std::vector<Step> matrix_steps(int size, Operation operation, DataType dtype, Way way) {
  Column column(size, operation, way);
  if (operation == Operation::send_recv && size == 1) return {};
  for (const ReduceOp op : ops_of(dtype, operation)) {
    std::vector<TensorSpec> tensors;
    for (const Shape& shape : shapes) {
      if (needs_rows(operation) && shape.rank() == 0) continue;
      tensors.push_back({.dtype = dtype, .shape = shape});
      if (way != Way::grouped) column.add({tensors.back()}, op);
    }
    if (way == Way::grouped) column.add(tensors, op);
  }
  std::vector<Step> steps = column.take();
  // A send from a set of one has nobody to go to.
  std::erase_if(
      steps, [](const Step& step) { return step.operation == Operation::send_recv && step.ranks[0] == step.ranks[1]; });
  return steps;
}

std::vector<Step> mixed_groups(int size, Operation operation) {
  Column column(size, operation, Way::grouped);
  for (const ReduceOp op : {ReduceOp::average, ReduceOp::sum, ReduceOp::min}) {
    std::vector<TensorSpec> tensors;
    for (const DataType dtype : all_dtypes) {
      const std::vector<ReduceOp> ops = ops_of(dtype, operation);
      if (!reduces(operation) || std::ranges::find(ops, op) != ops.end())
        tensors.push_back({.dtype = dtype, .shape = shapes[1 + tensors.size() % 6]});
    }
    column.add(std::move(tensors), op);
  }
  std::vector<Step> steps = column.take();
  for (Step& step : steps) step.rule.prescale = step.rule.postscale = 1.0;
  return steps;
}

std::vector<std::string> run_matrix(Runtime& runtime, Operation operation, int stride) {
  std::vector<std::string> errors;
  std::vector<ProcessSet> sets{{}};
  while (sets.size() <= matrix_sets(runtime.size()).size()) sets.push_back({static_cast<std::uint32_t>(sets.size())});
  if (operation == Operation::barrier) {
    std::vector<Step> steps;
    const auto ranks = all_sets(runtime.size());
    for (std::size_t i = 0; i < 4 * ranks.size(); ++i) {
      steps.push_back({.name = std::to_string(i),
                       .operation = operation,
                       .set = i % ranks.size(),
                       .ranks = ranks[i % ranks.size()],
                       .blocking = i % 2 == 0});
    }
    run_one_by_one(runtime, sets, steps, errors);
    return errors;
  }
  int number = 0;
  for (const DataType dtype : all_dtypes) {
    for (const Way way : {Way::async, Way::blocking, Way::grouped}) {
      if (number++ % stride != 0 || (way == Way::grouped && !has_group_form(operation))) continue;
      const std::vector<Step> steps = matrix_steps(runtime.size(), operation, dtype, way);
      way == Way::blocking ? run_one_by_one(runtime, sets, steps, errors) : run_together(runtime, sets, steps, errors);
      if (!errors.empty()) return errors;
    }
  }
  if (has_group_form(operation)) run_together(runtime, sets, mixed_groups(runtime.size(), operation), errors);
  return errors;
}

}  // namespace hvd::test
