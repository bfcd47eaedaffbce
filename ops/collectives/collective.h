#pragma once

#include <cstdint>

namespace hvd {

enum class Progress : std::uint8_t { waiting, advanced, done };

// Which phases of a collective are through on this rank; only grows.
enum class Phase : std::uint8_t { started, packed, reduced, unpacked };

// A collective under way, resumable: each step() does at most one phase of one chunk and never blocks, so that whoever
// drives it answers the negotiation in between. All ranks of a set start the same collectives in the same order.
class Collective {
 public:
  virtual ~Collective() = default;
  // advanced: something was done, call again. waiting: other ranks must come first; their progress rings this rank's
  // bell.
  virtual Progress step() = 0;
  virtual Phase phase() const = 0;
};

}  // namespace hvd
