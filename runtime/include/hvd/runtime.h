#pragma once

#include <memory>
#include <string_view>

#include <hvd/config.h>
#include <hvd/error.h>
#include <hvd/export.h>
#include <hvd/handle.h>
#include <hvd/observer.h>
#include <hvd/options.h>
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
  bool is_running() const;

  // Element by element over the ranks of the set, result on all of them, the same bits on each. Shapes and dtypes agree
  // on all ranks. In place, or from `input` to `output` of equal shape and dtype (which may be the same memory).
  Handle allreduce_async(TensorView tensor, const AllreduceOptions& options = {});
  Handle allreduce_async(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});
  void allreduce(TensorView tensor, const AllreduceOptions& options = {});
  void allreduce(ConstTensorView input, TensorView output, const AllreduceOptions& options = {});

  // The root's values on all ranks. Shapes and dtypes agree on all ranks; `input` is read on the root alone.
  Handle broadcast_async(TensorView tensor, const BroadcastOptions& options = {});
  Handle broadcast_async(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});
  void broadcast(TensorView tensor, const BroadcastOptions& options = {});
  void broadcast(ConstTensorView input, TensorView output, const BroadcastOptions& options = {});

  // Concatenation along dimension 0 in rank order, on all ranks. First dimensions may differ (zero rows are fine), the
  // others and the dtype agree. A scalar is an error. Handle::take_output() has the result.
  Handle allgather_async(ConstTensorView input, const AllgatherOptions& options = {});
  Tensor allgather(ConstTensorView input, const AllgatherOptions& options = {});

  // Returns when all ranks of the set have called it.
  Handle barrier_async(const BarrierOptions& options = {});
  void barrier(const BarrierOptions& options = {});

  // Adds a listener to this rank's events; it must outlive the runtime's shutdown.
  void add_observer(std::shared_ptr<Observer> observer);

 private:
  std::shared_ptr<detail::Engine> engine_;  // handles keep it, so that waiting is safe to the end
};

}  // namespace hvd
