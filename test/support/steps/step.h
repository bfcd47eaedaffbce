#pragma once

#include <hvd/config.h>
#include <hvd/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arithmetic.h"
#include "data.h"

namespace hvd::test {

struct TensorSpec {
  DataType dtype = DataType::f32;
  Shape shape{0};
};

// In what one rank's side of a step differs from the others', so that all get an error.
enum class Mismatch : std::uint8_t { none, shape, dtype, reduce_op, scale, root, operation, group };

// One operation as plain data: what all ranks submit, and, by a seed, their values. "Position" is a rank's place in
// the step's process set; rank numbers are the world's.
struct Step {
  std::string name = {};
  Operation operation = Operation::allreduce;
  std::vector<TensorSpec> tensors = {};  // one, or those of a group; none for a barrier
  Rule rule = {};                        // of reductions; its divisor does not count here
  std::size_t set = 0;                   // which of the program's process sets
  std::vector<int> ranks = {};           // of that set, sorted; of a send/recv the two ends
  int root = 0;                          // position; of a send/recv the receiver's
  bool grouped = false;
  bool in_place = false;  // where the operation has a choice
  bool blocking = false;
  std::vector<std::int64_t> rows = {};  // of each position where they may differ; empty: as the shape says
  std::vector<std::vector<std::int64_t>> splits = {};  // of each position; empty: equal shares; not of a group
  std::vector<bool> joined = {};                       // positions that have joined before; empty: none
  JoinAverage join_average = JoinAverage::all;
  Mismatch mismatch = Mismatch::none;
  int odd = 0;  // the position that differs then
  std::uint64_t seed = 0;

  std::size_t size() const { return ranks.size(); }
  int position_of(int rank) const;  // -1: not in the set
  bool has_joined(int position) const { return !joined.empty() && joined[static_cast<std::size_t>(position)]; }
  Shape shape_of(std::size_t tensor, int position) const;
};

std::string to_string(const Step& step);

bool reduces(Operation operation);
bool has_group_form(Operation operation);
bool groups_only_in_place(Operation operation);
bool has_in_place_form(Operation operation);
bool needs_rows(Operation operation);  // a scalar is an error

// Rows of equal shares, the first ones getting one more when there is a remainder.
std::vector<std::int64_t> equal_shares(std::int64_t rows, std::size_t ranks);

// What the rank at this position submits.
Array input_of(const Step& step, std::size_t tensor, int position);
// What it then has: the output, or, where it gets none, what was there before (see blank()).
Array expected_of(const Step& step, std::size_t tensor, int position);
// What an output holds before the operation.
Array blank(DataType dtype, const Shape& shape);
// What the rank at this position gives as splits.
std::vector<std::int64_t> given_splits(const Step& step, int position);
// Of an alltoall.
std::vector<std::int64_t> received_splits_of(const Step& step, int position);

}  // namespace hvd::test
