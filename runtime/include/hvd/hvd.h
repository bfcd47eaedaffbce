#pragma once

#include <span>
#include <vector>

#include <hvd/runtime.h>

// The process's default runtime, as free functions. <hvd/runtime.h> describes each operation and its errors; before
// init() and after shutdown() all but init(), shutdown() and is_initialized() throw NotInitializedError.
namespace hvd {

// Joins the ranks that `mpirun` (or another MPI launcher) has started; a process started without a launcher is a world
// of one rank. Initialises MPI if the program has not. A second call without shutdown() in between does nothing.
HVD_API void init();
HVD_API void init(const Config& config);
// Leaves, see Runtime::shutdown(); init() may follow, any number of times. Does nothing when not initialised.
HVD_API void shutdown() noexcept;
HVD_API bool is_initialized() noexcept;
// The default runtime itself.
HVD_API Runtime& runtime();

HVD_API int rank();
HVD_API int size();
HVD_API int local_rank();
HVD_API int local_size();
HVD_API int cross_rank();
HVD_API int cross_size();
HVD_API bool is_homogeneous();

HVD_API Handle allreduce_async(TensorView tensor, const AllreduceOptions& options = {});
HVD_API Handle allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
HVD_API void allreduce(TensorView tensor, const AllreduceOptions& options = {});
HVD_API void allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});

HVD_API Handle broadcast_async(TensorView tensor, const BroadcastOptions& options = {});
HVD_API Handle broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
HVD_API void broadcast(TensorView tensor, const BroadcastOptions& options = {});
HVD_API void broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});

HVD_API Handle allgather_async(ConstTensorView input, const AllgatherOptions& options = {});
HVD_API Tensor allgather(ConstTensorView input, const AllgatherOptions& options = {});

HVD_API Handle barrier_async(const BarrierOptions& options = {});
HVD_API void barrier(const BarrierOptions& options = {});

// Vectors and spans are one-dimensional tensors.
template <Element T>
Handle allreduce_async(std::vector<T>& values, const AllreduceOptions& options = {}) {
  return allreduce_async(std::span<T>(values), options);
}
template <Element T>
void allreduce(std::vector<T>& values, const AllreduceOptions& options = {}) {
  allreduce(std::span<T>(values), options);
}
template <Element T>
Handle broadcast_async(std::vector<T>& values, const BroadcastOptions& options = {}) {
  return broadcast_async(std::span<T>(values), options);
}
template <Element T>
void broadcast(std::vector<T>& values, const BroadcastOptions& options = {}) {
  broadcast(std::span<T>(values), options);
}
template <Element T>
std::vector<T> allgather(const std::vector<T>& values, const AllgatherOptions& options = {}) {
  const Tensor gathered = allgather(ConstTensorView(std::span<const T>(values)), options);
  const std::span<const T> result = gathered.template values<T>();
  return {result.begin(), result.end()};
}

}  // namespace hvd
