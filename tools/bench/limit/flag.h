#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace hvd::bench::limit {

// A counter in shared memory that one rank raises and the others wait for. It has two cache lines of its own:
// processors fetch lines in pairs.
struct alignas(128) Flag {
  std::atomic<std::uint64_t> value{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline void publish(Flag& flag, std::uint64_t value) { flag.value.store(value, std::memory_order_release); }

// Spins for a while, then gives the core away between looks: with more ranks than cores the other one needs it.
inline void await(const std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  constexpr int spins = 20;  // about a microsecond
  for (int i = 0; i < spins; ++i) {
    if (counter.load(std::memory_order_acquire) >= value) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (counter.load(std::memory_order_acquire) < value) sched_yield();
}

}  // namespace hvd::bench::limit
