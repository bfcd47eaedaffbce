#include "sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <utility>

namespace hvd::bench {

namespace {

constexpr std::array dtypes{
    std::pair{DataType::f32, std::string_view("f32")},   std::pair{DataType::f16, std::string_view("f16")},
    std::pair{DataType::bf16, std::string_view("bf16")}, std::pair{DataType::f64, std::string_view("f64")},
    std::pair{DataType::i8, std::string_view("i8")},     std::pair{DataType::u8, std::string_view("u8")},
    std::pair{DataType::i32, std::string_view("i32")},   std::pair{DataType::i64, std::string_view("i64")},
};

// Bytes in one of the unit, 0 when there is no such unit.
std::size_t unit_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  constexpr std::array<std::string_view, 4> prefixes{"", "K", "M", "G"};
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string prefix(prefixes[i]);
    const std::string binary = i == 0 ? prefix + "B" : prefix + "iB";
    if (text == prefix || text == binary) return std::size_t{1} << (10 * i);
  }
  return 0;
}

}  // namespace

std::size_t parse_size(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t unit = unit_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc{} || unit == 0 || value > std::numeric_limits<std::size_t>::max() / unit) {
    throw std::invalid_argument(fmt::format("'{}' is not a size such as 4, 64K or 1MiB", text));
  }
  if (value == 0) throw std::invalid_argument(fmt::format("a size of '{}' is nothing to measure", text));
  return value * unit;
}

std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    sizes.push_back(parse_size(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return sizes;
}

std::vector<std::size_t> size_range(std::size_t min, std::size_t max, std::size_t factor) {
  if (min > max) throw std::invalid_argument(fmt::format("--min {} is more than --max {}", min, max));
  std::vector<std::size_t> sizes;
  for (std::size_t size = min; size < max; size *= factor) sizes.push_back(size);
  sizes.push_back(max);
  return sizes;
}

DataType parse_dtype(std::string_view text) {
  std::string known;
  for (const auto& [dtype, name] : dtypes) {
    if (text == name || text == to_string(dtype)) return dtype;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw std::invalid_argument(fmt::format("'{}' is no dtype that is measured; there are: {}", text, known));
}

std::string_view short_name(DataType dtype) {
  for (const auto& [known, name] : dtypes) {
    if (known == dtype) return name;
  }
  return to_string(dtype);
}

}  // namespace hvd::bench
