#include "types/fork.h"

#include <pthread.h>

#include <atomic>

namespace hvd {

namespace {
std::atomic<int> forks{0};
}

int fork_count() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace hvd
