#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/config.h>

namespace hvd {

// Text to values and back, one pair per kind of setting. The whole text must parse, else nothing is returned. Whether a
// value is sensible is decided elsewhere; a number too large for its type becomes the type's largest.

// "4096", "512KiB", "512K", "128 MiB"; K, M and G count in 1024s. KB and the like are refused: they mean two things.
std::optional<std::int64_t> parse_bytes(std::string_view text);
// "30", "0.25"
std::optional<std::int64_t> parse_number(std::string_view text);
std::optional<double> parse_seconds(std::string_view text);
// 0, 1, false, true, no, yes, off, on; in any case
std::optional<bool> parse_flag(std::string_view text);
// trace, debug, info, warning, error, fatal; in any case
std::optional<LogLevel> parse_log_level(std::string_view text);
// "2,1,1"
std::optional<std::vector<int>> parse_counts(std::string_view text);

// Unlike values have unlike texts.
std::string format_bytes(std::int64_t bytes);  // "128 MiB", "1000 bytes"
std::string format_seconds(double seconds);    // "0.25 s"
std::string format_counts(const std::vector<int>& counts);
std::string_view to_string(LogLevel level);

}  // namespace hvd
