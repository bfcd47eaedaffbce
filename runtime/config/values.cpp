#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

namespace hvd {

namespace {

// A number at the start of `text`, and what follows it.
template <typename Number>
std::optional<std::pair<Number, std::string_view>> leading_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc::invalid_argument) return std::nullopt;
  if (status == std::errc::result_out_of_range) {
    value = text.front() == '-' ? std::numeric_limits<Number>::lowest() : std::numeric_limits<Number>::max();
  }
  return std::pair{value, std::string_view(stop, static_cast<std::size_t>(end - stop))};
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  const auto number = leading_number<Number>(text);
  if (!number || !number->second.empty()) return std::nullopt;
  return number->first;
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

struct Unit {
  std::string_view name;
  int shift;
};
constexpr std::array<Unit, 3> units{{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};  // largest first

constexpr std::array<std::string_view, 6> log_levels{"trace", "debug", "info", "warning", "error", "fatal"};

}  // namespace

std::optional<std::int64_t> parse_number(std::string_view text) { return whole_number<std::int64_t>(text); }

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const auto number = leading_number<std::int64_t>(text);
  if (!number) return std::nullopt;
  auto [value, suffix] = *number;
  if (suffix.empty()) return value;
  if (suffix.front() == ' ') suffix.remove_prefix(1);
  for (const Unit& unit : units) {
    if (suffix != unit.name && suffix != unit.name.substr(0, 1)) continue;
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> unit.shift;
    if (value > most) return std::numeric_limits<std::int64_t>::max();
    if (value < -most) return std::numeric_limits<std::int64_t>::lowest();
    return value * (std::int64_t{1} << unit.shift);
  }
  return std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) { return whole_number<double>(text); }

std::optional<bool> parse_flag(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, bool>, 8> flags{{{"0", false},
                                                                    {"1", true},
                                                                    {"false", false},
                                                                    {"true", true},
                                                                    {"no", false},
                                                                    {"yes", true},
                                                                    {"off", false},
                                                                    {"on", true}}};
  for (const auto& [name, value] : flags) {
    if (equal_in_any_case(text, name)) return value;
  }
  return std::nullopt;
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (std::size_t level = 0; level < log_levels.size(); ++level) {
    if (equal_in_any_case(text, log_levels[level])) return static_cast<LogLevel>(level);
  }
  return std::nullopt;
}

std::optional<std::vector<int>> parse_counts(std::string_view text) {
  std::vector<int> counts;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto count = whole_number<int>(text.substr(0, comma));
    if (!count) return std::nullopt;
    counts.push_back(*count);
    if (comma == std::string_view::npos) return counts;
    text.remove_prefix(comma + 1);
  }
}

std::string format_bytes(std::int64_t bytes) {
  for (const Unit& unit : units) {
    const std::int64_t size = std::int64_t{1} << unit.shift;
    if (bytes != 0 && bytes % size == 0) return fmt::format("{} {}", bytes / size, unit.name);
  }
  return fmt::format("{} bytes", bytes);
}

std::string format_seconds(double seconds) { return fmt::format("{} s", seconds); }

std::string format_counts(const std::vector<int>& counts) {
  std::string text;
  for (const int count : counts) {
    if (!text.empty()) text += ',';
    text += std::to_string(count);
  }
  return text;
}

std::string_view to_string(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  return index < log_levels.size() ? log_levels[index] : "unknown log level";
}

}  // namespace hvd
