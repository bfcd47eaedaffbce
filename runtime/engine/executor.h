#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "engine/observers.h"
#include "engine/pending_operation.h"

namespace hvd::detail {

// One agreed batch of this rank: operations of one kind, in the order all ranks have.
struct ExecutableBatch {
  std::uint64_t number = 0;
  std::vector<OperationPtr> operations;
  std::vector<std::vector<std::int64_t>> rows;  // by operation, by rank; allgather only
};

// Runs batches in the order in which they come, one step at a time. Progress token only.
class Executor {
 public:
  using OnFinished = std::function<void(const OperationPtr& operation)>;  // its data is there
  using OnBatchDone = std::function<void()>;

  Executor(ChunkStream& stream, Observers& observers, OnFinished on_finished, OnBatchDone on_batch_done);

  void enqueue(ExecutableBatch batch);
  // At most one phase of one chunk. True when something moved.
  bool step();
  bool idle() const { return queue_.empty(); }
  // Gives up what is under way; returns the operations.
  std::vector<OperationPtr> abandon();

 private:
  struct Running {
    ExecutableBatch batch;
    std::unique_ptr<Collective> collective;
    Phase told = Phase::started;
  };

  std::unique_ptr<Collective> start(ExecutableBatch& batch);
  std::unique_ptr<Collective> start_allreduce(const ExecutableBatch& batch);
  std::unique_ptr<Collective> start_broadcast(const ExecutableBatch& batch);
  std::unique_ptr<Collective> start_allgather(ExecutableBatch& batch);
  void tell_phases(Running& running, Phase reached);

  ChunkStream& stream_;
  Observers& observers_;
  OnFinished on_finished_;
  OnBatchDone on_batch_done_;
  std::deque<Running> queue_;
};

}  // namespace hvd::detail
