#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hvd::test {

// Aborts the process with the name of the running test when that test takes too long: a hang becomes a named failure.
// The limit is for each test; TEST_TIME_LIMIT (seconds, 0 for none) sets it.
class TimeLimit : public testing::EmptyTestEventListener {
 public:
  // `who` begins the message, "rank 2: " for example.
  explicit TimeLimit(std::string who = {});
  ~TimeLimit() override;
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestProgramEnd(const testing::UnitTest& program) override;

 private:
  using Clock = std::chrono::steady_clock;

  void start(std::string what);
  void watch();

  const std::string who_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_ = "the start of the program";
  Clock::time_point deadline_;
  bool ended_ = false;
  std::thread watcher_;
};

}  // namespace hvd::test
