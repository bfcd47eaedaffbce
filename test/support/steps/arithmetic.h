#pragma once

#include <hvd/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "data.h"

// What reductions give, computed one element after the other in numbers that hold every sum and product exactly. It has
// no order of its own: the inputs of exact_data() are such that every order gives the same bits.
namespace hvd::test {

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <typename T>
inline constexpr bool is_real = is_half<T> || std::is_floating_point_v<T>;
template <typename T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <typename T>
long double widened(T value) {
  if constexpr (is_half<T>) {
    return static_cast<long double>(static_cast<float>(value));
  } else {
    return static_cast<long double>(value);
  }
}

// The reduce ops that a dtype has in an operation, in the order in which messages list them.
std::vector<ReduceOp> allowed_ops(DataType dtype, Operation operation);
bool may_be_scaled(DataType dtype);

struct Rule {
  ReduceOp op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  int divisor = 1;  // of an average: the number of ranks that count
};

// Values whose reduction by any of the ops rounds nowhere but at the end: floats with few digits and never zero,
// integers of full range unless they are scaled. Dtypes that only travel get any bits.
Array exact_data(DataType dtype, const Shape& shape, const Rule& rule, std::uint64_t seed);
// Any bits, NaN among them: for what only travels.
Array any_data(DataType dtype, const Shape& shape, std::uint64_t seed);

// `inputs`: of the ranks that take part, in rank order, one or more.
Array reduction(const Rule& rule, std::span<const Array> inputs);

}  // namespace hvd::test
