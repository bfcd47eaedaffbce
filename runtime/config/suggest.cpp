#include "config/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace hvd {

namespace {

// Levenshtein, row by row: the fewest characters to insert, delete or replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (a[i] == b[j] ? 0U : 1U)});
    }
    std::swap(above, row);
  }
  return above.back();
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates,
                              std::string_view prefix) {
  const std::string_view rest = name.substr(std::min(prefix.size(), name.size()));
  if (rest.size() > 256) return {};  // the distance costs the product of the lengths
  std::string_view nearest;
  std::size_t least = rest.size() / 3 + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(rest, candidate.substr(std::min(prefix.size(), candidate.size())));
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace hvd
