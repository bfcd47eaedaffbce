#include "arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hvd::test {

namespace {

__extension__ typedef __int128 WideInt;
__extension__ typedef unsigned __int128 WideUnsigned;

// What the sum of a float dtype is kept in.
template <typename T>
using Kept = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename Wide>
Wide combined(ReduceOp op, Wide a, Wide b) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::product:
      return a * b;
    default:
      break;
  }
  if constexpr (!is_complex<Wide>) {
    if (b != b) return b;  // NaN
    if (op == ReduceOp::min) return b < a ? b : a;
    if (op == ReduceOp::max) return a < b ? b : a;
  }
  throw std::logic_error("no such reduction");
}

template <typename Wide, typename Load>
Wide over_ranks(ReduceOp op, std::size_t ranks, const Load& load) {
  Wide total = load(0);
  for (std::size_t rank = 1; rank < ranks; ++rank) total = combined<Wide>(op, total, load(rank));
  return total;
}

bool scaled(const Rule& rule) { return rule.prescale != 1.0 || rule.postscale != 1.0; }

// One division or one multiplication, in the type that the sum is kept in.
template <typename V>
V finished(const Rule& rule, V sum) {
  const double divisor = rule.op == ReduceOp::average ? rule.divisor : 1;
  if (rule.postscale == 1.0) return sum / static_cast<V>(divisor);
  return sum * static_cast<V>(rule.postscale / divisor);
}

template <typename T>
T reduced_integer(const Rule& rule, std::span<const Array> inputs, std::size_t i) {
  if (scaled(rule)) {
    const double result = finished<double>(rule, over_ranks<double>(rule.op, inputs.size(), [&](std::size_t rank) {
                                             return static_cast<double>(inputs[rank].get<T>(i)) * rule.prescale;
                                           }));
    const long double whole = std::trunc(static_cast<long double>(result));
    return static_cast<T>(std::clamp(whole, static_cast<long double>(std::numeric_limits<T>::min()),
                                     static_cast<long double>(std::numeric_limits<T>::max())));
  }
  if (rule.op == ReduceOp::min || rule.op == ReduceOp::max) {
    return static_cast<T>(over_ranks<WideInt>(
        rule.op, inputs.size(), [&](std::size_t rank) { return static_cast<WideInt>(inputs[rank].get<T>(i)); }));
  }
  // Wraps around as unsigned numbers do, and only when it is narrowed.
  const auto result = over_ranks<WideUnsigned>(rule.op, inputs.size(), [&](std::size_t rank) {
    return static_cast<WideUnsigned>(static_cast<WideInt>(inputs[rank].get<T>(i)));
  });
  if (rule.op != ReduceOp::average) return static_cast<T>(result);
  return static_cast<T>(static_cast<WideInt>(result) / rule.divisor);
}

template <typename T>
T reduced_real(const Rule& rule, std::span<const Array> inputs, std::size_t i) {
  const auto sum = over_ranks<long double>(rule.op, inputs.size(), [&](std::size_t rank) {
    return widened(inputs[rank].get<T>(i)) * static_cast<long double>(rule.prescale);
  });
  if (std::isnan(sum)) return T(std::numeric_limits<Kept<T>>::quiet_NaN());
  const auto kept = static_cast<Kept<T>>(sum);
  if (static_cast<long double>(kept) != sum) throw std::logic_error("the inputs are not exact");
  return T(finished(rule, kept));
}

template <typename T>
T reduced_complex(const Rule& rule, std::span<const Array> inputs, std::size_t i) {
  using V = typename T::value_type;
  const auto sum = over_ranks<std::complex<long double>>(rule.op, inputs.size(), [&](std::size_t rank) {
    return std::complex<long double>(inputs[rank].get<T>(i)) * static_cast<long double>(rule.prescale);
  });
  const T kept(sum);
  if (std::complex<long double>(kept) != sum) throw std::logic_error("the inputs are not exact");
  return {finished<V>(rule, kept.real()), finished<V>(rule, kept.imag())};
}

bool reduced_bool(const Rule& rule, std::span<const Array> inputs, std::size_t i) {
  const bool any = rule.op == ReduceOp::sum || rule.op == ReduceOp::max;
  const auto holds = [i](const Array& input) { return input.get<bool>(i); };
  return any ? std::ranges::any_of(inputs, holds) : std::ranges::all_of(inputs, holds);
}

// (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b; a factor is 1 where its vector is zero.
std::vector<long double> adasum(const std::vector<long double>& a, const std::vector<long double>& b) {
  long double dot = 0;
  long double aa = 0;
  long double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  const long double of_a = aa > 0 ? 1 - dot / (2 * aa) : 1;
  const long double of_b = bb > 0 ? 1 - dot / (2 * bb) : 1;
  std::vector<long double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = of_a * a[i] + of_b * b[i];
  return result;
}

