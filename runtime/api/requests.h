#pragma once

#include <hvd/options.h>
#include <hvd/tensor.h>

#include "engine/pending_operation.h"
#include "transport/topology.h"

namespace hvd::detail {

// Turn the arguments of a call into an operation ready for submission. Whatever can be seen to be wrong on one rank
// alone throws InvalidArgumentError here, with operation and name.
OperationPtr make_allreduce(const ConstTensorView& input, const TensorView& output, const AllreduceOptions& options);
OperationPtr make_broadcast(const ConstTensorView& input, const TensorView& output, const BroadcastOptions& options,
                            const Topology& topology);
OperationPtr make_allgather(const ConstTensorView& input, const AllgatherOptions& options);
OperationPtr make_barrier(const BarrierOptions& options);

}  // namespace hvd::detail
