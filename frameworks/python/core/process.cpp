#include "process.h"

#include <atomic>

#include <hvd/error.h>

#include "types/fork.h"

namespace hvd::python {

namespace {
constexpr int never = -1;
std::atomic<int> forks_at_init{never};
}  // namespace

bool forked() noexcept {
  const int then = forks_at_init.load(std::memory_order_relaxed);
  return then != never && then != fork_count();
}

void throw_if_forked() {
  if (!forked()) return;
  throw NotInitializedError(
      "hvd is not usable after fork: this process is a child of one that has called hvd.init(); start helpers before "
      "init(), or without fork (multiprocessing_context='forkserver' or 'spawn' of a DataLoader)");
}

void remember_process() { forks_at_init.store(fork_count(), std::memory_order_relaxed); }

}  // namespace hvd::python
