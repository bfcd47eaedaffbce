#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include <hvd/error.h>
#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include "api/call_site.h"
#include "mpi/environment.h"
#include "mpi/mpi_transport.h"
#include "transport/in_process.h"

namespace hvd {

namespace {

constexpr std::string_view reason_at_exit = "its process is ending (exit in progress)";

struct Default {
  std::mutex mutex;
  std::shared_ptr<Runtime> runtime;
};

// Never destroyed: threads may still ask while the program's statics go.
Default& the_default() {
  static auto* instance = new Default;
  return *instance;
}

bool mpi_in_use() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0 || mpi::launched();
}

template <typename Leave>
void end(const Leave& leave_runtime) noexcept {
  Default& state = the_default();
  std::unique_lock lock(state.mutex);
  const std::shared_ptr<Runtime> leaving = std::exchange(state.runtime, nullptr);
  lock.unlock();
  if (leaving != nullptr) leave_runtime(*leaving);
}

void leave_at_end() { shutdown(reason_at_exit); }

// A program that ends without shutdown() leaves all the same, before MPI is finalised: exit handlers run in reverse
// order.
void leave_at_exit_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit(leave_at_end);
    std::at_quick_exit(leave_at_end);
  });
}

template <typename MakeRuntime>
void init_once(const MakeRuntime& make_runtime) {
  Default& state = the_default();
  const std::scoped_lock lock(state.mutex);
  if (state.runtime != nullptr) return;
  state.runtime = make_runtime();
  leave_at_exit_once();
  if (mpi_in_use()) mpi::before_finalize(leave_at_end);
}

std::unique_ptr<Runtime> make_default_runtime(const Config& config) {
  if (mpi_in_use()) {
    mpi::ensure_initialized();
    return std::make_unique<Runtime>(
        make_mpi_transport(MPI_COMM_WORLD, config.test_topology, config.start_timeout, config.mpi_max_count), config);
  }
  // Started by hand: a world of one rank needs no MPI.
  const int host = 0;
  return std::make_unique<Runtime>(make_in_process_transport(make_in_process_hub(1), Topology(0, {&host, 1})), config);
}

std::shared_ptr<Runtime> the_runtime() {
  Default& state = the_default();
  const std::scoped_lock lock(state.mutex);
  if (state.runtime == nullptr) {
    throw NotInitializedError("hvd is not initialised: call hvd::init() first, and nothing after hvd::shutdown()");
  }
  return state.runtime;
}

// One call of a free function: keeps the runtime alive, and says where the program called from.
class Call {
 public:
  explicit Call(const void* caller) : site_(caller), runtime_(the_runtime()) {}
  Runtime* operator->() const { return runtime_.get(); }
  Runtime& operator*() const { return *runtime_; }

 private:
  detail::CallSite site_;
  std::shared_ptr<Runtime> runtime_;
};

Call current(const void* caller = __builtin_return_address(0)) { return Call(caller); }

}  // namespace

std::unique_ptr<Runtime> make_runtime(MPI_Comm communicator, const Config& config) {
  mpi::ensure_initialized();
  return std::make_unique<Runtime>(
      make_mpi_transport(communicator, config.test_topology, config.start_timeout, config.mpi_max_count), config);
}

void init() {
  init_once([] { return make_default_runtime(Config::from_environment()); });
}
void init(const Config& config) {
  init_once([&] { return make_default_runtime(config); });
}
void init(MPI_Comm communicator, const Config& config) {
  init_once([&] { return make_runtime(communicator, config); });
}

void shutdown(std::string_view reason) noexcept {
  end([reason](Runtime& leaving) { leaving.shutdown(reason); });
}
void leave(std::string_view reason) noexcept {
  end([reason](Runtime& leaving) { leaving.leave(reason); });
}

bool is_initialized() noexcept {
  Default& state = the_default();
  const std::scoped_lock lock(state.mutex);
  return state.runtime != nullptr;
}

Runtime& runtime() { return *current(); }

int rank() { return current()->rank(); }
int size() { return current()->size(); }
int local_rank() { return current()->local_rank(); }
int local_size() { return current()->local_size(); }
int cross_rank() { return current()->cross_rank(); }
int cross_size() { return current()->cross_size(); }
bool is_homogeneous() { return current()->is_homogeneous(); }

ProcessSet add_process_set(const std::vector<int>& ranks) { return current()->add_process_set(ranks); }
void remove_process_set(ProcessSet set) { current()->remove_process_set(set); }
std::vector<int> process_set_ranks(ProcessSet set) { return current()->process_set_ranks(set); }
int process_set_rank(ProcessSet set) { return current()->process_set_rank(set); }

Handle allreduce_async(TensorView tensor, const AllreduceOptions& options) {
  return current()->allreduce_async(tensor, options);
}
Handle allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  return current()->allreduce_async(input, output, options);
}
void allreduce(TensorView tensor, const AllreduceOptions& options) { current()->allreduce(tensor, options); }
void allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options) {
  current()->allreduce(input, output, options);
}
void allreduce_each_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                          std::span<const std::string> names, const AllreduceOptions& options,
                          std::vector<Handle>& handles) {
  current()->allreduce_each_async(inputs, outputs, names, options, handles);
}
Handle grouped_allreduce_async(std::span<const TensorView> tensors, const AllreduceOptions& options) {
  return current()->grouped_allreduce_async(tensors, options);
}
Handle grouped_allreduce_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                               const AllreduceOptions& options) {
  return current()->grouped_allreduce_async(inputs, outputs, options);
}
void grouped_allreduce(std::span<const TensorView> tensors, const AllreduceOptions& options) {
  current()->grouped_allreduce(tensors, options);
}
void grouped_allreduce(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                       const AllreduceOptions& options) {
  current()->grouped_allreduce(inputs, outputs, options);
}

