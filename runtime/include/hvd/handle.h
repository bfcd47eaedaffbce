#pragma once

#include <chrono>
#include <memory>

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
  // Waits, then hands over the result of an operation that allocates it (allgather); empty for the others and when
  // taken.
  Tensor take_output() const;

  explicit operator bool() const { return operation_ != nullptr; }

 private:
  std::shared_ptr<detail::PendingOperation> operation_;
};

}  // namespace hvd
