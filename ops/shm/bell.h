#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shm/futex.h"

namespace hvd {

// Orders an earlier store before a later load. ThreadSanitizer knows no fences; there a read-modify-write of one common
// variable does the same, and all ranks are in one process.
inline void store_load_barrier() {
#ifdef __SANITIZE_THREAD__
  static std::atomic<std::uint32_t> common{0};
  common.fetch_add(1, std::memory_order_acq_rel);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// How a rank of the host is woken when something in the shared segment has changed for it. One in the segment per local
// rank.
//
// The sleeper announces how it sleeps, then looks once more for news, then sleeps; the ringer changes the memory first
// and looks for a sleeper afterwards. The sequentially consistent fences between the two steps of each side make it
// impossible that both look too early (Dekker).
struct Bell {
  enum class Sleeper : std::uint32_t {
    nobody,   // somebody is awake and looks at the memory by itself
    futex,    // a user thread that waits for its operation sleeps on `rings`
    socket,   // the coordinator thread sleeps in its io_context: a datagram wakes it
    resting,  // the same with nothing in flight: of interest are control messages alone
  };

  alignas(64) std::atomic<std::uint32_t> rings{0};
  std::atomic<Sleeper> sleeper{Sleeper::nobody};

  // Sleeper: returns the value of `rings` to sleep on. Look for news after this and before sleeping.
  std::uint32_t announce(Sleeper how) {
    const std::uint32_t seen = rings.load(std::memory_order_relaxed);
    sleeper.store(how, std::memory_order_relaxed);
    store_load_barrier();
    return seen;
  }
  void sleep_on_futex(std::uint32_t seen, std::chrono::nanoseconds limit) { futex_wait(rings, seen, limit); }
  void awake() { sleeper.store(Sleeper::nobody, std::memory_order_relaxed); }

  // Ringer: call after the memory was changed. Says who sleeps; wakes a futex sleeper, leaves the socket to the caller.
  Sleeper ring() {
    store_load_barrier();
    const Sleeper who = sleeper.load(std::memory_order_relaxed);
    if (who == Sleeper::futex) {
      rings.fetch_add(1, std::memory_order_relaxed);
      futex_wake_all(rings);
    }
    return who;
  }
};

}  // namespace hvd
