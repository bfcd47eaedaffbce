#pragma once

#include <hvd/types.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "array.h"

// What the collectives should give, computed one element after the other, in the order that their documentation
// promises.
namespace hvd::test {

struct ReduceSpec {
  ReduceOp op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<int> ranks_per_host = {};  // empty: all on one
};

template <typename V>
V combine(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return static_cast<V>(a + b);
    case ReduceOp::product:
      return static_cast<V>(a * b);
    case ReduceOp::min:
      return b < a || b != b ? b : a;
    case ReduceOp::max:
      return a < b || b != b ? b : a;
    case ReduceOp::adasum:
      break;  // not a matter of one element
  }
  ADD_FAILURE() << "no " << to_string(op) << " of single values";
  return a;
}

template <typename V>
std::complex<V> combine_complex(ReduceOp op, std::complex<V> a, std::complex<V> b) {
  if (op != ReduceOp::product) return {a.real() + b.real(), a.imag() + b.imag()};
  const V ac = a.real() * b.real();
  const V bd = a.imag() * b.imag();
  const V ad = a.real() * b.imag();
  const V bc = a.imag() * b.real();
  return {ac - bd, ad + bc};
}

// In rank order within each host, then in host order.
template <typename V, typename Load, typename Combine>
V fold_ranks(const ReduceSpec& spec, std::size_t ranks, const Load& load, const Combine& combine_two) {
  std::vector<int> counts = spec.ranks_per_host;
  if (counts.empty()) counts = {static_cast<int>(ranks)};
  V total{};
  std::size_t rank = 0;
  for (std::size_t host = 0; host < counts.size(); ++host) {
    V sum = load(rank++);
    for (int k = 1; k < counts[host]; ++k) sum = combine_two(sum, load(rank++));
    total = host == 0 ? sum : combine_two(total, sum);
  }
  return total;
}

template <typename V, typename Load>
V combine_ranks(const ReduceSpec& spec, std::size_t ranks, const Load& load) {
  return fold_ranks<V>(spec, ranks, load, [&](V a, V b) { return combine<V>(spec.op, a, b); });
}

__extension__ typedef __int128 WideInt;
__extension__ typedef unsigned __int128 WideUnsigned;

template <typename T>
T reduced_integer(const ReduceSpec& spec, std::span<const Array> inputs, std::size_t i) {
  if (spec.prescale != 1.0 || spec.postscale != 1.0) {
    const auto load = [&](std::size_t rank) { return static_cast<double>(inputs[rank].get<T>(i)) * spec.prescale; };
    double result = combine_ranks<double>(spec, inputs.size(), load);
    const auto divisor = static_cast<double>(spec.op == ReduceOp::average ? inputs.size() : 1);
    result = spec.postscale == 1.0 ? result / divisor : result * (spec.postscale / divisor);
    if (std::isnan(result)) return 0;
    const long double whole = std::trunc(static_cast<long double>(result));
    return static_cast<T>(std::clamp(whole, static_cast<long double>(std::numeric_limits<T>::min()),
                                     static_cast<long double>(std::numeric_limits<T>::max())));
  }
  if (spec.op == ReduceOp::min || spec.op == ReduceOp::max) {
    return combine_ranks<T>(spec, inputs.size(), [&](std::size_t rank) { return inputs[rank].get<T>(i); });
  }
  const auto load = [&](std::size_t rank) {
    return static_cast<WideUnsigned>(static_cast<WideInt>(inputs[rank].get<T>(i)));
  };
  const WideUnsigned result = combine_ranks<WideUnsigned>(spec, inputs.size(), load);
  if (spec.op != ReduceOp::average) return static_cast<T>(result);
  return static_cast<T>(static_cast<WideInt>(result) / static_cast<WideInt>(inputs.size()));
}

// The last step of a reduction in floating point.
template <typename V>
V finished(const ReduceSpec& spec, std::size_t ranks, V value) {
  const auto divisor = static_cast<double>(spec.op == ReduceOp::average ? ranks : 1);
  if (spec.postscale == 1.0) {
    value /= static_cast<V>(divisor);
  } else {
    value *= static_cast<V>(spec.postscale / divisor);
  }
  return std::isnan(value) ? std::numeric_limits<V>::quiet_NaN() : value;
}

template <typename T>
T reduced_float(const ReduceSpec& spec, std::span<const Array> inputs, std::size_t i) {
  using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto load = [&](std::size_t rank) {
    return static_cast<V>(inputs[rank].get<T>(i)) * static_cast<V>(spec.prescale);
  };
  return T(finished(spec, inputs.size(), combine_ranks<V>(spec, inputs.size(), load)));
}

template <typename V>
std::complex<V> reduced_complex(const ReduceSpec& spec, std::span<const Array> inputs, std::size_t i) {
  using T = std::complex<V>;
  const auto prescale = static_cast<V>(spec.prescale);
  const auto load = [&](std::size_t rank) {
    const T value = inputs[rank].get<T>(i);
    return T(value.real() * prescale, value.imag() * prescale);
  };
  const T result = fold_ranks<T>(spec, inputs.size(), load, [&](T a, T b) { return combine_complex(spec.op, a, b); });
  return {finished(spec, inputs.size(), result.real()), finished(spec, inputs.size(), result.imag())};
}

inline bool reduced_bool(ReduceOp op, std::span<const Array> inputs, std::size_t i) {
  const auto trues =
      std::ranges::count_if(inputs, [&](const Array& input) { return input.bytes()[i] != std::byte{0}; });
  return op == ReduceOp::sum || op == ReduceOp::max ? trues > 0 : trues == std::ssize(inputs);
}

// inputs: by rank, of a dtype that can be reduced so
inline Array reduced(const ReduceSpec& spec, std::span<const Array> inputs) {
  Array result(inputs[0].dtype(), inputs[0].shape());
  with_type(result.dtype(), [&]<typename T>(T) {
    for (std::size_t i = 0; i < result.elements(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        result.set(i, reduced_bool(spec.op, inputs, i));
      } else if constexpr (std::is_integral_v<T>) {
        result.set(i, reduced_integer<T>(spec, inputs, i));
      } else if constexpr (is_complex<T>) {
        result.set(i, reduced_complex<typename T::value_type>(spec, inputs, i));
      } else {
        result.set(i, reduced_float<T>(spec, inputs, i));
      }
    }
  });
  return result;
}

inline Array gathered(std::span<const Array> inputs) {
  std::int64_t rows = 0;
  for (const Array& input : inputs) rows += input.shape()[0];
  Array result(inputs[0].dtype(), inputs[0].shape().with_rows(rows));
  result.bytes().clear();
  for (const Array& input : inputs)
    result.bytes().insert(result.bytes().end(), input.bytes().begin(), input.bytes().end());
  return result;
}

}  // namespace hvd::test
