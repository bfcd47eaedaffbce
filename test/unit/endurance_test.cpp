#include <gtest/gtest.h>
#include <hvd/in_process.h>
#include <malloc.h>
#include <unistd.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "../support/process.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

constexpr std::size_t names = 99;  // and one that never comes again in each step
constexpr int cache_capacity = 128;
constexpr int steps = sanitized ? 200 : 10'000;
constexpr int warm_up = steps / 10;

struct Usage {
  std::ptrdiff_t in_use = 0;  // of the allocator
  std::ptrdiff_t resident = 0;
  Resources resources;
  Stats stats;

  static Usage of(const Runtime& runtime) {
    const auto info = mallinfo2();
    std::ptrdiff_t size = 0;
    std::ptrdiff_t pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return {.in_use = static_cast<std::ptrdiff_t>(info.uordblks + info.hblkhd),
            .resident = pages * sysconf(_SC_PAGESIZE),
            .resources = Resources::now(),
            .stats = runtime.stats()};
  }
};

void expect_no_growth(const Usage& before, const Usage& after) {
  const auto operations = static_cast<std::uint64_t>(steps - warm_up) * (names + 1);
  EXPECT_EQ(after.stats.operations_done - before.stats.operations_done, operations);
  EXPECT_EQ(after.stats.operations_failed, 0U);
  // The known names stay known; each new one takes the place of an old one, several at a time.
  const auto new_names = static_cast<std::uint64_t>(steps - warm_up);
  EXPECT_EQ(after.stats.requests_sent - before.stats.requests_sent, new_names);
  EXPECT_NEAR(static_cast<double>(after.stats.evictions - before.stats.evictions), static_cast<double>(new_names),
              cache_capacity);
  EXPECT_EQ(after.stats.allocations, before.stats.allocations);
  EXPECT_EQ(after.resources.threads, before.resources.threads);
  EXPECT_EQ(after.resources.descriptors, before.resources.descriptors);
  if (sanitized) return;  // sanitizers keep what is freed
  // What the threads' caches hold counts as in use: some 300 KB of noise. Two bytes left by each operation are more.
  static_assert((steps - warm_up) * (names + 1) * 2 > (1 << 20) || sanitized);
  EXPECT_LT(after.in_use - before.in_use, 1 << 20) << "bytes after " << operations << " operations";
  EXPECT_LT(after.resident - before.resident, 8 << 20) << "bytes after " << operations << " operations";
}

TEST(Endurance, AMillionSmallOperationsLeaveNothingBehind) {
  Config config;
  config.cache_capacity = cache_capacity;
  std::barrier all_here(2);
  run_world(2, config, [&](Runtime& runtime) {
    std::vector<float> values(names + 1);
    std::vector<Handle> handles(values.size());
    Usage before;
    for (int step = 0; step < steps; ++step) {
      if (step == warm_up) {
        all_here.arrive_and_wait();
        if (runtime.rank() == 0) before = Usage::of(runtime);
        all_here.arrive_and_wait();
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(step + runtime.rank());
        const std::string name = i < names ? std::to_string(i) : "step " + std::to_string(step);
        handles[i] = runtime.allreduce_async(std::span(values).subspan(i, 1), {.name = name, .op = ReduceOp::sum});
      }
      for (const Handle& handle : handles) handle.wait();
      ASSERT_TRUE(all_are(values, static_cast<float>(2 * step + 1)));
    }
    handles.clear();
    all_here.arrive_and_wait();
    if (runtime.rank() == 0) expect_no_growth(before, Usage::of(runtime));
    runtime.barrier();
  });
}

// 40 MB of requests from each rank, which the root may get in one report each.
TEST(Endurance, R72_FiveThousandLongNamesInOneStep) {
  constexpr std::size_t count = sanitized ? 500 : 5000;
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{2, 2}}) {
    Config config;
    config.test_topology = hosts;
    run_world(4, config, [](Runtime& runtime) {
      std::vector<float> values(count);
      for (int step = 0; step < 2; ++step) {  // with names, then with numbers
        const Stats before = runtime.stats();
        std::vector<Handle> handles;
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(i);
          const std::string number = std::to_string(i);
          handles.push_back(runtime.allreduce_async(
              std::span(values).subspan(i, 1),
              {.name = std::string(max_name_bytes - number.size(), 'x') + number, .op = ReduceOp::sum}));
        }
        for (const Handle& handle : handles) handle.wait();
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 4 * static_cast<float>(i));
        const Stats after = runtime.stats();
        EXPECT_EQ(after.requests_sent - before.requests_sent, step == 0 ? count : 0);
        EXPECT_EQ(after.requests_cached - before.requests_cached, step == 0 ? 0 : count);
      }
      runtime.barrier();
    });
  }
}

}  // namespace
}  // namespace hvd::test
