#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/collective.h"
#include "engine/batch.h"
#include "engine/observers.h"
#include "negotiation/stall.h"

namespace hvd::detail {

// Runs batches, one step at a time: in the order in which they come, or all at once. Progress token only.
class Executor {
 public:
  enum class Order : std::uint8_t { one_by_one, all_at_once };
  using Launch = std::function<std::unique_ptr<Collective>(ExecutableBatch& batch)>;
  // Its data is there, or a failure that all ranks have alike.
  using OnFinished = std::function<void(const OperationPtr& operation, const std::optional<Failure>& failure)>;
  using OnBatchDone = std::function<void(const ExecutableBatch& batch)>;

  Executor(Order order, Observers& observers, Launch launch, OnFinished on_finished, OnBatchDone on_batch_done);

  void enqueue(ExecutableBatch batch);
  // At most one phase of one chunk of each batch that runs. True when something moved.
  bool step(TimePoint now);
  bool idle() const { return queue_.empty(); }
  // What has started and not moved for that long, and since when nothing has.
  struct Stuck {
    const ExecutableBatch* batch = nullptr;
    TimePoint since;
  };
  std::optional<Stuck> oldest() const;
  void abandon() { queue_.clear(); }

 private:
  struct Running {
    ExecutableBatch batch;
    std::unique_ptr<Collective> collective;
    Phase told = Phase::started;
    TimePoint moved;  // last progress
  };

  Progress step(Running& running, TimePoint now);
  void finish(Running running);
  void tell_phases(Running& running, Phase reached);

  Order order_;
  Observers& observers_;
  Launch launch_;
  OnFinished on_finished_;
  OnBatchDone on_batch_done_;
  std::deque<Running> queue_;
};

}  // namespace hvd::detail
