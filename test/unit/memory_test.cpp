#include <gtest/gtest.h>
#include <hvd/in_process.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../support/world.h"

namespace hvd::test {
namespace {

// Of the whole process. What the allocator keeps of it for later is noise.
std::ptrdiff_t bytes_in_use() {
  const auto info = mallinfo2();
  return static_cast<std::ptrdiff_t>(info.uordblks + info.hblkhd);
}

// The growth between the end of the first tenth and the end of so many rounds. Sanitizers keep what is freed.
void expect_no_growth(const Config& config, int rounds, const std::function<void(Runtime&, int)>& round) {
  std::ptrdiff_t early = 0;
  std::ptrdiff_t late = 0;
  run_world(2, config, [&](Runtime& runtime) {
    for (int i = 0; i < rounds; ++i) {
      if (runtime.rank() == 0 && i == rounds / 10) early = bytes_in_use();
      round(runtime, i);
    }
    if (runtime.rank() == 0) late = bytes_in_use();
  });
  if (!sanitized) {
    EXPECT_LT(late - early, 1 << 20) << "bytes after " << rounds << " rounds";
  }
}

TEST(Memory, R164_ThousandsOfAllgathersLeaveNothingBehind) {
  const std::vector<float> rows = ones(std::size_t{16} * 2048);
  expect_no_growth({}, sanitized ? 200 : 20'000, [&](Runtime& runtime, int) {
    const Tensor all = runtime.allgather(ConstTensorView(std::span(rows), Shape{16, 2048}), {.name = "x"});
    ASSERT_EQ(all.shape(), Shape({32, 2048}));
  });
}

TEST(Memory, R164_NamesThatNeverComeAgainLeaveNothingBehind) {
  Config config;
  config.cache_capacity = 64;
  expect_no_growth(config, sanitized ? 500 : 20'000, [](Runtime& runtime, int i) {
    std::vector<float> values = ones(4);
    runtime.allreduce(std::span(values), {.name = "step." + std::to_string(i)});
  });
}

TEST(Memory, R164_SetsThatComeAndGoLeaveNothingBehind) {
  expect_no_growth({}, sanitized ? 50 : 1000, [](Runtime& runtime, int i) {
    const ProcessSet set = runtime.add_process_set({i % 2});
    std::vector<float> values = ones(4);
    if (runtime.process_set_rank(set) >= 0) runtime.allreduce(std::span(values), {.name = "x", .process_set = set});
    runtime.remove_process_set(set);
  });
}

TEST(Memory, R164_OperationsOfEveryKindLeaveNothingBehind) {
  expect_no_growth({}, sanitized ? 200 : 4000, [](Runtime& runtime, int) {
    std::vector<float> values = ones(1000);
    const std::span<float> span(values);
    runtime.reduce(span, {.name = "x"});
    static_cast<void>(runtime.reduce_scatter(span, {.name = "x"}));
    static_cast<void>(runtime.gather(span, {.name = "x"}));
    static_cast<void>(runtime.scatter(span, {.name = "x"}));
    static_cast<void>(runtime.alltoall(span, {.name = "x"}));
    const std::vector<TensorView> group{span.first(10), span.last(10)};
    runtime.grouped_allreduce(group, {.name = "x"});
  });
}

}  // namespace
}  // namespace hvd::test
