#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../support/world.h"

// Many threads of all ranks that submit and cancel at the same time.
namespace hvd::test {
namespace {

constexpr int rank_count = 3;
constexpr int threads_per_rank = 3;

Config on_hosts(const std::vector<int>& hosts) {
  Config config;
  config.test_topology = hosts;
  config.process_sets = {{0, 2}};
  return config;
}

std::mt19937 random_of(unsigned seed, int rank, int thread) {
  std::seed_seq numbers{seed, static_cast<unsigned>(rank), static_cast<unsigned>(thread)};
  return std::mt19937(numbers);
}

void maybe_pause(std::mt19937& random) {
  if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
}

// ---- until it has run

// Submits again what was withdrawn. The value is the same on all ranks and no other operation's: another sum would be
// of ranks that have not been at the same one.
void run_at_last(Runtime& runtime, std::mt19937& random, const std::string& name, float value, ProcessSet set) {
  const auto ranks = static_cast<float>(runtime.process_set_ranks(set).size());
  for (bool withdrawn = true; withdrawn;) {
    std::vector<float> values(3, value);
    const Handle handle =
        runtime.allreduce_async(std::span(values), {.name = name, .op = ReduceOp::sum, .process_set = set});
    maybe_pause(random);
    withdrawn = random() % 2 == 0 && handle.cancel();
    if (withdrawn) {
      EXPECT_TRUE(handle.ready());
      EXPECT_NE(thrown_by<CancelledError>([&] { handle.wait(); }), "");
    } else {
      handle.wait();
    }
    ASSERT_TRUE(all_are(values, withdrawn ? value : value * ranks));
  }
}

void storm_until_all_have_run(const std::vector<int>& hosts, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  run_world(rank_count, on_hosts(hosts), [&](Runtime& runtime) {
    const auto errors = run_threads(threads_per_rank, [&](int thread) {
      std::mt19937 random = random_of(seed, runtime.rank(), thread);
      for (int round = 0; round < repetitions(100); ++round) {
        const ProcessSet set{static_cast<std::uint32_t>(round % 4 == 3 ? 1 : 0)};
        if (runtime.process_set_rank(set) < 0) continue;
        run_at_last(runtime, random, std::to_string(thread) + "." + std::to_string(round % 5),
                    static_cast<float>(1 + thread + threads_per_rank * round), set);
      }
    });
    for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
    expect_sum_works(runtime, "after");
    const Stats stats = runtime.stats();
    runtime.barrier();
    EXPECT_GT(stats.operations_failed, 0U) << "nothing was cancelled";
  });
}

TEST(CancelStorm, WhatIsSubmittedAgainRunsOnAllRanksAtLast) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    storm_until_all_have_run({}, seed);
    storm_until_all_have_run({2, 1}, seed);
  }
}

// ---- all or none

// The handles of one rank, for threads that submit and threads that cancel.
class Pool {
 public:
  struct Item {
    std::string name;
    int kind = 0;
    std::vector<float> values;
    Handle handle;
    bool reduces() const { return kind > 1; }
  };

  Item& add(const std::string& name, int kind) {
    const std::scoped_lock lock(mutex_);
    return items_.try_emplace(name, Item{.name = name, .kind = kind, .values = ones(3), .handle = {}}).first->second;
  }
  void set_handle(Item& item, Handle handle) {
    const std::scoped_lock lock(mutex_);
    item.handle = std::move(handle);
    submitted_.push_back(&item);
  }
  // One of those submitted so far.
  std::optional<Handle> any(std::mt19937& random) {
    const std::scoped_lock lock(mutex_);
    if (submitted_.empty()) return std::nullopt;
    return submitted_[random() % submitted_.size()]->handle;
  }
  std::map<std::string, Item>& items() { return items_; }  // once all threads are through

 private:
  std::mutex mutex_;
  std::map<std::string, Item> items_;
  std::vector<Item*> submitted_;
};

Handle submit(Runtime& runtime, Pool::Item& item) {
  const std::span<float> values(item.values);
  switch (item.kind) {
    case 0:
      return runtime.allgather_async(values, {.name = item.name});
    case 1:
      return runtime.barrier_async({.name = item.name});
    case 2:
      return runtime.grouped_allreduce_async(std::vector<TensorView>{values.first(1), values.last(2)},
                                             {.name = item.name, .op = ReduceOp::sum});
    default:
      return runtime.allreduce_async(values, {.name = item.name, .op = ReduceOp::sum});
  }
}

constexpr int operations_per_thread = 200;

void submit_some(Runtime& runtime, Pool& pool, std::mt19937& random, int thread) {
  for (int i = 0; i < repetitions(operations_per_thread); ++i) {
    Pool::Item& item = pool.add(std::to_string(thread) + "." + std::to_string(i), i % 5);
    pool.set_handle(item, submit(runtime, item));
    maybe_pause(random);
  }
}

void cancel_some(Pool& pool, std::mt19937& random) {
  for (int i = 0; i < repetitions(operations_per_thread) / 4; ++i) {
    if (const auto handle = pool.any(random)) static_cast<void>(handle->cancel());
    maybe_pause(random);
  }
}

// Of each operation whether it has run.
std::map<std::string, bool> outcomes(Pool& pool, int ranks) {
  std::map<std::string, bool> ran;
  for (auto& [name, item] : pool.items()) {
    const bool cancelled = item.handle.cancel();
    EXPECT_TRUE(item.handle.ready());
    try {
      item.handle.wait();
      EXPECT_FALSE(cancelled) << name;
    } catch (const CancelledError&) {
      EXPECT_TRUE(cancelled) << name;
    }
    const bool summed = !cancelled && item.reduces();
    EXPECT_TRUE(all_are(item.values, summed ? static_cast<float>(ranks) : 1.0F)) << name;
    ran[name] = !cancelled;
  }
  return ran;
}

std::size_t storm_of_cancels(const std::vector<int>& hosts, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::map<std::string, bool>> ran(rank_count);
  run_world(rank_count, on_hosts(hosts), [&](Runtime& runtime) {
    Pool pool;
    const auto errors = run_threads(2 * threads_per_rank, [&](int thread) {
      std::mt19937 random = random_of(seed, runtime.rank(), thread);
      if (thread < threads_per_rank) {
        submit_some(runtime, pool, random, thread);
      } else {
        cancel_some(pool, random);
      }
    });
    for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
    const auto rank = static_cast<std::size_t>(runtime.rank());
    ran[rank] = outcomes(pool, runtime.size());
    runtime.barrier();  // whoever cancels late must not take a new one for an old
    for (const auto& [name, done] : ran[rank]) expect_sum_works(runtime, name);
  });
  EXPECT_EQ(ran[0].size(), static_cast<std::size_t>(threads_per_rank * repetitions(operations_per_thread)));
  EXPECT_EQ(ran[1], ran[0]);
  EXPECT_EQ(ran[2], ran[0]);
  std::size_t cancelled = 0;
  for (const auto& [name, done] : ran[0]) cancelled += done ? 0 : 1;
  return cancelled;
}

TEST(CancelStorm, EveryHandleEndsAndWhatHasRunHasRunOnAllRanks) {
  std::size_t cancelled = 0;
  for (const unsigned seed : {1U, 2U, 3U}) {
    cancelled += storm_of_cancels({}, seed);
    cancelled += storm_of_cancels({2, 1}, seed);
  }
  EXPECT_GT(cancelled, 0U);
}

}  // namespace
}  // namespace hvd::test
