#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hvd {

// Place of the pair (i, j), i >= j, among all pairs in the order (0,0), (1,0), (1,1), (2,0), ...
constexpr std::size_t pair_index(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }
constexpr std::size_t pair_count(std::size_t vectors) { return vectors * (vectors + 1) / 2; }

// Adaptive summation of vectors x_0 ... x_{n-1}, of which only the inner products are known: products[pair_index(i, j)]
// is x_i.x_j. Returns c with result = sum of c_i x_i. The vectors are combined as a binary tree in their order, (0, 1),
// (2, 3), ..., then pairs of results likewise; an odd one goes up alone. Two are combined as
//   combine(a, b) = (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b
// where the factor of a zero vector is 1 (Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys
// 2021, equation 3).
std::vector<double> adasum_coefficients(std::span<const double> products, std::size_t vectors);

}  // namespace hvd