// Neighbours in pairs, the results in pairs again; an odd one goes on to the next round.
template <typename T>
Array adasum_of(const Rule& rule, std::span<const Array> inputs) {
  std::vector<std::vector<long double>> values;
  for (const Array& input : inputs) {
    values.emplace_back(input.elements());
    for (std::size_t i = 0; i < input.elements(); ++i)
      values.back()[i] = widened(input.get<T>(i)) * static_cast<long double>(rule.prescale);
  }
  while (values.size() > 1) {
    std::vector<std::vector<long double>> next;
    for (std::size_t k = 0; k + 1 < values.size(); k += 2) next.push_back(adasum(values[k], values[k + 1]));
    if (values.size() % 2 == 1) next.push_back(values.back());
    values = std::move(next);
  }
  Array result(inputs[0].dtype(), inputs[0].shape());
  for (std::size_t i = 0; i < result.elements(); ++i)
    result.set(i, T(static_cast<Kept<T>>(values[0][i] * static_cast<long double>(rule.postscale))));
  return result;
}

template <typename T>
T any_element(Dice& dice) {
  T value{};
  const std::uint64_t bits = dice.next();
  if constexpr (std::is_same_v<T, bool>) {
    value = bits % 2 == 0;
  } else {
    for (std::size_t at = 0; at < sizeof(T); at += 8) {
      const std::uint64_t more = at == 0 ? bits : dice.next();
      std::memcpy(reinterpret_cast<char*>(&value) + at, &more, std::min<std::size_t>(8, sizeof(T) - at));
    }
  }
  return value;
}

// Of few digits, so that products of many ranks stay exact.
long double small_factor(Dice& dice) {
  static constexpr long double factors[] = {1, 2, 0.5L, 1.5L, 3};
  return factors[dice.pick(0, 4)] * (dice.chance(2) ? 1 : -1);
}

template <typename T>
T exact_element(Dice& dice, const Rule& rule) {
  if constexpr (is_integer<T>) {
    if (!scaled(rule)) return any_element<T>(dice);
    return static_cast<T>(std::is_signed_v<T> ? dice.pick(-9, 9) : dice.pick(0, 9));
  } else if constexpr (is_real<T>) {
    const long double value = rule.op == ReduceOp::product
                                  ? small_factor(dice)
                                  : static_cast<long double>(dice.pick(1, 64)) / (dice.chance(2) ? 4 : -4);
    return T(static_cast<Kept<T>>(value));
  } else if constexpr (is_complex<T>) {
    using V = typename T::value_type;
    if (rule.op == ReduceOp::product) {
      // 2+i times a power of i: no product of these has a zero in it, whose sign would depend on the order.
      static constexpr V factors[][2] = {{2, 1}, {-1, 2}, {-2, -1}, {1, -2}};
      const auto& factor = factors[dice.pick(0, 3)];
      return {factor[0], factor[1]};
    }
    const auto part = [&] { return static_cast<V>(dice.pick(1, 3) * (dice.chance(2) ? 1 : -1)); };
    const V real = part();
    return {real, part()};
  } else {
    return any_element<T>(dice);
  }
}

}  // namespace

std::vector<ReduceOp> allowed_ops(DataType dtype, Operation operation) {
  using enum ReduceOp;
  std::vector<ReduceOp> ops;
  with_type(dtype, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      ops = {sum, min, max, product};
    } else if constexpr (is_complex<T>) {
      ops = {average, sum, product};
    } else if constexpr (is_real<T> || is_integer<T>) {
      ops = {average, sum, min, max, product};
    }
    if (is_real<T> && operation == Operation::allreduce) ops.push_back(adasum);
  });
  return ops;
}

bool may_be_scaled(DataType dtype) {
  bool may = false;
  with_type(dtype, [&]<typename T>(T) { may = is_complex<T> || is_real<T> || is_integer<T>; });
  return may;
}

Array exact_data(DataType dtype, const Shape& shape, const Rule& rule, std::uint64_t seed) {
  Array data(dtype, shape);
  Dice dice(seed);
  with_type(dtype, [&]<typename T>(T) {
    for (std::size_t i = 0; i < data.elements(); ++i) data.set(i, exact_element<T>(dice, rule));
  });
  return data;
}

Array any_data(DataType dtype, const Shape& shape, std::uint64_t seed) {
  Array data(dtype, shape);
  Dice dice(seed);
  with_type(dtype, [&]<typename T>(T) {
    for (std::size_t i = 0; i < data.elements(); ++i) data.set(i, any_element<T>(dice));
  });
  return data;
}

Array reduction(const Rule& rule, std::span<const Array> inputs) {
  Array result(inputs[0].dtype(), inputs[0].shape());
  with_type(result.dtype(), [&]<typename T>(T) {
    if constexpr (is_real<T>) {
      if (rule.op == ReduceOp::adasum) {
        result = adasum_of<T>(rule, inputs);
        return;
      }
    }
    for (std::size_t i = 0; i < result.elements(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        result.set(i, reduced_bool(rule, inputs, i));
      } else if constexpr (is_integer<T>) {
        result.set(i, reduced_integer<T>(rule, inputs, i));
      } else if constexpr (is_real<T>) {
        result.set(i, reduced_real<T>(rule, inputs, i));
      } else if constexpr (is_complex<T>) {
        result.set(i, reduced_complex<T>(rule, inputs, i));
      } else {
        throw std::logic_error("a dtype that only travels");
      }
    }
  });
  return result;
}

}  // namespace hvd::test