Handle reduce_async(TensorView tensor, const ReduceOptions& options) {
  return current()->reduce_async(tensor, options);
}
Handle reduce_async(ConstTensorView input, TensorView output, const ReduceOptions& options) {
  return current()->reduce_async(input, output, options);
}
void reduce(TensorView tensor, const ReduceOptions& options) { current()->reduce(tensor, options); }
void reduce(ConstTensorView input, TensorView output, const ReduceOptions& options) {
  current()->reduce(input, output, options);
}
Handle grouped_reduce_async(std::span<const TensorView> tensors, const ReduceOptions& options) {
  return current()->grouped_reduce_async(tensors, options);
}
void grouped_reduce(std::span<const TensorView> tensors, const ReduceOptions& options) {
  current()->grouped_reduce(tensors, options);
}

Handle reduce_scatter_async(ConstTensorView input, const ReduceScatterOptions& options) {
  return current()->reduce_scatter_async(input, options);
}
Tensor reduce_scatter(ConstTensorView input, const ReduceScatterOptions& options) {
  return current()->reduce_scatter(input, options);
}
Handle grouped_reduce_scatter_async(std::span<const ConstTensorView> inputs, const ReduceScatterOptions& options) {
  return current()->grouped_reduce_scatter_async(inputs, options);
}
std::vector<Tensor> grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                           const ReduceScatterOptions& options) {
  return current()->grouped_reduce_scatter(inputs, options);
}

Handle broadcast_async(TensorView tensor, const BroadcastOptions& options) {
  return current()->broadcast_async(tensor, options);
}
Handle broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  return current()->broadcast_async(input, output, options);
}
void broadcast(TensorView tensor, const BroadcastOptions& options) { current()->broadcast(tensor, options); }
void broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options) {
  current()->broadcast(input, output, options);
}
Handle grouped_broadcast_async(std::span<const TensorView> tensors, const BroadcastOptions& options) {
  return current()->grouped_broadcast_async(tensors, options);
}
void grouped_broadcast(std::span<const TensorView> tensors, const BroadcastOptions& options) {
  current()->grouped_broadcast(tensors, options);
}

Handle allgather_async(ConstTensorView input, const AllgatherOptions& options) {
  return current()->allgather_async(input, options);
}
Tensor allgather(ConstTensorView input, const AllgatherOptions& options) {
  return current()->allgather(input, options);
}
Handle grouped_allgather_async(std::span<const ConstTensorView> inputs, const AllgatherOptions& options) {
  return current()->grouped_allgather_async(inputs, options);
}
std::vector<Tensor> grouped_allgather(std::span<const ConstTensorView> inputs, const AllgatherOptions& options) {
  return current()->grouped_allgather(inputs, options);
}

Handle gather_async(ConstTensorView input, const GatherOptions& options) {
  return current()->gather_async(input, options);
}
Tensor gather(ConstTensorView input, const GatherOptions& options) { return current()->gather(input, options); }
Handle grouped_gather_async(std::span<const ConstTensorView> inputs, const GatherOptions& options) {
  return current()->grouped_gather_async(inputs, options);
}
std::vector<Tensor> grouped_gather(std::span<const ConstTensorView> inputs, const GatherOptions& options) {
  return current()->grouped_gather(inputs, options);
}

Handle scatter_async(ConstTensorView input, const ScatterOptions& options) {
  return current()->scatter_async(input, options);
}
Tensor scatter(ConstTensorView input, const ScatterOptions& options) { return current()->scatter(input, options); }
Handle grouped_scatter_async(std::span<const ConstTensorView> inputs, const ScatterOptions& options) {
  return current()->grouped_scatter_async(inputs, options);
}
std::vector<Tensor> grouped_scatter(std::span<const ConstTensorView> inputs, const ScatterOptions& options) {
  return current()->grouped_scatter(inputs, options);
}

Handle alltoall_async(ConstTensorView input, const AlltoallOptions& options) {
  return current()->alltoall_async(input, options);
}
Tensor alltoall(ConstTensorView input, const AlltoallOptions& options, std::vector<std::int64_t>* received_splits) {
  return current()->alltoall(input, options, received_splits);
}
Handle grouped_alltoall_async(std::span<const ConstTensorView> inputs, const AlltoallOptions& options) {
  return current()->grouped_alltoall_async(inputs, options);
}
std::vector<Tensor> grouped_alltoall(std::span<const ConstTensorView> inputs, const AlltoallOptions& options,
                                     std::vector<std::int64_t>* received_splits) {
  return current()->grouped_alltoall(inputs, options, received_splits);
}

Handle send_async(ConstTensorView tensor, const SendOptions& options) { return current()->send_async(tensor, options); }
void send(ConstTensorView tensor, const SendOptions& options) { current()->send(tensor, options); }

Handle recv_async(TensorView tensor, const RecvOptions& options) { return current()->recv_async(tensor, options); }
void recv(TensorView tensor, const RecvOptions& options) { current()->recv(tensor, options); }

Handle barrier_async(const BarrierOptions& options) { return current()->barrier_async(options); }
void barrier(const BarrierOptions& options) { current()->barrier(options); }

Handle join_async(const JoinOptions& options) { return current()->join_async(options); }
int join(const JoinOptions& options) { return current()->join(options); }

void check_consistency(std::span<const ConstTensorView> tensors, std::span<const std::string> names, ProcessSet set) {
  current()->check_consistency(tensors, names, set);
}

Arena make_arena(std::size_t bytes) { return current()->make_arena(bytes); }

Stats stats() { return current()->stats(); }

}  // namespace hvd
