#pragma once

#include <cstddef>
#include <vector>

namespace hvd {

// Memory for what comes and goes with every message and every batch: blocks that were given back serve again, so that a
// steady step asks nothing of the heap. One pool for the process, never destroyed. Any thread.
void* take_pooled(std::size_t bytes);
void give_back_pooled(void* memory, std::size_t bytes) noexcept;

template <typename T>
class Pooled {
 public:
  using value_type = T;

  static_assert(alignof(T) <= alignof(std::max_align_t));

  Pooled() = default;
  template <typename U>
  Pooled(const Pooled<U>& /*other*/) noexcept {}  // NOLINT(google-explicit-constructor): as allocators are

  T* allocate(std::size_t count) { return static_cast<T*>(take_pooled(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { give_back_pooled(memory, count * sizeof(T)); }
  friend bool operator==(const Pooled& /*a*/, const Pooled& /*b*/) { return true; }
};

template <typename T>
using List = std::vector<T, Pooled<T>>;

}  // namespace hvd
