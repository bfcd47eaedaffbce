#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <hvd/error.h>
#include <hvd/tensor.h>

#include "negotiation/request.h"
#include "shm/futex.h"

namespace hvd::detail {

class Engine;

// One submitted operation from submission to the last wait. Written by the submitting thread before it is handed over,
// then by the thread that drives progress until `finish`, then read by anybody.
class PendingOperation {
 public:
  struct Memory {
    const void* input = nullptr;
    void* output = nullptr;
  };

  Request request;
  std::uint64_t fingerprint = 0;
  boost::container::small_vector<Memory, 1> memory;  // of each tensor
  std::vector<std::int64_t> extents;                 // what this rank says besides the request

  std::vector<Tensor> results;  // where the operation allocates them
  std::vector<std::int64_t> received_splits;
  std::int64_t answer = 0;  // of join the last rank, of add_process_set the number

  // Not this rank's: the others' operation, in which it takes part by having joined.
  bool absent = false;

  std::uint64_t number = 0;  // counts the submissions of this rank, for messages
  std::uint32_t slot = 0;    // of its name in the tensor table
  std::uint64_t batch = 0;
  std::chrono::steady_clock::time_point submitted;
  std::shared_ptr<Engine> engine;  // outlives the runtime as long as somebody may wait

  // As new, but for the memory of its lists.
  void clear() {
    request.clear();
    fingerprint = number = batch = 0;
    memory.clear();
    extents.clear();
    results.clear();
    received_splits.clear();
    answer = 0;
    absent = false;
    slot = 0;
    engine.reset();
    waiters.store(0, std::memory_order_relaxed);
    state_.store(pending, std::memory_order_relaxed);
    failure_.reset();
  }

  bool done() const { return state_.load() == done_state; }
  const std::optional<Failure>& failure() const { return failure_; }  // once done

  // Threads that wait; they will see a failure.
  std::atomic<int> waiters{0};

  void finish(std::optional<Failure> failure) {
    failure_ = std::move(failure);
    if (state_.exchange(done_state) == awaited) futex_wake_all(state_);
  }
  // Sleeps until finished, at most that long.
  void sleep(std::chrono::nanoseconds limit) {
    std::uint32_t seen = pending;
    state_.compare_exchange_strong(seen, awaited, std::memory_order_acq_rel);
    if (!done()) futex_wait(state_, awaited, limit);
  }

 private:
  static constexpr std::uint32_t pending = 0;
  static constexpr std::uint32_t awaited = 1;  // somebody sleeps
  static constexpr std::uint32_t done_state = 2;

  std::atomic<std::uint32_t> state_{pending};
  std::optional<Failure> failure_;
};

using OperationPtr = std::shared_ptr<PendingOperation>;

}  // namespace hvd::detail
