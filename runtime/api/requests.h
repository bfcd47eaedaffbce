#pragma once

#include <span>

#include <hvd/config.h>
#include <hvd/options.h>
#include <hvd/tensor.h>

#include "engine/pending_operation.h"
#include "engine/shared_sets.h"
#include "transport/topology.h"

namespace hvd::detail {

// What a call is checked against.
struct CallContext {
  const Topology& topology;
  const SharedSets& sets;
  CheckLevel check = CheckLevel::local;
  const void* call_site = nullptr;
};

using Inputs = std::span<const ConstTensorView>;
using Outputs = std::span<const TensorView>;

// Turn the arguments of a call into an operation ready for submission. Whatever can be seen to be wrong on one rank
// alone throws InvalidArgumentError here, with operation and name.
OperationPtr make_allreduce(const CallContext& context, Inputs inputs, Outputs outputs,
                            const AllreduceOptions& options);
OperationPtr make_reduce(const CallContext& context, Inputs inputs, Outputs outputs, const ReduceOptions& options);
OperationPtr make_reduce_scatter(const CallContext& context, Inputs inputs, const ReduceScatterOptions& options);
OperationPtr make_broadcast(const CallContext& context, Inputs inputs, Outputs outputs,
                            const BroadcastOptions& options);
OperationPtr make_allgather(const CallContext& context, Inputs inputs, const AllgatherOptions& options);
OperationPtr make_gather(const CallContext& context, Inputs inputs, const GatherOptions& options);
OperationPtr make_scatter(const CallContext& context, Inputs inputs, const ScatterOptions& options);
OperationPtr make_alltoall(const CallContext& context, Inputs inputs, const AlltoallOptions& options);
OperationPtr make_send(const CallContext& context, const ConstTensorView& tensor, const SendOptions& options);
OperationPtr make_recv(const CallContext& context, const TensorView& tensor, const RecvOptions& options);
OperationPtr make_barrier(const CallContext& context, const BarrierOptions& options);
OperationPtr make_join(const CallContext& context, const JoinOptions& options);
OperationPtr make_add_process_set(const CallContext& context, std::vector<int> ranks);
OperationPtr make_remove_process_set(const CallContext& context, ProcessSet set);

}  // namespace hvd::detail
