#pragma once

#include <hvd/runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "step.h"

// The table of what there is: every operation x dtype x shape x reduce op x in place or not x way of calling x process
// set, for worlds of any kind.
namespace hvd::test {

enum class Way : std::uint8_t { async, blocking, grouped };

inline const std::vector<Operation> matrix_operations{
    Operation::allreduce, Operation::reduce,  Operation::reduce_scatter, Operation::broadcast, Operation::allgather,
    Operation::gather,    Operation::scatter, Operation::alltoall,       Operation::send_recv, Operation::barrier};

// Those of the even ranks, the odd ones and the last one, as far as they are neither empty nor all nor the same.
std::vector<std::vector<int>> matrix_sets(int size);
// Hosts of one and two ranks in turn: 1; 1,1; 1,2; 1,2,1.
std::vector<int> small_hosts(int size);

// One column of the table. Names repeat from column to column.
std::vector<Step> matrix_steps(int size, Operation operation, DataType dtype, Way way);
// One group of all dtypes that the operation has.
std::vector<Step> mixed_groups(int size, Operation operation);

// All columns of an operation on a runtime that was made with matrix_sets(); every `stride`-th column only. Returns
// what was wrong.
std::vector<std::string> run_matrix(Runtime& runtime, Operation operation, int stride);

// Calls what each dtype lacks, on this rank alone. Returns what was not refused, or not in these words:
// "allreduce 'x': dtype bool with Average; allowed: Sum, Min, Max, Product".
std::vector<std::string> run_refused(Runtime& runtime);

}  // namespace hvd::test
