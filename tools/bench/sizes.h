#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/types.h>

namespace hvd::bench {

// What a user may give. Each throws std::invalid_argument with one line that names the value.

// "4", "64K", "64KiB", "1M", "1 GiB": bytes, powers of 1024.
std::size_t parse_size(std::string_view text);
// "4,64K,1M"
std::vector<std::size_t> parse_sizes(std::string_view text);
// From `min` to `max`, each `factor` times the one before; the last is `max`.
std::vector<std::size_t> size_range(std::size_t min, std::size_t max, std::size_t factor);
// By enumerator ("f32") or by name ("float32"), of those that MPI sums, too: numbers.
DataType parse_dtype(std::string_view text);
// "f32"
std::string_view short_name(DataType dtype);

}  // namespace hvd::bench
