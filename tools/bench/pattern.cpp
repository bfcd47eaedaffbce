#include "pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <random>
#include <stdexcept>
#include <type_traits>

namespace hvd::bench {

namespace {

constexpr std::size_t stride = 97;  // by how much each repeat starts later

std::vector<int> numbers(DataType dtype, int rank) {
  std::mt19937 generator(static_cast<unsigned>(rank) + 1);
  const bool is_signed = dtype != DataType::u8;
  std::uniform_int_distribution<int> distribution(is_signed ? -3 : 0, is_signed ? 4 : 7);
  std::vector<int> values(Pattern::period);
  for (int& value : values) value = distribution(generator);
  return values;
}

template <typename T>
void store(const std::vector<int>& values, std::byte* to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value{};
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(values[i]);
    } else {
      value = T(static_cast<float>(values[i]));
    }
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

std::vector<std::byte> encode(DataType dtype, const std::vector<int>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  switch (dtype) {
#define HVD_BENCH_CASE(id, type, text) \
  case DataType::id:                   \
    store<type>(values, bytes.data()); \
    break;
    HVD_FOR_EACH_DATA_TYPE(HVD_BENCH_CASE)
#undef HVD_BENCH_CASE
  }
  return bytes;
}

// Calls body(position in the pattern, elements done, elements) for each run that the pattern holds as one piece.
template <typename Body>
void each_run(std::size_t offset, std::size_t count, unsigned repeat, Body body) {
  std::size_t at = (offset + repeat * stride) % Pattern::period;
  for (std::size_t done = 0; done < count;) {
    const std::size_t run = std::min(count - done, Pattern::period - at);
    body(at, done, run);
    done += run;
    at = 0;
  }
}

}  // namespace

Pattern::Pattern(DataType dtype, int ranks, int rank)
    : element_size_(size_of(dtype)), rank_(static_cast<std::size_t>(rank)) {
  std::vector<int> sum(period);
  for (int i = 0; i < ranks; ++i) {
    const std::vector<int> values = numbers(dtype, i);
    for (std::size_t at = 0; at < period; ++at) sum[at] += values[at];
    inputs_.push_back(encode(dtype, values));
  }
  sum_ = encode(dtype, sum);
}

void Pattern::fill(void* data, std::size_t offset, std::size_t count, unsigned repeat) const {
  const Bytes& input = inputs_[rank_];
  each_run(offset, count, repeat, [&](std::size_t at, std::size_t done, std::size_t run) {
    std::memcpy(static_cast<std::byte*>(data) + done * element_size_, input.data() + at * element_size_,
                run * element_size_);
  });
}

void Pattern::check_sum(std::string_view what, const void* data, std::size_t offset, std::size_t count,
                        unsigned repeat) const {
  compare(sum_, what, data, offset, count, repeat);
}

void Pattern::check_values_of(int rank, std::string_view what, const void* data, std::size_t offset, std::size_t count,
                              unsigned repeat) const {
  compare(inputs_[static_cast<std::size_t>(rank)], what, data, offset, count, repeat);
}

void Pattern::compare(const Bytes& expected, std::string_view what, const void* data, std::size_t offset,
                      std::size_t count, unsigned repeat) const {
  each_run(offset, count, repeat, [&](std::size_t at, std::size_t done, std::size_t run) {
    const auto* found = static_cast<const std::byte*>(data) + done * element_size_;
    const auto* wanted = expected.data() + at * element_size_;
    if (std::memcmp(found, wanted, run * element_size_) == 0) return;
    const auto* differs = std::mismatch(found, found + run * element_size_, wanted).first;
    const std::size_t element = offset + done + static_cast<std::size_t>(differs - found) / element_size_;
    throw std::runtime_error(fmt::format("{}: wrong result at element {}", what, element));
  });
}

}  // namespace hvd::bench
