#include "engine/executor.h"

#include <hvd/error.h>
#include <algorithm>

#include "collectives/allgather.h"
#include "collectives/allreduce.h"
#include "collectives/broadcast.h"

namespace hvd::detail {

namespace {

FusedInput inputs_of(const ExecutableBatch& batch) {
  FusedInput fused;
  for (const auto& operation : batch.operations) {
    fused.append(static_cast<const std::byte*>(operation->input), static_cast<std::size_t>(operation->request.bytes()));
  }
  return fused;
}

FusedOutput outputs_of(const ExecutableBatch& batch) {
  FusedOutput fused;
  for (const auto& operation : batch.operations) {
    fused.append(static_cast<std::byte*>(operation->output), static_cast<std::size_t>(operation->request.bytes()));
  }
  return fused;
}

// A barrier has done its work when it is agreed.
class Nothing final : public Collective {
 public:
  Progress step() override { return Progress::done; }
  Phase phase() const override { return Phase::started; }
};

}  // namespace

Executor::Executor(ChunkStream& stream, Observers& observers, OnFinished on_finished, OnBatchDone on_batch_done)
    : stream_(stream),
      observers_(observers),
      on_finished_(std::move(on_finished)),
      on_batch_done_(std::move(on_batch_done)) {}

void Executor::enqueue(ExecutableBatch batch) {
  for (const auto& operation : batch.operations) {
    operation->batch = batch.number;
    observers_.tell(Stage::negotiated, *operation);
  }
  queue_.push_back({std::move(batch), nullptr});
}

bool Executor::step() {
  if (queue_.empty()) return false;
  Running& head = queue_.front();
  if (head.collective == nullptr) head.collective = start(head.batch);
  const Progress progress = head.collective->step();
  tell_phases(head, head.collective->phase());
  if (progress == Progress::done) {
    const ExecutableBatch batch = std::move(head.batch);
    queue_.pop_front();
    // Before the waiters go on: what they submit next is planned with this batch out of the way.
    on_batch_done_();
    for (const auto& operation : batch.operations) on_finished_(operation);
  }
  return progress != Progress::waiting;
}

void Executor::tell_phases(Running& running, Phase reached) {
  constexpr auto stage_of = [](Phase phase) {
    return phase == Phase::packed ? Stage::packed : phase == Phase::reduced ? Stage::reduced : Stage::unpacked;
  };
  while (running.told < reached) {
    running.told = static_cast<Phase>(static_cast<std::uint8_t>(running.told) + 1);
    for (const auto& operation : running.batch.operations) observers_.tell(stage_of(running.told), *operation);
  }
}

std::vector<OperationPtr> Executor::abandon() {
  std::vector<OperationPtr> given_up;
  for (auto& running : queue_) {
    given_up.insert(given_up.end(), running.batch.operations.begin(), running.batch.operations.end());
  }
  queue_.clear();
  return given_up;
}

std::unique_ptr<Collective> Executor::start(ExecutableBatch& batch) {
  switch (batch.operations.front()->request.operation) {
    case Operation::allreduce:
      return start_allreduce(batch);
    case Operation::broadcast:
      return start_broadcast(batch);
    case Operation::allgather:
      return start_allgather(batch);
    case Operation::barrier:
      return std::make_unique<Nothing>();
  }
  throw InternalError("batch of an unknown operation");
}

std::unique_ptr<Collective> Executor::start_allreduce(const ExecutableBatch& batch) {
  const Request& request = batch.operations.front()->request;
  const bool average = request.reduce_op == ReduceOp::average;
  const cpu::Reduction reduction{.dtype = request.dtype,
                                 .op = request.reduce_op,
                                 .prescale = request.prescale,
                                 .postscale = request.postscale,
                                 .divisor = average ? stream_.topology().size() : 1};
  return std::make_unique<Allreduce>(stream_, reduction, inputs_of(batch), outputs_of(batch));
}

std::unique_ptr<Collective> Executor::start_broadcast(const ExecutableBatch& batch) {
  const bool in_place = std::ranges::all_of(
      batch.operations, [](const OperationPtr& operation) { return operation->input == operation->output; });
  const int root = batch.operations.front()->request.root;
  return std::make_unique<Broadcast>(stream_, root, in_place, inputs_of(batch), outputs_of(batch));
}

std::unique_ptr<Collective> Executor::start_allgather(ExecutableBatch& batch) {
  std::vector<FusedOutput> outputs(static_cast<std::size_t>(stream_.topology().size()));
  for (std::size_t i = 0; i < batch.operations.size(); ++i) {
    PendingOperation& operation = *batch.operations[i];
    std::int64_t total = 0;
    for (const std::int64_t rows : batch.rows[i]) total += rows;
    operation.result = Tensor(operation.request.shape.with_rows(total), operation.request.dtype);
    const auto row_bytes =
        static_cast<std::size_t>(operation.request.shape.with_rows(1).elements()) * size_of(operation.request.dtype);
    auto* block = static_cast<std::byte*>(operation.result.data());
    for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
      const std::size_t bytes = static_cast<std::size_t>(batch.rows[i][rank]) * row_bytes;
      outputs[rank].append(block, bytes);
      block += bytes;
    }
  }
  return std::make_unique<Allgather>(stream_, inputs_of(batch), std::move(outputs));
}

}  // namespace hvd::detail
