#include "allocations.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> everywhere{0};
thread_local std::uint64_t here = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  everywhere.fetch_add(1, std::memory_order_relaxed);
  ++here;
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The program's own operators serve its libraries, too. The other forms call these.
void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace hvd::bench {

std::uint64_t allocations_here() { return here; }
std::uint64_t allocations_everywhere() { return everywhere.load(std::memory_order_relaxed); }

}  // namespace hvd::bench
