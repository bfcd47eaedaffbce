#include <hvd/runtime.h>

#include <fmt/format.h>

#include <algorithm>

#include "api/call_site.h"
#include "api/requests.h"
#include "engine/engine.h"

namespace hvd {

using detail::OperationPtr;

namespace {

Handle start(detail::Engine& engine, const OperationPtr& operation) {
  engine.submit(operation, /*wake=*/true);
  return Handle(operation);
}

// The caller waits next and drives the progress itself: nobody needs to be woken.
void finish(detail::Engine& engine, const OperationPtr& operation) {
  engine.submit(operation, /*wake=*/false);
  Handle(operation).wait();
}

detail::CallContext context_of(const detail::Engine& engine, const void* caller = __builtin_return_address(0)) {
  engine.throw_if_forked();
  return {.topology = engine.topology(),
          .sets = engine.sets(),
          .check = engine.config().check,
          .call_site = detail::CallSite::outermost(caller)};
}

// A single tensor is a group of one.
detail::Inputs one(const ConstTensorView& input) { return {&input, 1}; }
detail::Outputs one(const TensorView& output) { return {&output, 1}; }

std::vector<ConstTensorView> inputs_of(std::span<const TensorView> tensors) { return {tensors.begin(), tensors.end()}; }

// Of an operation that is done and has one result.
Tensor result_of(const OperationPtr& operation) { return std::move(operation->results.front()); }

}  // namespace

Runtime::Runtime(std::unique_ptr<Transport> transport, const Config& config)
    : engine_(std::make_shared<detail::Engine>(std::move(transport), config)) {}

Runtime::~Runtime() {
  // Even giving the resources back would disturb the parent, with whom a forked child shares them.
  if (engine_->forked()) {
    new std::shared_ptr<detail::Engine>(engine_);
    return;
  }
  shutdown();
}

int Runtime::rank() const { return engine_->topology().rank(); }
int Runtime::size() const { return engine_->topology().size(); }
int Runtime::local_rank() const { return engine_->topology().local_rank(); }
int Runtime::local_size() const { return engine_->topology().local_size(); }
int Runtime::cross_rank() const { return engine_->topology().cross_rank(); }
int Runtime::cross_size() const { return engine_->topology().cross_size(); }
bool Runtime::is_homogeneous() const { return engine_->topology().is_homogeneous(); }
const Config& Runtime::config() const { return engine_->config(); }

void Runtime::shutdown(std::string_view reason) noexcept {
  if (!engine_->forked()) engine_->leave(std::string(reason), /*at_once=*/false);
}
void Runtime::leave(std::string_view reason) noexcept {
  if (!engine_->forked()) engine_->leave(std::string(reason), /*at_once=*/true);
}
bool Runtime::is_running() const { return engine_->running(); }
Stats Runtime::stats() const { return engine_->stats(); }
void Runtime::add_observer(std::shared_ptr<Observer> observer) { engine_->add_observer(std::move(observer)); }

ProcessSet Runtime::add_process_set(const std::vector<int>& ranks) {
  const OperationPtr operation = detail::make_add_process_set(context_of(*engine_), ranks);
  finish(*engine_, operation);
  return {.id = static_cast<std::uint32_t>(operation->answer)};
}

void Runtime::remove_process_set(ProcessSet set) {
  finish(*engine_, detail::make_remove_process_set(context_of(*engine_), set));
}

std::vector<int> Runtime::process_set_ranks(ProcessSet set) const {
  const auto ranks = engine_->sets().ranks(set.id);
  if (!ranks) throw InvalidArgumentError("process set " + std::to_string(set.id) + " does not exist");
  return *ranks;
}

int Runtime::process_set_rank(ProcessSet set) const {
  const auto position = position_in(process_set_ranks(set), rank());
  return position ? static_cast<int>(*position) : -1;
}

Handle Runtime::allreduce_async(TensorView tensor, const AllreduceOptions& options) {
  return start(*engine_,
               detail::make_allreduce(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
void Runtime::allreduce(TensorView tensor, const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
Handle Runtime::allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  return start(*engine_, detail::make_allreduce(context_of(*engine_), one(input), one(output), options));
}
void Runtime::allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(context_of(*engine_), one(input), one(output), options));
}

void Runtime::allreduce_each_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                   std::span<const std::string> names, const AllreduceOptions& options,
                                   std::vector<Handle>& handles) {
  if (inputs.size() != outputs.size() || inputs.size() != names.size()) {
    throw InvalidArgumentError(
        fmt::format("allreduce: {} inputs, {} outputs and {} names", inputs.size(), outputs.size(), names.size()));
  }
  const detail::CallContext context = context_of(*engine_);
  std::vector<OperationPtr> operations;
  operations.reserve(inputs.size());
  AllreduceOptions own = options;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    own.name = names[i];
    operations.push_back(detail::make_allreduce(context, one(inputs[i]), one(outputs[i]), own));
  }
  try {
    for (const OperationPtr& operation : operations) {
      engine_->submit(operation, /*wake=*/false);
      handles.push_back(Handle(operation));
    }
  } catch (...) {
    engine_->wake();
    throw;
  }
  engine_->wake();
}

