#pragma once

#include <gtest/gtest.h>
#include <hvd/error.h>
#include <hvd/in_process.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace hvd::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// So is code that is not optimised, as for coverage, but not so slow that less must do.
#if defined(__OPTIMIZE__)
inline constexpr bool slow = sanitized;
#else
inline constexpr bool slow = true;
#endif

// So many repetitions, fewer where a sanitizer makes each one dear.
constexpr int repetitions(int count) { return sanitized ? (count + 4) / 5 : count; }

inline std::string text_of(const std::exception_ptr& error) {
  if (error == nullptr) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "not a std::exception";
  }
}

// Runs body(rank) in one thread for each rank, joins them all, and returns what each threw. A rank that is still at it
// after the limit cannot be joined: the process aborts and says which ranks those are.
inline std::vector<std::exception_ptr> run_threads(int count, const std::function<void(int rank)>& body,
                                                   std::chrono::seconds limit = std::chrono::seconds(slow ? 200 : 50)) {
  const auto ranks = static_cast<std::size_t>(count);
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<bool> ended(ranks, false);
  int running = count;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::exception_ptr error;
      try {
        body(static_cast<int>(rank));
      } catch (...) {
        error = std::current_exception();
      }
      const std::scoped_lock lock(mutex);
      errors[rank] = error;
      ended[rank] = true;
      if (--running == 0) changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, limit, [&] { return running == 0; })) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::string state = ended[rank] ? "ended with " + text_of(errors[rank]) : "still running";
      std::fprintf(stderr, "time limit of %lld s: rank %zu: %s\n", static_cast<long long>(limit.count()), rank,
                   state.c_str());
    }
    std::abort();
  }
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  return errors;
}

using RankBody = std::function<void(Runtime& runtime)>;

// An in-process world whose ranks join with config_of(rank), run the body, and leave. Returns what each rank threw.
inline std::vector<std::exception_ptr> run_ranks(int size, const std::function<Config(int rank)>& config_of,
                                                 const RankBody& body) {
  InProcessWorld world(size);
  return run_threads(size, [&](int rank) {
    const std::unique_ptr<Runtime> runtime = world.join(rank, config_of(rank));
    body(*runtime);
  });
}

// The same, and a rank that throws fails the test.
inline void run_world(int size, const Config& config, const RankBody& body) {
  const auto errors = run_ranks(
      size, [&](int) { return config; }, body);
  for (int rank = 0; rank < size; ++rank) {
    const std::exception_ptr& error = errors[static_cast<std::size_t>(rank)];
    if (error != nullptr) ADD_FAILURE() << "rank " << rank << ": " << text_of(error);
  }
}
inline void run_world(int size, const RankBody& body) { run_world(size, Config{}, body); }

// The text of the E that the call throws; anything else fails the test and gives "".
template <typename E, typename Call>
std::string thrown_by(const Call& call) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
    } else {
      static_cast<void>(call());
    }
  } catch (const E& expected) {
    return expected.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error: " << other.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

// Every one of the values is `wanted`.
template <typename Values, typename T>
testing::AssertionResult all_are(const Values& values, T wanted) {
  std::size_t i = 0;
  for (const auto& value : values) {
    if (!(value == wanted))
      return testing::AssertionFailure() << "value " << i << " is " << value << " instead of " << wanted;
    ++i;
  }
  return testing::AssertionSuccess();
}

inline std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1.0F); }

inline void expect_sum_works(Runtime& runtime, std::string_view name, std::size_t count = 4) {
  std::vector<float> values = ones(count);
  runtime.allreduce(std::span(values), {.name = name, .op = ReduceOp::sum});
  EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(runtime.size())));
}

}  // namespace hvd::test
