#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <hvd/export.h>
#include <hvd/tensor.h>

namespace hvd {

namespace detail {
class Engine;
}

// Memory for tensors that the ranks of a host share; made by Runtime::make_arena(). Tensors in it are allreduced in
// place where they lie, without a copy, when all ranks of the host have theirs in one; otherwise, and in all other
// operations, they are like any other memory. Lay gradients out in the order in which they become ready, so that those
// that are reduced together lie together.
//
// After an operation on it has failed, another rank that has not heard of that may still write to its tensor: use the
// memory again once shutdown() has returned.
//
// Cheap to copy; copies mean the same arena, and are not to be allocated from by two threads at a time. The memory
// stays until the last copy and the runtime are gone.
class HVD_API Arena {
 public:
  static constexpr std::size_t alignment = 64;

  Arena() = default;
  Arena(std::span<std::byte> memory, std::shared_ptr<detail::Engine> owner);

  // Of this rank; zero-filled at first.
  std::span<std::byte> memory() const;
  std::size_t used() const;
  // The next piece. Throws InvalidArgumentError when there is not enough left.
  TensorView allocate(const Shape& shape, DataType dtype);
  // Starts over: what has been allocated is the caller's no more.
  void clear();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hvd
