#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/arena.h>
#include <hvd/config.h>
#include <hvd/error.h>
#include <hvd/export.h>
#include <hvd/handle.h>
#include <hvd/observer.h>
#include <hvd/options.h>
#include <hvd/stats.h>
#include <hvd/tensor.h>

namespace hvd {

class Transport;

namespace detail {
class Engine;
}

// One rank's end of a group of ranks: its coordinator thread, its operations, its links to the others. The free
// functions of <hvd/hvd.h> act on the process's default runtime; further ones come from <hvd/mpi.h> and
// <hvd/in_process.h>.
//
// All members may be called from any thread. Submitting checks the arguments at once and throws InvalidArgumentError,
// DuplicateNameError, ShutDownError on this rank alone; what goes wrong between ranks is thrown by Handle::wait() on
// every rank concerned. The blocking forms do both.
class HVD_API Runtime {
 public:
  // Joins the other ranks; returns when all have. Collective over the transport's ranks.
  Runtime(std::unique_ptr<Transport> transport, const Config& config);
  ~Runtime();  // as shutdown()
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;  // within the ranks that share memory, by rank
  int local_size() const;
  int cross_rank() const;  // among the ranks of equal local rank, one per host
  int cross_size() const;
  bool is_homogeneous() const;  // every host has the same number of ranks
  const Config& config() const;

  // Leaves. Waits, at most Config::shutdown_timeout, for what this rank has submitted; what still lacks a rank that has
  // left fails with ShutDownError on every rank. The first rank to leave ends the runtime on all ranks. `reason` is
  // what the others are told. Never throws.
  void shutdown(std::string_view reason = "called shutdown()") noexcept;
  // Leaves because this process fails: waits for nothing that is in flight, which fails at once on every rank with
  // `reason` as its cause. Never throws.
  void leave(std::string_view reason) noexcept;
  bool is_running() const;

  // Process sets. Making and removing one is collective over all ranks of the world, whichever belong to it. The order
  // of the ranks does not count; ranks that are a set already are refused. Removing waits for nothing: what is in
  // flight on the set anywhere fails with InvalidArgumentError. Operations on unlike sets do not wait for each other.
  ProcessSet add_process_set(const std::vector<int>& ranks);
  void remove_process_set(ProcessSet set);
  // The set's ranks in the world, sorted. Throws InvalidArgumentError when there is no such set.
  std::vector<int> process_set_ranks(ProcessSet set) const;
  // This rank's position in the set, or -1.
  int process_set_rank(ProcessSet set) const;

  // Element by element over the ranks of the set, result on all of them, the same bits on each. Shapes and dtypes agree
  // on all ranks. In place, or from `input` to `output` of equal shape and dtype (which may be the same memory).
  Handle allreduce_async(TensorView tensor, const AllreduceOptions& options = {});
  Handle allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
  void allreduce(TensorView tensor, const AllreduceOptions& options = {});
  void allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
  // One allreduce for each tensor, under its own name; submitting them together costs less than one by one. Appends to
  // `handles`. Arguments are checked before any is submitted; when a name is in flight, those before it are under way,
  // and in `handles`.
  void allreduce_each_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                            std::span<const std::string> names, const AllreduceOptions& options,
                            std::vector<Handle>& handles);
  // Grouped forms do many tensors under one name: all or none of them run, in one batch, and one handle stands for all.
  // The tensors may differ in dtype and shape.
  Handle grouped_allreduce_async(std::span<const TensorView> tensors, const AllreduceOptions& options = {});
  Handle grouped_allreduce_async(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                                 const AllreduceOptions& options = {});
  void grouped_allreduce(std::span<const TensorView> tensors, const AllreduceOptions& options = {});
  void grouped_allreduce(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                         const AllreduceOptions& options = {});

  // The same with the result on the root alone; the others' tensors keep their values.
  Handle reduce_async(TensorView tensor, const ReduceOptions& options = {});
  Handle reduce_async(ConstTensorView input, TensorView output, const ReduceOptions& options = {});
  void reduce(TensorView tensor, const ReduceOptions& options = {});
  void reduce(ConstTensorView input, TensorView output, const ReduceOptions& options = {});
  Handle grouped_reduce_async(std::span<const TensorView> tensors, const ReduceOptions& options = {});
  void grouped_reduce(std::span<const TensorView> tensors, const ReduceOptions& options = {});

