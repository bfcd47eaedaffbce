#include "types/dtype_rules.h"

#include <fmt/format.h>

#include "types/dtype_kind.h"

namespace hvd {

namespace {

// The names of the enumerators 0 to count - 1 that pass the test.
template <typename Enum, typename Test>
std::string list_of(std::uint8_t count, Test test) {
  std::string names;
  for (std::uint8_t i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    if (!test(value)) continue;
    if (!names.empty()) names += ", ";
    names += to_string(value);
  }
  return names.empty() ? "none" : names;
}

std::string allowed_reduce_ops(Operation operation, DataType dtype) {
  return list_of<ReduceOp>(reduce_op_count, [&](ReduceOp op) { return reduces(operation, dtype, op); });
}

std::string allowed_operations(DataType dtype) {
  return list_of<Operation>(operation_count, [&](Operation operation) { return takes(operation, dtype); });
}

}  // namespace

bool is_reduction(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce || operation == Operation::reduce_scatter;
}

bool takes_tensor(Operation operation) {
  switch (operation) {
    case Operation::allreduce:
    case Operation::reduce:
    case Operation::reduce_scatter:
    case Operation::broadcast:
    case Operation::allgather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::alltoall:
    case Operation::send_recv:
      return true;
    case Operation::barrier:
    case Operation::join:
    case Operation::add_process_set:
    case Operation::remove_process_set:
      return false;
  }
  return false;
}

bool takes(Operation operation, DataType dtype) {
  return takes_tensor(operation) && !(is_reduction(operation) && kind_of(dtype) == DataKind::transport);
}

bool reduces(DataType dtype, ReduceOp op) {
  switch (kind_of(dtype)) {
    case DataKind::integer:
      return op != ReduceOp::adasum;
    case DataKind::floating:
      return true;
    case DataKind::logical:
      return op != ReduceOp::average && op != ReduceOp::adasum;
    case DataKind::complex:
      return op == ReduceOp::average || op == ReduceOp::sum || op == ReduceOp::product;
    case DataKind::transport:
      return false;
  }
  return false;
}

bool reduces(Operation operation, DataType dtype, ReduceOp op) {
  return is_reduction(operation) && reduces(dtype, op) && (op != ReduceOp::adasum || operation == Operation::allreduce);
}

bool scales(DataType dtype) {
  const DataKind kind = kind_of(dtype);
  return kind != DataKind::logical && kind != DataKind::transport;
}

std::string allowed_reduce_ops(DataType dtype) { return allowed_reduce_ops(Operation::allreduce, dtype); }

std::string reduction_problem(Operation operation, DataType dtype, ReduceOp op, double prescale, double postscale) {
  if (!is_reduction(operation)) return "";
  if (!takes(operation, dtype)) {
    return fmt::format("dtype {} cannot be reduced; allowed for it: {}", to_string(dtype), allowed_operations(dtype));
  }
  if (!reduces(dtype, op)) {
    return fmt::format("dtype {} with {}; allowed: {}", to_string(dtype), to_string(op),
                       allowed_reduce_ops(operation, dtype));
  }
  if (!reduces(operation, dtype, op)) {
    return fmt::format("{} is for allreduce only; allowed: {}", to_string(op), allowed_reduce_ops(operation, dtype));
  }
  if ((prescale != 1.0 || postscale != 1.0) && !scales(dtype)) {
    return fmt::format("dtype {} cannot be scaled", to_string(dtype));
  }
  return "";
}

}  // namespace hvd
