#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include <hvd/error.h>
#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include "mpi/environment.h"
#include "mpi/mpi_transport.h"
#include "transport/in_process.h"

namespace hvd {

namespace {

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

void leave(std::string_view reason) noexcept {
  Default& state = the_default();
  std::unique_lock lock(state.mutex);
  const std::shared_ptr<Runtime> leaving = std::exchange(state.runtime, nullptr);
  lock.unlock();
  if (leaving != nullptr) leaving->shutdown(reason);
}

void leave_at_end() { leave("its process is ending (exit in progress)"); }

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
    return std::make_unique<Runtime>(make_mpi_transport(MPI_COMM_WORLD, config.test_topology, config.start_timeout),
                                     config);
  }
  // Started by hand: a world of one rank needs no MPI.
  const int host = 0;
  return std::make_unique<Runtime>(make_in_process_transport(make_in_process_hub(1), Topology(0, {&host, 1})), config);
}

// Keeps the runtime alive during a call.
std::shared_ptr<Runtime> current() {
  Default& state = the_default();
  const std::scoped_lock lock(state.mutex);
  if (state.runtime == nullptr) {
    throw NotInitializedError("hvd is not initialised: call hvd::init() first, and nothing after hvd::shutdown()");
  }
  return state.runtime;
}

}  // namespace

std::unique_ptr<Runtime> make_runtime(MPI_Comm communicator, const Config& config) {
  mpi::ensure_initialized();
  return std::make_unique<Runtime>(make_mpi_transport(communicator, config.test_topology, config.start_timeout),
                                   config);
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

void shutdown() noexcept { leave("called shutdown()"); }

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

Handle allgather_async(ConstTensorView input, const AllgatherOptions& options) {
  return current()->allgather_async(input, options);
}
Tensor allgather(ConstTensorView input, const AllgatherOptions& options) {
  return current()->allgather(input, options);
}

Handle barrier_async(const BarrierOptions& options) { return current()->barrier_async(options); }
void barrier(const BarrierOptions& options) { current()->barrier(options); }

}  // namespace hvd
