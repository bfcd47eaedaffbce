#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <chrono>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../support/world.h"

// What a rank says of readiness while a batch is under way. The batch is one that hangs.
namespace hvd::test {
namespace {

using namespace std::chrono_literals;

constexpr int waiting_operations = 20;

Config with_a_batch_that_hangs() {
  Config config;
  config.process_sets = {{0, 1}};
  config.test_hang_op = "x:1";
  config.stall_warning = 0s;
  config.stall_shutdown = 1s;
  return config;
}

// Until this rank's counters have been published, with what it has done before.
void finish_one_in_another_set(Runtime& runtime, const std::string& name) {
  std::vector<float> values = ones(4);
  runtime.allreduce(std::span(values), {.name = name, .process_set = {1}});
}

void expect_stalled(const Handle& handle, std::latch& on_all_ranks) {
  EXPECT_THROW(handle.wait(), StallError);
  on_all_ranks.arrive_and_wait();
}

TEST(Gathering, ReadinessWaitsForTheBatchThatIsUnderWay) {
  std::latch all_failed(3);
  run_world(3, with_a_batch_that_hangs(), [&](Runtime& runtime) {
    std::vector<float> values = ones(100);
    const Handle hanging = runtime.allreduce_async(std::span(values), {.name = "x"});
    if (runtime.rank() == 2) return expect_stalled(hanging, all_failed);
    finish_one_in_another_set(runtime, "a");
    const Stats before = runtime.stats();
    std::vector<std::vector<float>> others(waiting_operations, ones(4));
    std::vector<Handle> handles;
    for (int i = 0; i < waiting_operations; ++i) {
      const std::string name = "y" + std::to_string(i);
      handles.push_back(runtime.allreduce_async(std::span(others[static_cast<std::size_t>(i)]), {.name = name}));
      std::this_thread::sleep_for(2ms);
    }
    finish_one_in_another_set(runtime, "b");
    const Stats after = runtime.stats();
    // One that had room when the last plan came, one with all the others for the other set's sake.
    if (runtime.rank() == 1) {
      EXPECT_LE(after.reports_sent - before.reports_sent, 3U);
    }
    EXPECT_EQ(after.requests_sent - before.requests_sent, waiting_operations + 1U);
    for (const Handle& handle : handles) EXPECT_THROW(handle.wait(), Error);
    expect_stalled(hanging, all_failed);
  });
}

TEST(Gathering, OtherProcessSetsAndMessagesGoOnMeanwhile) {
  std::latch all_failed(3);
  run_world(3, with_a_batch_that_hangs(), [&](Runtime& runtime) {
    std::vector<float> values = ones(100);
    const Handle hanging = runtime.allreduce_async(std::span(values), {.name = "x"});
    if (runtime.rank() == 2) return expect_stalled(hanging, all_failed);
    for (int i = 0; i < 5; ++i) {
      finish_one_in_another_set(runtime, "a");
      std::vector<float> message = ones(3);
      if (runtime.rank() == 0) {
        runtime.send(ConstTensorView(std::span(message)), {.name = "m", .to_rank = 1});
      } else {
        runtime.recv(TensorView(std::span(message)), {.name = "m", .from_rank = 0});
      }
    }
    EXPECT_FALSE(hanging.ready());
    expect_stalled(hanging, all_failed);
  });
}

}  // namespace
}  // namespace hvd::test
