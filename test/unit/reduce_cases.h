#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "../support/reference.h"
#include "cpu/reduce.h"

// What the tests of the reduction kernels share.
namespace hvd::cpu {

// Memory of exactly its size, so that the address sanitizer sees a step too far, at odd addresses if asked.
class Memory {
 public:
  Memory(std::size_t bytes, std::size_t offset) : storage_(bytes + offset, std::byte{0x55}), offset_(offset) {}
  Memory(const test::Array& array, std::size_t offset) : Memory(array.bytes().size(), offset) {
    if (!array.bytes().empty()) std::memcpy(data(), array.bytes().data(), array.bytes().size());
  }
  std::byte* data() { return storage_.data() + offset_; }
  const std::byte* data() const { return storage_.data() + offset_; }
  template <typename T>
  void set(std::size_t i, T value) {
    std::memcpy(data() + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t offset_;
};

inline std::vector<const std::byte*> pointers(const std::vector<Memory>& all) {
  std::vector<const std::byte*> result;
  for (const Memory& memory : all) result.push_back(memory.data());
  return result;
}

// A test that runs on every instruction set that this machine has.
class EachIsa : public testing::Test {
 public:
  ~EachIsa() override { use_isa(initial_); }

  template <typename Body>
  static void run(Body body) {
    for (const Isa isa : available_isas()) {
      use_isa(isa);
      SCOPED_TRACE(to_string(isa));
      body();
      if (HasFailure()) return;
    }
  }

 private:
  Isa initial_ = active_isa();
};

inline Reduction make_reduction(DataType dtype, ReduceOp op, std::size_t ranks, double prescale = 1,
                                double postscale = 1) {
  return {dtype, op, prescale, postscale, op == ReduceOp::average ? static_cast<std::int64_t>(ranks) : 1};
}

// Overwrites some of the parts of floats and complex numbers by NaNs, infinities, zeros of both signs and anything
// else.
template <typename V>
void make_wild(test::Array& array, std::mt19937_64& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const V specials[] = {V(0.0F), V(-0.0F), V(infinity), V(-infinity), V(std::numeric_limits<float>::quiet_NaN())};
  for (std::size_t i = 0; i < array.bytes().size() / sizeof(V); ++i) {
    if (random() % 16 != 0) continue;
    if (random() % 2 == 0) {
      array.set(i, specials[random() % std::size(specials)]);
    } else {
      const std::uint64_t pattern = random();
      std::memcpy(array.bytes().data() + i * sizeof(V), &pattern, sizeof(V));
    }
  }
}

inline test::Array wild_array(DataType dtype, std::size_t count, std::uint64_t seed) {
  test::Array array = test::random_array(dtype, {static_cast<std::int64_t>(count)}, seed);
  std::mt19937_64 random(seed);
  test::with_type(dtype, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      for (std::byte& byte : array.bytes()) {
        if (random() % 4 == 0) byte = static_cast<std::byte>(random());  // true is not always 1
      }
    } else if constexpr (test::is_complex<T>) {
      make_wild<typename T::value_type>(array, random);
    } else if constexpr (!std::is_integral_v<T>) {
      make_wild<T>(array, random);
    }
  });
  return array;
}

// The result of one element per rank, which all instruction sets must agree on; in the first lane and in the last.
template <typename T>
T reduce_values(ReduceOp op, const std::vector<T>& values, double prescale = 1, double postscale = 1) {
  constexpr std::size_t count = 37;
  std::vector<Memory> sources;
  for (const T value : values) {
    sources.emplace_back(count * sizeof(T), 0U);
    for (std::size_t i = 0; i < count; ++i) sources.back().set(i, value);
  }
  const Reduction reduction = make_reduction(data_type_of<T>, op, values.size(), prescale, postscale);
  std::vector<T> results;
  EachIsa::run([&] {
    Memory dst(count * sizeof(T), 0);
    reduce(reduction, pointers(sources), dst.data(), count);
    results.push_back(dst.get<T>(0));
    results.push_back(dst.get<T>(count - 1));
  });
  const T first = results.front();
  for (const T result : results) EXPECT_EQ(std::memcmp(&result, &first, sizeof(T)), 0);
  return first;
}

}  // namespace hvd::cpu
