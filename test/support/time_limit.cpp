#include "time_limit.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace hvd::test {

namespace {

std::chrono::seconds limit_from_environment() {
  const char* text = std::getenv("TEST_TIME_LIMIT");
  return std::chrono::seconds(text != nullptr ? std::atol(text) : 60);
}

}  // namespace

TimeLimit::TimeLimit(std::string who)
    : who_(std::move(who)), limit_(limit_from_environment()), deadline_(Clock::now() + limit_) {
  if (limit_.count() > 0) watcher_ = std::thread([this] { watch(); });
}

TimeLimit::~TimeLimit() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

void TimeLimit::OnTestStart(const testing::TestInfo& test) {
  start(std::string(test.test_suite_name()) + "." + test.name());
}

void TimeLimit::OnTestProgramEnd(const testing::UnitTest& /*program*/) { start("the end of the program"); }

void TimeLimit::start(std::string what) {
  const std::scoped_lock lock(mutex_);
  what_ = std::move(what);
  deadline_ = Clock::now() + limit_;
}

void TimeLimit::watch() {
  std::unique_lock lock(mutex_);
  // A deadline only moves on, so a wait that ends early by the old one just waits again.
  while (!ended_ && Clock::now() < deadline_) changed_.wait_until(lock, deadline_);
  if (ended_) return;
  const std::string text =
      who_ + "time limit of " + std::to_string(limit_.count()) + " s exceeded in " + what_ + "\n";
  // Not through stdio, whose locks the hanging thread may hold.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(EXIT_FAILURE);
  std::abort();
}

}  // namespace hvd::test
