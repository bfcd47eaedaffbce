#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hvd {

struct Piece {
  std::size_t begin;
  std::size_t count;
  friend bool operator==(const Piece&, const Piece&) = default;
};

// Cuts `count` elements into messages of at most `limit` (>= 1) each, in order; none is empty unless all is.
inline std::vector<Piece> plan_counts(std::size_t count, std::size_t limit) {
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  do {
    pieces.push_back({begin, std::min(limit, count - begin)});
    begin += pieces.back().count;
  } while (begin < count);
  return pieces;
}

// The same for a receiver that does not know the count: the first piece below the limit, empty if need be, is the last.
inline std::vector<Piece> plan_ended_counts(std::size_t count, std::size_t limit) {
  std::vector<Piece> pieces = plan_counts(count, limit);
  if (pieces.back().count == limit) pieces.push_back({count, 0});
  return pieces;
}

}  // namespace hvd