  // The same with the result shared out along dimension 0, in rank order: rows / ranks each, the first rows % ranks
  // ranks getting one more. A scalar is an error.
  Handle reduce_scatter_async(ConstTensorView input, const ReduceScatterOptions& options = {});
  Tensor reduce_scatter(ConstTensorView input, const ReduceScatterOptions& options = {});
  Handle grouped_reduce_scatter_async(std::span<const ConstTensorView> inputs,
                                      const ReduceScatterOptions& options = {});
  std::vector<Tensor> grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                             const ReduceScatterOptions& options = {});

  // The root's values on all ranks. Shapes and dtypes agree on all ranks; `input` is read on the root alone.
  Handle broadcast_async(TensorView tensor, const BroadcastOptions& options = {});
  Handle broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
  void broadcast(TensorView tensor, const BroadcastOptions& options = {});
  void broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
  Handle grouped_broadcast_async(std::span<const TensorView> tensors, const BroadcastOptions& options = {});
  void grouped_broadcast(std::span<const TensorView> tensors, const BroadcastOptions& options = {});

  // Concatenation along dimension 0 in rank order, on all ranks. First dimensions may differ (zero rows are fine), the
  // others and the dtype agree. A scalar is an error. Handle::take_output() has the result.
  Handle allgather_async(ConstTensorView input, const AllgatherOptions& options = {});
  Tensor allgather(ConstTensorView input, const AllgatherOptions& options = {});
  Handle grouped_allgather_async(std::span<const ConstTensorView> inputs, const AllgatherOptions& options = {});
  std::vector<Tensor> grouped_allgather(std::span<const ConstTensorView> inputs, const AllgatherOptions& options = {});

  // The same on the root alone; the others get no rows.
  Handle gather_async(ConstTensorView input, const GatherOptions& options = {});
  Tensor gather(ConstTensorView input, const GatherOptions& options = {});
  Handle grouped_gather_async(std::span<const ConstTensorView> inputs, const GatherOptions& options = {});
  std::vector<Tensor> grouped_gather(std::span<const ConstTensorView> inputs, const GatherOptions& options = {});

  // The root's rows shared out along dimension 0, in rank order. `input` counts on the root alone, which also decides
  // shape and dtype; the others may pass an empty view.
  Handle scatter_async(ConstTensorView input, const ScatterOptions& options = {});
  Tensor scatter(ConstTensorView input, const ScatterOptions& options = {});
  // The root alone says how many tensors there are; the others may pass none.
  Handle grouped_scatter_async(std::span<const ConstTensorView> inputs, const ScatterOptions& options = {});
  std::vector<Tensor> grouped_scatter(std::span<const ConstTensorView> inputs, const ScatterOptions& options = {});

  // Every rank's rows shared out to all: the result has the rows that each rank had for this one, in rank order, and
  // received_splits (or Handle::received_splits()) says how many came from each. Dimensions but the first and the dtype
  // agree. A scalar is an error.
  Handle alltoall_async(ConstTensorView input, const AlltoallOptions& options = {});
  Tensor alltoall(ConstTensorView input, const AlltoallOptions& options = {},
                  std::vector<std::int64_t>* received_splits = nullptr);
  Handle grouped_alltoall_async(std::span<const ConstTensorView> inputs, const AlltoallOptions& options = {});
  std::vector<Tensor> grouped_alltoall(std::span<const ConstTensorView> inputs, const AlltoallOptions& options = {},
                                       std::vector<std::int64_t>* received_splits = nullptr);

  // One tensor from one rank to another; names (or, without one, order) pair the two ends. Shapes and dtypes agree.
  Handle send_async(ConstTensorView tensor, const SendOptions& options);
  void send(ConstTensorView tensor, const SendOptions& options);
  Handle recv_async(TensorView tensor, const RecvOptions& options);
  void recv(TensorView tensor, const RecvOptions& options);

  // Returns when all ranks of the set have called it.
  Handle barrier_async(const BarrierOptions& options = {});
  void barrier(const BarrierOptions& options = {});

  // Says that this rank has no more data for the set (and for sets within it) and serves the others' operations
  // meanwhile: with the identity in reductions (see Config::join_average for averages; Adasum leaves it out), with no
  // rows in gathers and exchanges. Ends when all ranks of the set have joined; returns the rank that joined last. An
  // operation whose root has joined, or that sends rows to a rank that has, is an error on all ranks.
  Handle join_async(const JoinOptions& options = {});
  int join(const JoinOptions& options = {});

  // Compares tensors across the ranks of the set, which pass as many, in one order. Throws MismatchError that names the
  // first tensor that differs, with the ranks and digests. `names` are for that text, one for each tensor, or none.
  void check_consistency(std::span<const ConstTensorView> tensors, std::span<const std::string> names = {},
                         ProcessSet set = {});

  // Makes memory, zero-filled, whose tensors are allreduced where they lie. Collective over all ranks, which call it in
  // one order; `bytes` may differ by rank. Throws InvalidArgumentError on all ranks when one has no room for it or has
  // joined. A
  // runtime makes at most 256.
  Arena make_arena(std::size_t bytes);

  // What has been counted so far on this rank.
  Stats stats() const;

  // Adds a listener to this rank's events; it must outlive the runtime's shutdown.
  void add_observer(std::shared_ptr<Observer> observer);

 private:
  std::shared_ptr<detail::Engine> engine_;  // handles keep it, so that waiting is safe to the end
};

}  // namespace hvd
