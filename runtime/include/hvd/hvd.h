#pragma once

#include <span>
#include <string>
#include <string_view>
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
HVD_API void shutdown(std::string_view reason = "called shutdown()") noexcept;
// The same for a process that fails, see Runtime::leave(): what is in flight fails on all ranks, with `reason` as
// cause.
HVD_API void leave(std::string_view reason) noexcept;
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

HVD_API ProcessSet add_process_set(const std::vector<int>& ranks);
HVD_API void remove_process_set(ProcessSet set);
HVD_API std::vector<int> process_set_ranks(ProcessSet set);
HVD_API int process_set_rank(ProcessSet set);

HVD_API Handle allreduce_async(TensorView tensor, const AllreduceOptions& options = {});
HVD_API Handle allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
HVD_API void allreduce(TensorView tensor, const AllreduceOptions& options = {});
HVD_API void allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
HVD_API void allreduce_each_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                  std::span<const std::string> names, const AllreduceOptions& options,
                                  std::vector<Handle>& handles);
HVD_API Handle grouped_allreduce_async(std::span<const TensorView> tensors, const AllreduceOptions& options = {});
HVD_API Handle grouped_allreduce_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                       const AllreduceOptions& options = {});
HVD_API void grouped_allreduce(std::span<const TensorView> tensors, const AllreduceOptions& options = {});
HVD_API void grouped_allreduce(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                               const AllreduceOptions& options = {});

HVD_API Handle reduce_async(TensorView tensor, const ReduceOptions& options = {});
HVD_API Handle reduce_async(ConstTensorView input, TensorView output, const ReduceOptions& options = {});
HVD_API void reduce(TensorView tensor, const ReduceOptions& options = {});
HVD_API void reduce(ConstTensorView input, TensorView output, const ReduceOptions& options = {});
HVD_API Handle grouped_reduce_async(std::span<const TensorView> tensors, const ReduceOptions& options = {});
HVD_API void grouped_reduce(std::span<const TensorView> tensors, const ReduceOptions& options = {});

HVD_API Handle reduce_scatter_async(ConstTensorView input, const ReduceScatterOptions& options = {});
HVD_API Tensor reduce_scatter(ConstTensorView input, const ReduceScatterOptions& options = {});
HVD_API Handle grouped_reduce_scatter_async(std::span<const ConstTensorView> inputs,
                                            const ReduceScatterOptions& options = {});
HVD_API std::vector<Tensor> grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                                   const ReduceScatterOptions& options = {});

HVD_API Handle broadcast_async(TensorView tensor, const BroadcastOptions& options = {});
HVD_API Handle broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
HVD_API void broadcast(TensorView tensor, const BroadcastOptions& options = {});
HVD_API void broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
HVD_API Handle grouped_broadcast_async(std::span<const TensorView> tensors, const BroadcastOptions& options = {});
HVD_API void grouped_broadcast(std::span<const TensorView> tensors, const BroadcastOptions& options = {});

HVD_API Handle allgather_async(ConstTensorView input, const AllgatherOptions& options = {});
HVD_API Tensor allgather(ConstTensorView input, const AllgatherOptions& options = {});
HVD_API Handle grouped_allgather_async(std::span<const ConstTensorView> inputs, const AllgatherOptions& options = {});
HVD_API std::vector<Tensor> grouped_allgather(std::span<const ConstTensorView> inputs,
                                              const AllgatherOptions& options = {});

HVD_API Handle gather_async(ConstTensorView input, const GatherOptions& options = {});
HVD_API Tensor gather(ConstTensorView input, const GatherOptions& options = {});
HVD_API Handle grouped_gather_async(std::span<const ConstTensorView> inputs, const GatherOptions& options = {});
HVD_API std::vector<Tensor> grouped_gather(std::span<const ConstTensorView> inputs, const GatherOptions& options = {});

HVD_API Handle scatter_async(ConstTensorView input, const ScatterOptions& options = {});
HVD_API Tensor scatter(ConstTensorView input, const ScatterOptions& options = {});
HVD_API Handle grouped_scatter_async(std::span<const ConstTensorView> inputs, const ScatterOptions& options = {});
HVD_API std::vector<Tensor> grouped_scatter(std::span<const ConstTensorView> inputs,
                                            const ScatterOptions& options = {});

HVD_API Handle alltoall_async(ConstTensorView input, const AlltoallOptions& options = {});
HVD_API Tensor alltoall(ConstTensorView input, const AlltoallOptions& options = {},
                        std::vector<std::int64_t>* received_splits = nullptr);
HVD_API Handle grouped_alltoall_async(std::span<const ConstTensorView> inputs, const AlltoallOptions& options = {});
HVD_API std::vector<Tensor> grouped_alltoall(std::span<const ConstTensorView> inputs,
                                             const AlltoallOptions& options = {},
                                             std::vector<std::int64_t>* received_splits = nullptr);

HVD_API Handle send_async(ConstTensorView tensor, const SendOptions& options);
HVD_API void send(ConstTensorView tensor, const SendOptions& options);

HVD_API Handle recv_async(TensorView tensor, const RecvOptions& options);
HVD_API void recv(TensorView tensor, const RecvOptions& options);

HVD_API Handle barrier_async(const BarrierOptions& options = {});
HVD_API void barrier(const BarrierOptions& options = {});

HVD_API Handle join_async(const JoinOptions& options = {});
HVD_API int join(const JoinOptions& options = {});

HVD_API void check_consistency(std::span<const ConstTensorView> tensors, std::span<const std::string> names = {},
                               ProcessSet set = {});

HVD_API Arena make_arena(std::size_t bytes);

HVD_API Stats stats();

// Vectors and spans are one-dimensional tensors. (Inline always: CheckLevel::comm compares where the program calls
// from.)
template <Element T>
[[gnu::always_inline]] inline Handle allreduce_async(std::vector<T>& values, const AllreduceOptions& options = {}) {
  return allreduce_async(std::span<T>(values), options);
}
template <Element T>
[[gnu::always_inline]] inline void allreduce(std::vector<T>& values, const AllreduceOptions& options = {}) {
  allreduce(std::span<T>(values), options);
}
template <Element T>
[[gnu::always_inline]] inline Handle broadcast_async(std::vector<T>& values, const BroadcastOptions& options = {}) {
  return broadcast_async(std::span<T>(values), options);
}
template <Element T>
[[gnu::always_inline]] inline void broadcast(std::vector<T>& values, const BroadcastOptions& options = {}) {
  broadcast(std::span<T>(values), options);
}
template <Element T>
[[gnu::always_inline]] inline std::vector<T> allgather(const std::vector<T>& values,
                                                       const AllgatherOptions& options = {}) {
  const Tensor gathered = allgather(ConstTensorView(std::span<const T>(values)), options);
  const std::span<const T> result = gathered.template values<T>();
  return {result.begin(), result.end()};
}
template <Element T>
[[gnu::always_inline]] inline std::vector<T> reduce_scatter(const std::vector<T>& values,
                                                            const ReduceScatterOptions& options = {}) {
  const Tensor share = reduce_scatter(ConstTensorView(std::span<const T>(values)), options);
  const std::span<const T> result = share.template values<T>();
  return {result.begin(), result.end()};
}
template <Element T>
[[gnu::always_inline]] inline std::vector<T> alltoall(const std::vector<T>& values, const AlltoallOptions& options = {},
                                                      std::vector<std::int64_t>* received_splits = nullptr) {
  const Tensor received = alltoall(ConstTensorView(std::span<const T>(values)), options, received_splits);
  const std::span<const T> result = received.template values<T>();
  return {result.begin(), result.end()};
}

}  // namespace hvd
