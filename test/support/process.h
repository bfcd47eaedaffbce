#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <thread>

namespace hvd::test {

// What a process holds of what the kernel counts.
struct Resources {
  std::ptrdiff_t threads = 0;
  std::ptrdiff_t descriptors = 0;

  static Resources now() { return {.threads = entries("/proc/self/task"), .descriptors = entries("/proc/self/fd")}; }

 private:
  static std::ptrdiff_t entries(const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
};

// Of all threads of this process.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A thread stays in the list for a moment after it was joined.
inline void expect_no_more_than(const Resources& before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Resources now = Resources::now();
  while (now.threads > before.threads && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    now = Resources::now();
  }
  EXPECT_LE(now.threads, before.threads);
  EXPECT_LE(now.descriptors, before.descriptors);
}

}  // namespace hvd::test
