#pragma once

#include <string>

#include <hvd/types.h>

// What each dtype may be used for: the one place that says so. docs/dtypes.md is made from it.
namespace hvd {

// Whether the operation combines the values of the ranks: allreduce, reduce, reduce_scatter.
bool is_reduction(Operation operation);
// Whether the operation takes a tensor, which it then carries unchanged or reduces.
bool takes_tensor(Operation operation);
// Whether a tensor of this dtype can be given to the operation, with one reduce op at least if it is a reduction.
bool takes(Operation operation, DataType dtype);

// Whether an allreduce can combine the dtype so. The other reductions can do the same, but Adasum.
bool reduces(DataType dtype, ReduceOp op);
bool reduces(Operation operation, DataType dtype, ReduceOp op);

// Whether a reduction may have a prescale or postscale other than 1.
bool scales(DataType dtype);

// "Sum, Min, Max, Product", of an allreduce; "none".
std::string allowed_reduce_ops(DataType dtype);

// Why this is not possible, without the operation's name; empty if it is, and always for an operation that does not
// reduce.
//   dtype bool with Average; allowed: Sum, Min, Max, Product
//   dtype float8_e4m3 cannot be reduced; allowed for it: broadcast, allgather, gather, scatter, alltoall, send/recv
//   dtype bool cannot be scaled
//   Adasum is for allreduce only; allowed: Average, Sum, Min, Max, Product
std::string reduction_problem(Operation operation, DataType dtype, ReduceOp op, double prescale, double postscale);

}  // namespace hvd
