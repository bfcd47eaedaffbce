#include "observe/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>
#include <string>

#include "config/values.h"

namespace hvd {

namespace {

// Not in spdlog's registry: the host program's own use of spdlog, and its levels and patterns, stay apart.
std::shared_ptr<spdlog::logger> make_logger(bool hide_time, const std::string& prefix) {
  auto logger = std::make_shared<spdlog::logger>("hvd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::trace);
  logger->set_pattern(fmt::format("{}{} %v", hide_time ? "" : "%Y-%m-%d %H:%M:%S.%e ", prefix));
  return logger;
}

}  // namespace

Logger::Logger(LogLevel level, bool hide_time) : level_(level), sink_(make_logger(hide_time, "[hvd]")) {}

Logger::Logger(LogLevel level, bool hide_time, int rank, int size)
    : level_(level), sink_(make_logger(hide_time, fmt::format("[hvd {}/{}]", rank, size))) {}

void Logger::write(LogLevel level, fmt::string_view format, fmt::format_args args) const noexcept {
  if (!enabled(level)) return;
  try {
    // The level's name is part of the text because spdlog calls `fatal` critical.
    sink_->log(spdlog::level::info, "{}: {}", to_string(level), fmt::vformat(format, args));
  } catch (const std::exception&) {  // out of memory; there is nowhere left to say so
  }
}

}  // namespace hvd
