#pragma once

#include <fmt/core.h>

#include <memory>
#include <utility>

#include <hvd/config.h>

namespace spdlog {
class logger;
}

namespace hvd {

// Lines on stderr, whole even when threads write at once:
//   2026-07-01 12:00:00.123 [hvd 0/4] warning: text
// A value: copies write to the same place. Any thread may call it; it never throws (a line that cannot be written is
// lost).
class Logger {
 public:
  // Before the rank is known.
  Logger(LogLevel level, bool hide_time);
  Logger(LogLevel level, bool hide_time, int rank, int size);

  bool enabled(LogLevel level) const noexcept { return level >= level_; }

  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::trace, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::debug, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::info, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::warning, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::error, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void fatal(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::fatal, format, fmt::make_format_args(args...));
  }

 private:
  void write(LogLevel level, fmt::string_view format, fmt::format_args args) const noexcept;

  LogLevel level_;
  std::shared_ptr<spdlog::logger> sink_;
};

}  // namespace hvd
