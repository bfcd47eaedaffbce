#pragma once

#include <chrono>
#include <cstdint>
#include <string>

// Shows how far an epoch is: a bar on a terminal, otherwise a line every few seconds.
class Progress {
 public:
  Progress(bool shown, std::string title, std::int64_t images);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `images` of all ranks done so far, and the present loss.
  void update(std::int64_t images, double loss);

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  bool terminal_;
  std::string title_;
  std::int64_t images_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  bool bar_visible_ = false;
};
