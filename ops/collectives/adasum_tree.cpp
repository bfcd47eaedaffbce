#include "collectives/adasum_tree.h"

#include <algorithm>

namespace hvd {

namespace {

// A linear combination of the vectors [begin, begin + factors.size()).
struct Node {
  std::size_t begin;
  std::vector<double> factors;
};

double dot(std::span<const double> products, const Node& a, const Node& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.factors.size(); ++i) {
    for (std::size_t j = 0; j < b.factors.size(); ++j) {
      const std::size_t one = a.begin + i;
      const std::size_t other = b.begin + j;
      sum += a.factors[i] * b.factors[j] * products[pair_index(std::max(one, other), std::min(one, other))];
    }
  }
  return sum;
}

double factor(double mixed, double own) { return own == 0.0 ? 1.0 : 1.0 - mixed / (2.0 * own); }

Node combine(std::span<const double> products, const Node& a, const Node& b) {
  const double mixed = dot(products, a, b);
  const double of_a = factor(mixed, dot(products, a, a));
  const double of_b = factor(mixed, dot(products, b, b));
  Node result{a.begin, {}};
  for (const double f : a.factors) result.factors.push_back(of_a * f);
  for (const double f : b.factors) result.factors.push_back(of_b * f);
  return result;
}

}  // namespace

std::vector<double> adasum_coefficients(std::span<const double> products, std::size_t vectors) {
  std::vector<Node> level;
  for (std::size_t i = 0; i < vectors; ++i) level.push_back({i, {1.0}});
  while (level.size() > 1) {
    std::vector<Node> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(combine(products, level[i], level[i + 1]));
    if (level.size() % 2 == 1) above.push_back(std::move(level.back()));
    level = std::move(above);
  }
  return std::move(level[0].factors);
}

}  // namespace hvd
