#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace hvd {

// Sleeps while the word holds `expected`, at most `limit`; may return early. Works between processes that share the
// word's memory (no FUTEX_PRIVATE_FLAG), which std::atomic::wait does not, and has a bound, which that has not either.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds limit) {
  const auto bounded = std::max(limit, std::chrono::nanoseconds{0});
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (bounded - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hvd
