#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <hvd/export.h>
#include <hvd/tensor.h>

namespace hvd {

namespace detail {
class PendingOperation;
}

// One submitted operation. Cheap to copy; copies mean the same operation. Dropping a handle neither waits for nor
// cancels the operation, whose tensors must stay valid until it is done.
class [[nodiscard]] HVD_API Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<detail::PendingOperation> operation) : operation_(std::move(operation)) {}

  // Blocks until the operation is done and drives its progress meanwhile. Throws the operation's typed Error when it
  // failed; what it throws is the same at every call.
  void wait() const;
  // The same with a bound; false when the operation is still in flight after that time.
  [[nodiscard]] bool wait_for(std::chrono::duration<double> timeout) const;
  // True once wait() would not block. Never throws, never blocks.
  [[nodiscard]] bool ready() const;
  // Withdraws the operation unless it has already become ready on all ranks; returns when that is decided. True: it
  // will not run, the tensors are free, and wait() throws CancelledError; the other ranks go on waiting for this one,
  // which may submit the name again. False: it has run, or has failed.
  bool cancel() const;

  // Each waits first. What the operation has allocated: the result (empty for operations without one, and when taken)
  // or, of a grouped operation, the results in order.
  Tensor take_output() const;
  std::vector<Tensor> take_outputs() const;
  // Of alltoall: the rows that came from each rank of the set; of a group, those of one tensor after the other.
  const std::vector<std::int64_t>& received_splits() const;
  // Of join: the rank that joined last.
  int last_joined_rank() const;

  explicit operator bool() const { return operation_ != nullptr; }

 private:
  std::shared_ptr<detail::PendingOperation> operation_;
};

}  // namespace hvd
