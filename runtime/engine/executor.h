#pragma once

#include <algorithm>
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
  using OnBatchDone = std::function<void(const ExecutableBatch& batch, bool failed)>;

  Executor(Order order, Observers& observers, Launch launch, OnFinished on_finished, OnBatchDone on_batch_done);

  void enqueue(ExecutableBatch batch, TimePoint now);
  // At most one phase of one chunk of each batch that runs. True when something moved.
  bool step(TimePoint now);
  bool idle() const { return queue_.empty(); }
  // Messages that ring no bell are under way.
  bool needs_polling() const;
  // Of what runs, or is to be launched next: what has not moved for the longest time, and since when.
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
    TimePoint moved;  // last progress; before it runs, when it came or when the one before it was done
  };

  // How many of the queue run.
  std::size_t width() const {
    return order_ == Order::one_by_one ? std::min<std::size_t>(1, queue_.size()) : queue_.size();
  }
  Progress step(Running& running, TimePoint now);
  void finish(Running running);
  void tell_phases(Running& running, Phase reached);

  Order order_;
  Observers& observers_;
  Launch launch_;
  OnFinished on_finished_;
  OnBatchDone on_batch_done_;
  std::deque<Running, Pooled<Running>> queue_;
};

}  // namespace hvd::detail
