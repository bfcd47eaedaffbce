#include <algorithm>

#include "matrix.h"

namespace hvd::test {

namespace {

std::string refusal(Operation operation, DataType dtype, ReduceOp op) {
  std::string allowed;
  for (const ReduceOp other : allowed_ops(dtype, operation))
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(other));
  const std::string text = std::string(to_string(operation)) + " 'x': ";
  const std::string type = "dtype " + std::string(to_string(dtype));
  if (allowed.empty()) {
    return text + type +
           " cannot be reduced; allowed for it: broadcast, allgather, gather, scatter, alltoall, send/recv";
  }
  const std::vector<ReduceOp> of_allreduce = allowed_ops(dtype, Operation::allreduce);
  const bool elsewhere = std::ranges::find(of_allreduce, op) != of_allreduce.end();
  return text +
         (elsewhere ? std::string(to_string(op)) + " is for allreduce only"
                    : type + " with " + std::string(to_string(op))) +
         "; allowed: " + allowed;
}

template <typename Call>
std::string unlike(const std::string& wanted, const Call& call) {
  try {
    call();
  } catch (const InvalidArgumentError& error) {
    const std::string text = error.what();
    return text == wanted ? "" : "\"" + text + "\" instead of \"" + wanted + "\"";
  } catch (const std::exception& error) {
    return "another kind of error, " + std::string(error.what()) + ", instead of \"" + wanted + "\"";
  }
  return "not refused: " + wanted;
}

}  // namespace

std::vector<std::string> run_refused(Runtime& runtime) {
  std::vector<std::string> errors;
  const auto check = [&](const std::string& wanted, const auto& call) {
    std::string text = unlike(wanted, call);
    if (!text.empty()) errors.push_back(std::move(text));
  };
  for (const DataType dtype : all_dtypes) {
    Array data(dtype, {3});
    for (std::uint8_t number = 0; number < reduce_op_count; ++number) {
      const auto op = static_cast<ReduceOp>(number);
      for (const Operation operation : {Operation::allreduce, Operation::reduce, Operation::reduce_scatter}) {
        const std::vector<ReduceOp> allowed = allowed_ops(dtype, operation);
        if (std::ranges::find(allowed, op) != allowed.end()) continue;
        check(refusal(operation, dtype, op), [&] {
          if (operation == Operation::allreduce) return runtime.allreduce(data.view(), {.name = "x", .op = op});
          if (operation == Operation::reduce) return runtime.reduce(data.view(), {.name = "x", .op = op});
          static_cast<void>(runtime.reduce_scatter(data.view(), {.name = "x", .op = op}));
        });
      }
    }
    if (may_be_scaled(dtype) || allowed_ops(dtype, Operation::allreduce).empty()) continue;
    const std::string wanted = "allreduce 'x': dtype " + std::string(to_string(dtype)) + " cannot be scaled";
    check(wanted, [&] { runtime.allreduce(data.view(), {.name = "x", .op = ReduceOp::sum, .prescale = 0.5}); });
    check(wanted, [&] { runtime.allreduce(data.view(), {.name = "x", .op = ReduceOp::sum, .postscale = 0.5}); });
  }
  Array scalar(DataType::f32, Shape{});
  const ConstTensorView view = scalar.view();
  const auto needs = [](Operation operation) {
    return std::string(to_string(operation)) + " 'x': needs 1 or more dimensions, got a scalar";
  };
  check(needs(Operation::reduce_scatter), [&] { static_cast<void>(runtime.reduce_scatter(view, {.name = "x"})); });
  check(needs(Operation::allgather), [&] { static_cast<void>(runtime.allgather(view, {.name = "x"})); });
  check(needs(Operation::gather), [&] { static_cast<void>(runtime.gather(view, {.name = "x"})); });
  check(needs(Operation::alltoall), [&] { static_cast<void>(runtime.alltoall(view, {.name = "x"})); });
  const int rank = runtime.rank();
  check(needs(Operation::scatter), [&] { static_cast<void>(runtime.scatter(view, {.name = "x", .root_rank = rank})); });
  return errors;
}

}  // namespace hvd::test
