#include <hvd/runtime.h>

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
  if (!engine_->forked()) engine_->leave(std::string(reason));
}
bool Runtime::is_running() const { return engine_->running(); }
void Runtime::add_observer(std::shared_ptr<Observer> observer) { engine_->add_observer(std::move(observer)); }

Handle Runtime::allreduce_async(TensorView tensor, const AllreduceOptions& options) {
  return start(*engine_, detail::make_allreduce(tensor, tensor, options));
}
Handle Runtime::allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  return start(*engine_, detail::make_allreduce(input, output, options));
}
void Runtime::allreduce(TensorView tensor, const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(tensor, tensor, options));
}
void Runtime::allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  finish(*engine_, detail::make_allreduce(input, output, options));
}

Handle Runtime::broadcast_async(TensorView tensor, const BroadcastOptions& options) {
  return start(*engine_, detail::make_broadcast(tensor, tensor, options, engine_->topology()));
}
Handle Runtime::broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  return start(*engine_, detail::make_broadcast(input, output, options, engine_->topology()));
}
void Runtime::broadcast(TensorView tensor, const BroadcastOptions& options) {
  finish(*engine_, detail::make_broadcast(tensor, tensor, options, engine_->topology()));
}
void Runtime::broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  finish(*engine_, detail::make_broadcast(input, output, options, engine_->topology()));
}

Handle Runtime::allgather_async(ConstTensorView input, const AllgatherOptions& options) {
  return start(*engine_, detail::make_allgather(input, options));
}
Tensor Runtime::allgather(ConstTensorView input, const AllgatherOptions& options) {
  const OperationPtr operation = detail::make_allgather(input, options);
  finish(*engine_, operation);
  return std::move(operation->result);
}

Handle Runtime::barrier_async(const BarrierOptions& options) { return start(*engine_, detail::make_barrier(options)); }
void Runtime::barrier(const BarrierOptions& options) { finish(*engine_, detail::make_barrier(options)); }

}  // namespace hvd