Handle Runtime::grouped_allreduce_async(std::span<const TensorView> tensors, const AllreduceOptions& options) {
  return start(*engine_, detail::make_allreduce(context_of(*engine_), inputs_of(tensors), tensors, options));
}
void Runtime::grouped_allreduce(std::span<const TensorView> tensors, const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(context_of(*engine_), inputs_of(tensors), tensors, options));
}
Handle Runtime::grouped_allreduce_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                        const AllreduceOptions& options) {
  return start(*engine_, detail::make_allreduce(context_of(*engine_), inputs, outputs, options));
}
void Runtime::grouped_allreduce(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(context_of(*engine_), inputs, outputs, options));
}

Handle Runtime::reduce_async(TensorView tensor, const ReduceOptions& options) {
  return start(*engine_, detail::make_reduce(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
void Runtime::reduce(TensorView tensor, const ReduceOptions& options) {
  finish(*engine_, detail::make_reduce(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
Handle Runtime::reduce_async(ConstTensorView input, TensorView output, const ReduceOptions& options) {
  return start(*engine_, detail::make_reduce(context_of(*engine_), one(input), one(output), options));
}
void Runtime::reduce(ConstTensorView input, TensorView output, const ReduceOptions& options) {
  finish(*engine_, detail::make_reduce(context_of(*engine_), one(input), one(output), options));
}

Handle Runtime::grouped_reduce_async(std::span<const TensorView> tensors, const ReduceOptions& options) {
  return start(*engine_, detail::make_reduce(context_of(*engine_), inputs_of(tensors), tensors, options));
}
void Runtime::grouped_reduce(std::span<const TensorView> tensors, const ReduceOptions& options) {
  finish(*engine_, detail::make_reduce(context_of(*engine_), inputs_of(tensors), tensors, options));
}

Handle Runtime::broadcast_async(TensorView tensor, const BroadcastOptions& options) {
  return start(*engine_,
               detail::make_broadcast(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
void Runtime::broadcast(TensorView tensor, const BroadcastOptions& options) {
  finish(*engine_, detail::make_broadcast(context_of(*engine_), one(ConstTensorView(tensor)), one(tensor), options));
}
Handle Runtime::broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  return start(*engine_, detail::make_broadcast(context_of(*engine_), one(input), one(output), options));
}
void Runtime::broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  finish(*engine_, detail::make_broadcast(context_of(*engine_), one(input), one(output), options));
}

Handle Runtime::grouped_broadcast_async(std::span<const TensorView> tensors, const BroadcastOptions& options) {
  return start(*engine_, detail::make_broadcast(context_of(*engine_), inputs_of(tensors), tensors, options));
}
void Runtime::grouped_broadcast(std::span<const TensorView> tensors, const BroadcastOptions& options) {
  finish(*engine_, detail::make_broadcast(context_of(*engine_), inputs_of(tensors), tensors, options));
}

Handle Runtime::reduce_scatter_async(ConstTensorView input, const ReduceScatterOptions& options) {
  return start(*engine_, detail::make_reduce_scatter(context_of(*engine_), one(input), options));
}
Tensor Runtime::reduce_scatter(ConstTensorView input, const ReduceScatterOptions& options) {
  const OperationPtr operation = detail::make_reduce_scatter(context_of(*engine_), one(input), options);
  finish(*engine_, operation);
  return result_of(operation);
}
Handle Runtime::grouped_reduce_scatter_async(std::span<const ConstTensorView> inputs,
                                             const ReduceScatterOptions& options) {
  return start(*engine_, detail::make_reduce_scatter(context_of(*engine_), inputs, options));
}
std::vector<Tensor> Runtime::grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                                    const ReduceScatterOptions& options) {
  const OperationPtr operation = detail::make_reduce_scatter(context_of(*engine_), inputs, options);
  finish(*engine_, operation);
  return std::move(operation->results);
}

Handle Runtime::allgather_async(ConstTensorView input, const AllgatherOptions& options) {
  return start(*engine_, detail::make_allgather(context_of(*engine_), one(input), options));
}
Tensor Runtime::allgather(ConstTensorView input, const AllgatherOptions& options) {
  const OperationPtr operation = detail::make_allgather(context_of(*engine_), one(input), options);
  finish(*engine_, operation);
  return result_of(operation);
}
Handle Runtime::grouped_allgather_async(std::span<const ConstTensorView> inputs, const AllgatherOptions& options) {
  return start(*engine_, detail::make_allgather(context_of(*engine_), inputs, options));
}
std::vector<Tensor> Runtime::grouped_allgather(std::span<const ConstTensorView> inputs,
                                               const AllgatherOptions& options) {
  const OperationPtr operation = detail::make_allgather(context_of(*engine_), inputs, options);
  finish(*engine_, operation);
  return std::move(operation->results);
}

Handle Runtime::gather_async(ConstTensorView input, const GatherOptions& options) {
  return start(*engine_, detail::make_gather(context_of(*engine_), one(input), options));
}
Tensor Runtime::gather(ConstTensorView input, const GatherOptions& options) {
  const OperationPtr operation = detail::make_gather(context_of(*engine_), one(input), options);
  finish(*engine_, operation);
  return result_of(operation);
}

Handle Runtime::grouped_gather_async(std::span<const ConstTensorView> inputs, const GatherOptions& options) {
  return start(*engine_, detail::make_gather(context_of(*engine_), inputs, options));
}
std::vector<Tensor> Runtime::grouped_gather(std::span<const ConstTensorView> inputs, const GatherOptions& options) {
  const OperationPtr operation = detail::make_gather(context_of(*engine_), inputs, options);
  finish(*engine_, operation);
  return std::move(operation->results);
}

Handle Runtime::scatter_async(ConstTensorView input, const ScatterOptions& options) {
  return start(*engine_, detail::make_scatter(context_of(*engine_), one(input), options));
}
Tensor Runtime::scatter(ConstTensorView input, const ScatterOptions& options) {
  const OperationPtr operation = detail::make_scatter(context_of(*engine_), one(input), options);
  finish(*engine_, operation);
  return result_of(operation);
}
Handle Runtime::grouped_scatter_async(std::span<const ConstTensorView> inputs, const ScatterOptions& options) {
  return start(*engine_, detail::make_scatter(context_of(*engine_), inputs, options));
}
std::vector<Tensor> Runtime::grouped_scatter(std::span<const ConstTensorView> inputs, const ScatterOptions& options) {
  const OperationPtr operation = detail::make_scatter(context_of(*engine_), inputs, options);
  finish(*engine_, operation);
  return std::move(operation->results);
}

Handle Runtime::alltoall_async(ConstTensorView input, const AlltoallOptions& options) {
  return start(*engine_, detail::make_alltoall(context_of(*engine_), one(input), options));
}
Tensor Runtime::alltoall(ConstTensorView input, const AlltoallOptions& options,
                         std::vector<std::int64_t>* received_splits) {
  const OperationPtr operation = detail::make_alltoall(context_of(*engine_), one(input), options);
  finish(*engine_, operation);
  if (received_splits != nullptr) *received_splits = operation->received_splits;
  return result_of(operation);
}
Handle Runtime::grouped_alltoall_async(std::span<const ConstTensorView> inputs, const AlltoallOptions& options) {
  return start(*engine_, detail::make_alltoall(context_of(*engine_), inputs, options));
}
std::vector<Tensor> Runtime::grouped_alltoall(std::span<const ConstTensorView> inputs, const AlltoallOptions& options,
                                              std::vector<std::int64_t>* received_splits) {
  const OperationPtr operation = detail::make_alltoall(context_of(*engine_), inputs, options);
  finish(*engine_, operation);
  if (received_splits != nullptr) *received_splits = operation->received_splits;
  return std::move(operation->results);
}

Handle Runtime::send_async(ConstTensorView tensor, const SendOptions& options) {
  return start(*engine_, detail::make_send(context_of(*engine_), tensor, options));
}
void Runtime::send(ConstTensorView tensor, const SendOptions& options) {
  finish(*engine_, detail::make_send(context_of(*engine_), tensor, options));
}
Handle Runtime::recv_async(TensorView tensor, const RecvOptions& options) {
  return start(*engine_, detail::make_recv(context_of(*engine_), tensor, options));
}
void Runtime::recv(TensorView tensor, const RecvOptions& options) {
  finish(*engine_, detail::make_recv(context_of(*engine_), tensor, options));
}

Handle Runtime::barrier_async(const BarrierOptions& options) {
  return start(*engine_, detail::make_barrier(context_of(*engine_), options));
}
void Runtime::barrier(const BarrierOptions& options) {
  finish(*engine_, detail::make_barrier(context_of(*engine_), options));
}
Handle Runtime::join_async(const JoinOptions& options) {
  return start(*engine_, detail::make_join(context_of(*engine_), options));
}
int Runtime::join(const JoinOptions& options) {
  const OperationPtr operation = detail::make_join(context_of(*engine_), options);
  finish(*engine_, operation);
  return static_cast<int>(operation->answer);
}

}  // namespace hvd
